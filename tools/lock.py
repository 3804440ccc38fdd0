"""Writes `constraints.txt`: one exact version, with the hashes of its archives, of everything that
any distribution or tool here asks for; and the pins of each older Spark of the matrix, in `tools/sparks`.

    python tools/lock.py [--upgrade]

Without `--upgrade` the versions already written stay, as far as the requirements still allow them.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from distributions import ROOT, distributions
from sparks import PINS, ROWS, Row, blocks, pin_of, wheel_cache

CONSTRAINTS = ROOT / "constraints.txt"
HEADER = """\
# Exact versions for Python 3.11 to 3.13; written by `make lock`, not by hand.
# Raise them with `make lock UPGRADE=1`, then run `make test`.
"""
ROW_HEADER = "# What a row of the matrix has instead of constraints.txt; written by `make lock`, not by hand.\n"


def own_name(requirement: str) -> str:
    """The normalised project name at the start of a requirement."""
    name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def foreign(requirements: Iterable[str], own: set[str]) -> list[str]:
    """What has to come from an index: all but the distributions of this repository."""
    return sorted({line for line in requirements if own_name(line) not in own})


def wanted_lines() -> list[str]:
    """All requirements of all distributions and tools, of our own distributions too."""
    known = distributions()
    groups = known[0].metadata["dependency-groups"]
    tools = [line for lines in groups.values() for line in lines if isinstance(line, str)]
    return [*(line for distribution in known for line in distribution.requirements), *tools]


def lock(wanted: Sequence[str], output: Path, *, header: str, is_upgrade: bool, options: Sequence[str] = ()) -> None:
    """Write the pins of what is wanted, and of what that wants; versions that are in the file already are kept."""
    command = [
        "uv", "pip", "compile", "-", "--universal", "--python-version", "3.11", "--output-file", str(output),
        "--fork-strategy", "fewest", "--no-annotate", "--no-header", "--no-emit-index-url", "--quiet",
        "--no-emit-find-links", "--generate-hashes", *options,
    ]  # fmt: skip
    if is_upgrade:
        command.append("--upgrade")
    subprocess.run(command, input="\n".join(wanted), text=True, check=True, cwd=ROOT)
    output.write_text(header + output.read_text(encoding="utf-8"), encoding="utf-8")


def lock_row(row: Row, *, is_upgrade: bool) -> None:
    """Pins of an older Spark, and of what has another version beside it; all else is as in the constraints."""
    own = {own_name(line) for line in row.requirements} | {"py4j"}
    text = CONSTRAINTS.read_text(encoding="utf-8")
    # The wheel of the row's Spark has its metadata; without it uv would build the source distribution again.
    links = ["--find-links", str(wheel_cache())] if wheel_cache().is_dir() else []
    with tempfile.TemporaryDirectory() as folder:
        constraints = Path(folder) / "others.txt"
        constraints.write_text("".join(block for name, block in blocks(text) if own_name(name) not in own))
        options = ["--constraint", str(constraints), *links]
        lock(row.requirements, row.pins, header="", is_upgrade=is_upgrade, options=options)
    found = dict(blocks(row.pins.read_text(encoding="utf-8")))
    found["pyspark"] = published_archive(f"pyspark=={pin_of('pyspark', found['pyspark'])[0]}")
    pins = [lines for name, lines in found.items() if own_name(name) in own]
    row.pins.write_text(ROW_HEADER + "".join(pins), encoding="utf-8")


def published_archive(requirement: str) -> str:
    """The pin of a package with the hashes of what the index has; those of a wheel that was built here are others."""
    command = ["uv", "pip", "compile", "-", "--no-deps", "--generate-hashes", "--no-annotate", "--no-header", "--quiet"]
    environment = {name: value for name, value in os.environ.items() if name != "UV_FIND_LINKS"}
    done = subprocess.run(command, input=requirement, text=True, check=True, stdout=subprocess.PIPE, env=environment)
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that are allowed")
    arguments = parser.parse_args()
    wanted = foreign(wanted_lines(), {distribution.project for distribution in distributions()})
    lock(wanted, CONSTRAINTS, header=HEADER, is_upgrade=arguments.upgrade)
    PINS.mkdir(exist_ok=True)
    for row in ROWS:
        lock_row(row, is_upgrade=arguments.upgrade)
    return 0


if __name__ == "__main__":
    sys.exit(main())
