"""`python -m arroyo_core`, and the file that spark-submit runs: `spark-submit .../arroyo_core/__main__.py run FILE`."""

from __future__ import annotations

import sys
from pathlib import Path


def _as_if_installed() -> None:
    """Python puts the folder of a script in front of all others: modules of this package would hide those of others."""
    folder = Path(__file__).resolve().parent
    if (folder / "__init__.py").exists():
        sys.path[:] = [path for path in sys.path if not path or Path(path).resolve() != folder]


if __name__ == "__main__":
    if not __package__:
        _as_if_installed()
    from arroyo_core.cli.main import main

    sys.exit(main())
