"""Installs into the current environment, in the versions of `constraints.txt`.

    python tools/install.py --group test dist/arroyo_core-0.1.0-py3-none-any.whl ...

Takes the arguments of `uv pip install`. Wheels are installed again even if their version is there already:
the version of a wheel of ours does not change with its content.

Every archive must have a hash that the constraints name. Only the wheel of pyspark has none: `make env` builds it, from
an archive that must have its hash.

What the cache holds is taken from it without asking the index; the index is asked only where something is
missing. A matrix of a dozen environments would else ask a hundred questions for each of them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from distributions import ROOT

CONSTRAINTS = ROOT / "constraints.txt"
_HASHES_OF_SPARK = re.compile(r"(?<=^pyspark==)(\S+)(?: \\\n +--hash=\S+)+", re.MULTILINE)


def without_hashes_of_spark(constraints: str) -> str:
    return _HASHES_OF_SPARK.sub(r"\1", constraints)


def install_command(arguments: Sequence[str], *, constraints: str, is_offline: bool) -> list[str]:
    beside = Path(sys.executable).parent / "uv"
    uv = str(beside) if beside.exists() else shutil.which("uv") or "uv"
    command = [uv, "pip", "install", "--quiet", "--constraint", constraints, "--build-constraint", constraints]
    names = [Path(argument).name.partition("-")[0] for argument in arguments if argument.endswith(".whl")]
    command += [f"--reinstall-package={name.replace('_', '-')}" for name in names]
    return [*command, *(["--offline"] if is_offline else []), *arguments]


def main(arguments: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        constraints = Path(folder) / CONSTRAINTS.name
        constraints.write_text(without_hashes_of_spark(CONSTRAINTS.read_text(encoding="utf-8")), encoding="utf-8")

        def install(*, is_offline: bool) -> int:
            command = install_command(arguments, constraints=str(constraints), is_offline=is_offline)
            return subprocess.run(command, cwd=ROOT, check=False, capture_output=is_offline).returncode

        return install(is_offline=True) and install(is_offline=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
