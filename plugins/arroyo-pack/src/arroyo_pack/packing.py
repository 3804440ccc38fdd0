"""Makes what is sent to executors, or takes what was made before."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from arroyo_pack.archives import base_python, this_minor, write_environment, write_zip
from arroyo_pack.cache import cached
from arroyo_pack.packages import Package, closure

#: Of what is in archives, and how: other code makes others.
_FORMAT = 2
_PANDAS = "pandas"


class Kind(StrEnum):
    """What is packed."""

    #: Pure Python packages, in a zip.
    WHEELS = "wheels"
    #: All packages, in an environment.
    ENV = "env"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """An archive on this machine."""

    kind: Kind
    path: Path
    packed: Sequence[Package]
    #: What executors must have beside it.
    left_out: Sequence[Package]
    was_there: bool

    @property
    def size(self) -> str:
        """For people."""
        return f"{self.path.stat().st_size / 2**20:.1f} MiB"


def pack(kind: Kind, names: Sequence[str], *, python: str | None = None, tell: Callable[[str], None]) -> Pack:
    """Pack these distributions with all that they require; `tell` hears what takes long.

    `python` is the path of the interpreter on executors, for an environment. Raises `PackError`.
    """
    if kind is Kind.WHEELS:
        return _pack_wheels(closure(names), tell)
    return _pack_environment(closure([*names, *_wanted_by_spark()]), python or base_python(), tell)


def _pack_wheels(packages: Sequence[Package], tell: Callable[[str], None]) -> Pack:
    pure = [package for package in packages if package.is_pure]
    name = f"arroyo-wheels-{_digest(Kind.WHEELS, pure)}.zip"
    path, was_there = cached(name, _telling(partial(write_zip, pure), f"packing {len(pure)} packages", tell))
    rest = [package for package in packages if not package.is_pure]
    return Pack(kind=Kind.WHEELS, path=path, packed=pure, left_out=rest, was_there=was_there)


def _pack_environment(packages: Sequence[Package], python: str, tell: Callable[[str], None]) -> Pack:
    name = f"arroyo-environment-{_digest(Kind.ENV, packages, python, this_minor())}.tar.gz"
    write = partial(write_environment, packages, python=python)
    path, was_there = cached(name, _telling(write, f"packing an environment of {len(packages)} packages", tell))
    return Pack(kind=Kind.ENV, path=path, packed=packages, left_out=(), was_there=was_there)


def _telling(write: Callable[[Path], None], what: str, tell: Callable[[str], None]) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        tell(what)
        write(path)

    return make


def _wanted_by_spark() -> list[str]:
    """Functions over DataFrames want it on executors, too; it is in an extra of ours, which may not be installed."""
    return [_PANDAS] if find_spec(_PANDAS) is not None else []


def _digest(kind: Kind, packages: Sequence[Package], *more: str) -> str:
    facts = [str(_FORMAT), kind, *more, *(package.fingerprint for package in packages)]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
