"""A command of `arroyo` in a process that the server starts: `python -m arroyo_console.planning.command ...`."""

from __future__ import annotations

import sys

from arroyo_core.cli.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
