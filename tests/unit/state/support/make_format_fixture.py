"""Writes the fixture of a state format: once for each format, from the project's root.

python -m tests.unit.state.support.make_format_fixture FOLDER
"""

from __future__ import annotations

import sys

from arroyo_core.state import StorageProvider

from .state_life import Life

EPOCHS = 7

if __name__ == "__main__":
    Life(StorageProvider(sys.argv[1])).run(EPOCHS)
