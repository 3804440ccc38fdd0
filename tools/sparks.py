"""The older Sparks of the matrix: which release each row has, its pins, and its wheel, which is built once.

    python tools/sparks.py wheel spark35                              # of a row, into the cache of this user
    python tools/sparks.py wheel constraints.txt --into .venv/wheelhouse

pyspark is published as a source distribution of 300 to 450 MB. It is fetched and built once, by pip, from an archive
that must have the hash of its pin; every environment installs the wheel.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from distributions import ROOT

PINS = ROOT / "tools" / "sparks"
#: Where the wheels of the rows are kept, for all clones of this user.
CACHE_VARIABLE = "ARROYO_SPARK_WHEELS"
_BLOCK = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+).*(?:\n[ ].*)*\n?", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A minor release of Spark, the Python that it is tried on, and other versions than those of `constraints.txt`."""

    name: str
    release: str
    python: str
    #: Of the patch release.
    limit: str = ""
    others: Sequence[str] = ()

    @property
    def pins(self) -> Path:
        return PINS / f"{self.release}.txt"

    @property
    def requirements(self) -> list[str]:
        return [f"pyspark=={self.release}.*{self.limit}", *self.others]


#: The oldest has the oldest of what we allow beside it, the newest has the next protobuf: neither is in another row.
ROWS = (
    Row(
        name="spark35",
        release="3.5",
        python="3.11",
        # The server of Spark Connect was a package apart then, and Maven Central has it up to 3.5.7.
        limit=",<3.5.8",
        others=(
            "googleapis-common-protos>=1.71,<1.73",
            "grpcio-status>=1.76,<1.79",
            "pandas>=2.2,<2.3",
            "protobuf>=6.31.1,<6.32",
            "pyarrow>=19,<20",
        ),
    ),
    Row(name="spark40", release="4.0", python="3.12"),
    Row(name="spark41", release="4.1", python="3.12"),
    Row(name="spark42", release="4.2", python="3.13", others=("protobuf>=7,<8",)),
)


def row_named(name: str) -> Row | None:
    return next((row for row in ROWS if row.name == name), None)


def wheel_cache() -> Path:
    """Outside of any clone."""
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "arroyo-spark-wheels"


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """The names in a file of pins, each with its lines."""
    for found in _BLOCK.finditer(text):
        yield found["name"], found[0]


def pin_of(name: str, text: str) -> tuple[str, str]:
    """The version of a package in a file of pins, and its lines there."""
    for found in _BLOCK.finditer(text):
        if found["name"] == name:
            return found["version"], found[0]
    raise LookupError(f"no pin of {name}")


def replace_pins(constraints: str, others: str) -> str:
    """The constraints, with the pins of a row instead of those of the same names."""
    names = {name for name, _ in blocks(others)}
    kept = (lines for name, lines in blocks(constraints) if name not in names)
    return "".join([*kept, others])


def get_wheel(pins: Path, folder: Path) -> Path:
    """The wheel of the pinned pyspark in that folder, built if it is not there. Raises `CalledProcessError`."""
    version, lines = pin_of("pyspark", pins.read_text(encoding="utf-8"))
    found = sorted(folder.glob(f"pyspark-{version}-*.whl"))
    if found:
        return found[0]
    print(f"downloading and building pyspark {version}: some 400 MB, the first time takes a while", file=sys.stderr)
    folder.mkdir(parents=True, exist_ok=True)
    # Built aside and moved: another run may want it meanwhile, and must not see half of it.
    with tempfile.TemporaryDirectory(dir=folder, prefix=".building-") as aside:
        requirement = Path(aside) / "pyspark.txt"
        requirement.write_text(lines, encoding="utf-8")
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps"]
        command += ["--wheel-dir", aside, "--require-hashes", "-r", str(requirement)]
        subprocess.run(command, check=True)
        (built,) = Path(aside).glob("*.whl")
        return built.rename(folder / built.name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    wheel = commands.add_parser("wheel", help="get the wheel of a row, or of a file of pins")
    wheel.add_argument("of")
    wheel.add_argument("--into", type=Path, help=f"a folder; {CACHE_VARIABLE}, or the cache of this user")
    arguments = parser.parse_args()
    row = row_named(arguments.of)
    pins, folder = row.pins if row else Path(arguments.of), arguments.into or wheel_cache()
    try:
        print(get_wheel(pins, folder))
    except (LookupError, OSError, subprocess.CalledProcessError) as error:
        print(f"no wheel of pyspark for {arguments.of}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
