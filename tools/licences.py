"""Writes `docs/licences.md`: the licence of everything that an installation brings, as its authors declare it.

    python tools/licences.py

What our distributions ask for, and what that asks for in turn, as it is installed in this environment; tools of the
build and of the tests are not part of an installation.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib import metadata

from distributions import ROOT, distributions
from lock import own_name
from packaging.requirements import Requirement

PAGE = ROOT / "docs" / "licences.md"
HEADER = """\
# Licences of dependencies

Written by `make licences`; do not edit. arroyo_core itself is under Apache-2.0. This is what `pip install` of its
distributions, with all their extras, brings; versions are those of `constraints.txt`.

| Package | Version | Licence, as its authors declare it |
|---|---|---|
"""


def declared_licence(found: metadata.Distribution) -> str:
    """The expression, else the classifiers, else the first line of the text."""
    about = found.metadata
    if expressions := about.get_all("License-Expression"):
        return str(expressions[0])
    classifiers = [line for line in about.get_all("Classifier") or () if line.startswith("License ::")]
    names = [line.rpartition("::")[2].strip() for line in classifiers if line.count("::") > 1]
    text = "\n".join(about.get_all("License") or ()).strip()
    return "; ".join(names) or text.partition("\n")[0] or "not declared"


def closure(lines: Iterable[str]) -> Iterator[metadata.Distribution]:
    """The installed packages that requirements lead to, each once."""
    waiting, seen = [Requirement(line) for line in lines], set()
    while waiting:
        requirement = waiting.pop()
        extras = ["", *sorted(requirement.extras)]
        key = own_name(requirement.name), tuple(extras)
        if key in seen or not _applies(requirement, [""]):
            continue
        seen.add(key)
        try:
            found = metadata.distribution(requirement.name)
        except metadata.PackageNotFoundError:
            # Of another platform, or an extra that no environment here has.
            continue
        waiting += [each for line in found.requires or () if _applies(each := Requirement(line), extras)]
        yield found


def _applies(requirement: Requirement, extras: Iterable[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in extras)


def main() -> int:
    known = distributions()
    own = {found.project for found in known}
    lines = [line for found in known for line in found.requirements]
    packages = {own_name(found.metadata["Name"]): found for found in closure(lines)}
    rows = [
        f"| {found.metadata['Name']} | {found.version} | {declared_licence(found)} |"
        for name, found in sorted(packages.items())
        if name not in own
    ]
    PAGE.write_text(HEADER + "\n".join(rows) + "\n", encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {len(rows)} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
