"""Installs into the current environment, in the versions of `constraints.txt`.

    python tools/install.py --group test dist/arroyo_core-0.1.0-py3-none-any.whl ...

Takes the arguments of `uv pip install`. Wheels are installed again even if their version is there already:
the version of a wheel of ours does not change with its content.

What the cache holds is taken from it without asking the index; the index is asked only where something is
missing. A matrix of a dozen environments would else ask a hundred questions for each of them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from distributions import ROOT

CONSTRAINTS = str(ROOT / "constraints.txt")


def install_command(arguments: Sequence[str], *, is_offline: bool) -> list[str]:
    beside = Path(sys.executable).parent / "uv"
    uv = str(beside) if beside.exists() else shutil.which("uv") or "uv"
    command = [uv, "pip", "install", "--quiet", "--constraint", CONSTRAINTS, "--build-constraint", CONSTRAINTS]
    names = [Path(argument).name.partition("-")[0] for argument in arguments if argument.endswith(".whl")]
    command += [f"--reinstall-package={name.replace('_', '-')}" for name in names]
    return [*command, *(["--offline"] if is_offline else []), *arguments]


def main(arguments: Sequence[str]) -> int:
    cached = subprocess.run(install_command(arguments, is_offline=True), cwd=ROOT, check=False, capture_output=True)
    if cached.returncode == 0:
        return 0
    return subprocess.run(install_command(arguments, is_offline=False), cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
