"""How a benchmark starts its own modules in other processes; only the standard library is imported here."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: For a process that runs in another folder, or in an environment of its own. What it starts inherits it: Spark's
#: workers import our modules, too.
ENVIRONMENT = {"PYTHONPATH": str(ROOT)}


def module_command(module: str, *arguments: object, python: Path | str = sys.executable) -> list[str]:
    """`python -m module arguments`; its environment needs `ENVIRONMENT`."""
    return [str(python), "-m", module, *map(str, arguments)]
