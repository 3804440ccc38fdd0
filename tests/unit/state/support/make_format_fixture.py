"""Writes the fixture of a state format: `python make_format_fixture.py FOLDER`; once for each format."""

from __future__ import annotations

import sys

from state_life import Life

from arroyo_core.state import StorageProvider

EPOCHS = 7

if __name__ == "__main__":
    Life(StorageProvider(sys.argv[1])).run(EPOCHS)
