"""Starts a plugin distribution from `plugins/_template`, under names of its own.

    python tools/new_plugin.py arroyo-acme [--prefix acme] [--into plugins]

Makes `plugins/arroyo-acme` with the package `arroyo_acme` and the operator `acme.running_count`,
complete and tested: change it into what you want.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from distributions import ROOT
from proto import generate

TEMPLATE = ROOT / "plugins" / "_template"
TEXT_FILES = {".py", ".md", ".toml", ".proto"}


@dataclass(frozen=True, slots=True)
class Names:
    """What the new plugin is called: `arroyo-acme`, `arroyo_acme`, `acme`."""

    distribution: str
    package: str
    prefix: str

    def apply(self, text: str) -> str:
        text = text.replace("arroyo-template", self.distribution).replace("arroyo_template", self.package)
        return re.sub(r"\btemplate(?=\.running_count| = )", self.prefix, text)


def derive_names(distribution: str, prefix: str | None = None) -> Names:
    """The package and the prefix that go with a distribution's name; raises `ValueError` for a bad one."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", distribution):
        raise ValueError(
            f"{distribution!r} is no name for a plugin: use lower-case words joined by '-', as arroyo-acme"
        )
    package = distribution.replace("-", "_")
    prefix = prefix or package.removeprefix("arroyo_")
    if not prefix.isidentifier():
        raise ValueError(f"{prefix!r} cannot be the prefix of operators: use letters, digits and '_'")
    return Names(distribution, package, prefix)


def create(names: Names, into: Path) -> Path:
    """Copy the template to a new folder; raises `FileExistsError` where there is one already."""
    target = into / names.distribution
    if target.exists():
        raise FileExistsError(f"{target} is already there")
    shutil.copytree(
        TEMPLATE, target, ignore=shutil.ignore_patterns("__pycache__", "*_pb2.py", "*_pb2.pyi", "*.binpb", ".*")
    )
    (target / "src" / "arroyo_template").rename(target / "src" / names.package)
    for path in target.rglob("*"):
        if path.suffix in TEXT_FILES:
            path.write_text(names.apply(path.read_text(encoding="utf-8")), encoding="utf-8")
    sources = target / "src"
    generate(sources, sorted(sources.rglob("*.proto")), sources)
    return target


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("distribution", help="such as arroyo-acme")
    parser.add_argument("--prefix", help="of the operators' names; from the distribution's name by default")
    parser.add_argument("--into", type=Path, default=ROOT / "plugins", help="the folder that will hold it")
    arguments = parser.parse_args()
    try:
        target = create(derive_names(arguments.distribution, arguments.prefix), arguments.into)
    except (ValueError, FileExistsError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"made {target}; next: 'make env', then 'pytest {target}/tests'")
    return 0


if __name__ == "__main__":
    sys.exit(main())
