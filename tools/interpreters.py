"""Finds the Pythons of the test matrix, and says which ones are missing.

    python tools/interpreters.py

Prints the folders to put before the PATH so that tox finds them, joined by `:`; what was found and
what will be skipped goes to stderr. pyenv's shims answer to every version that is installed, but
only start those that `pyenv global` names, so a shim alone is no proof: each candidate is started.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

MATRIX = ("3.11", "3.12", "3.13")


def candidates(version: str) -> Iterator[Path]:
    """Where this version may be, the likeliest place first."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        found = shutil.which(f"python{version}", path=folder)
        if found:
            yield Path(found)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    yield from sorted(pyenv.glob(f"{version}.*/bin/python{version}"), reverse=True)


def started(python: Path, version: str) -> Path | None:
    """The interpreter itself that `python` starts, shims left out; None where it is not this version."""
    question = "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)"
    try:
        answer = subprocess.run([python, "-c", question], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found, _, executable = answer.stdout.strip().partition(" ")
    return Path(executable) if answer.returncode == 0 and found == version else None


def main() -> int:
    found: dict[str, Path] = {}
    for version in MATRIX:
        working = (started(python, version) for python in candidates(version))
        python = next((python for python in working if python), None)
        if python:
            found[version] = python
    missing = [version for version in MATRIX if version not in found]
    for version, python in found.items():
        print(f"Python {version}: {python}", file=sys.stderr)
    if missing:
        print(f"Python {', '.join(missing)}: not installed, its environments are SKIPPED", file=sys.stderr)
    print(os.pathsep.join(dict.fromkeys(str(python.parent) for python in found.values())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
