"""Installs into the current environment, in the versions of `constraints.txt`.

    python tools/install.py --group test dist/arroyo_core-0.1.0-py3-none-any.whl ...
    python tools/install.py --spark spark35 --group sparks dist/arroyo_core-0.1.0-py3-none-any.whl[spark] ...

Takes the arguments of `uv pip install`; with `--spark` first, the pins of that row instead of those of the same names,
and its pyspark out of the cache (`tools/sparks.py`). Wheels are installed again even if their version is there already:
the version of a wheel of ours does not change with its content.

Every archive must have a hash that the constraints name. Only the wheel of pyspark has none: `tools/sparks.py` builds
it, from an archive that must have its hash.

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
from sparks import replace_pins, row_named, wheel_cache

CONSTRAINTS = ROOT / "constraints.txt"
_WHEEL = re.compile(r"\.whl(\[[^]]*\])?$")
_HASHES_OF_SPARK = re.compile(r"(?<=^pyspark==)(\S+)(?: \\\n +--hash=\S+)+", re.MULTILINE)


def without_hashes_of_spark(constraints: str) -> str:
    return _HASHES_OF_SPARK.sub(r"\1", constraints)


def install_command(arguments: Sequence[str], *, constraints: str, is_offline: bool) -> list[str]:
    beside = Path(sys.executable).parent / "uv"
    uv = str(beside) if beside.exists() else shutil.which("uv") or "uv"
    command = [uv, "pip", "install", "--quiet", "--constraint", constraints, "--build-constraint", constraints]
    # With extras, perhaps: dist/arroyo_core-0.1.0-py3-none-any.whl[spark].
    names = [Path(argument).name.partition("-")[0] for argument in arguments if _WHEEL.search(argument)]
    command += [f"--reinstall-package={name.replace('_', '-')}" for name in names]
    return [*command, *(["--offline"] if is_offline else []), *arguments]


def divide(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The constraints, and what uv is told; raises `SystemExit` for a row that is not there."""
    pins = CONSTRAINTS.read_text(encoding="utf-8")
    if arguments[:1] != ["--spark"]:
        return pins, list(arguments)
    name = arguments[1] if len(arguments) > 1 else ""
    row = row_named(name)
    if row is None:
        raise SystemExit(f"--spark {name}: there is no such row in tools/sparks.py")
    others = row.pins.read_text(encoding="utf-8")
    return replace_pins(pins, others), ["--find-links", str(wheel_cache()), *arguments[2:]]


def main(arguments: Sequence[str]) -> int:
    pins, arguments = divide(arguments)
    with tempfile.TemporaryDirectory() as folder:
        constraints = Path(folder) / CONSTRAINTS.name
        constraints.write_text(without_hashes_of_spark(pins), encoding="utf-8")

        def install(*, is_offline: bool) -> int:
            command = install_command(arguments, constraints=str(constraints), is_offline=is_offline)
            return subprocess.run(command, cwd=ROOT, check=False, capture_output=is_offline).returncode

        return install(is_offline=True) and install(is_offline=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
