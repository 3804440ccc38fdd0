"""Checks that `constraints.txt` is whole: `make lint` runs it.

    python tools/pins.py

Everything that a distribution or a tool asks for has one version that it allows, everything that is installed in this
environment has the version of its pin, and every pin has hashes: what is fetched next year is what was tested.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata

from distributions import distributions
from lock import CONSTRAINTS, foreign, own_name, wanted_lines
from packaging.requirements import Requirement

_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)(?P<rest>.*(?:\n[ ].*)*)", re.MULTILINE)
#: What an environment has of its own.
_TOOLS = {"pip"}


@dataclass(frozen=True, slots=True)
class Pin:
    """One version of a package, and the archives that may be it."""

    version: str
    hashes: frozenset[str]


def read_pins(text: str) -> Mapping[str, Pin]:
    """By normalised name."""
    return {
        own_name(found["name"]): Pin(
            found["version"], frozenset(re.findall(r"--hash=(sha256:[0-9a-f]{64})", found["rest"]))
        )
        for found in _PIN.finditer(text)
    }


def problems(pins: Mapping[str, Pin], requirements: Iterable[str], installed: Mapping[str, str]) -> Iterator[str]:
    """What is not pinned as it should be, a line each."""
    for name, pin in pins.items():
        if not pin.hashes:
            yield f"{name}=={pin.version} has no hash"
    for line in requirements:
        requirement = Requirement(line)
        found = pins.get(own_name(requirement.name))
        if found is None:
            yield f"{line} has no pin"
        elif not requirement.specifier.contains(found.version, prereleases=True):
            yield f"{line} does not allow its pin, {found.version}"
    for name, version in installed.items():
        found = pins.get(name)
        if found is None:
            yield f"{name} {version} is installed and has no pin"
        elif found.version != version:
            yield f"{name} {version} is installed, and its pin is {found.version}"


def main() -> int:
    own = {found.project for found in distributions()}
    names = {own_name(found.metadata["Name"]): found.version for found in metadata.distributions()}
    installed = {name: version for name, version in sorted(names.items()) if name not in own | _TOOLS}
    pins = read_pins(CONSTRAINTS.read_text(encoding="utf-8"))
    found = list(problems(pins, foreign(wanted_lines(), own), installed))
    for line in found:
        print(line)
    if found:
        print("run 'make lock', and 'make env' after it")
        return 1
    print(f"{len(pins)} pins, all with hashes; {len(installed)} installed packages have theirs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
