"""Writes `constraints.txt`: one exact version, with the hashes of its archives, of everything that
any distribution or tool here asks for.

    python tools/lock.py [--upgrade]

Without `--upgrade` the versions already written stay, as far as the requirements still allow them.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable

from distributions import ROOT, distributions

CONSTRAINTS = ROOT / "constraints.txt"
HEADER = """\
# Exact versions for Python 3.11 to 3.13; written by `make lock`, not by hand.
# Raise them with `make lock UPGRADE=1`, then run `make test`.
"""


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that are allowed")
    arguments = parser.parse_args()
    wanted = foreign(wanted_lines(), {distribution.project for distribution in distributions()})
    command = [
        "uv", "pip", "compile", "-", "--universal", "--python-version", "3.11", "--output-file", str(CONSTRAINTS),
        "--fork-strategy", "fewest", "--no-annotate", "--no-header", "--no-emit-index-url", "--quiet",
        "--no-emit-find-links", "--generate-hashes",
    ]  # fmt: skip
    if arguments.upgrade:
        command.append("--upgrade")
    subprocess.run(command, input="\n".join(wanted), text=True, check=True, cwd=ROOT)
    CONSTRAINTS.write_text(HEADER + CONSTRAINTS.read_text(encoding="utf-8"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
