"""What an installed distribution consists of, and what it requires, read from its metadata; nothing is imported."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from arroyo_core.errors import SetupError
from arroyo_pack.building import build_wheel

#: Every executor has that of its Spark.
PROVIDED: Final = frozenset({"py4j", "pyspark", "pyspark-client"})

_BINARY = (".so", ".pyd", ".dylib", ".dll")
#: What installers note about this machine: where a distribution came from, which may have a token in it.
_OF_THIS_MACHINE: Final = frozenset({"direct_url.json", "uv_cache.json", "uv_build.json"})
#: Secrets of whoever works on a project, which a builder of wheels takes for data of it; lower case.
_PRIVATE: Final = frozenset({".env", ".git-credentials", ".netrc", ".npmrc", ".pgpass", ".pypirc", "pip.conf"})
#: Folders of a project that are no part of what is installed.
_UNPUBLISHED = {"__pycache__", "build", "dist", "node_modules"}


class PackError(SetupError):
    """Something that cannot be packed."""


@dataclass(frozen=True, slots=True)
class PackedFile:
    """A file of a distribution: its name below `site-packages`, and how to get what is in it."""

    name: str
    read: Callable[[], bytes] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """An installed distribution."""

    name: str
    version: str
    #: Whether it runs on every platform: it has no compiled code.
    is_pure: bool
    #: Differs where anything in it does.
    fingerprint: str
    #: Of this distribution, by those that require it here.
    specifiers: Sequence[str] = ()
    _found: Distribution = field(repr=False)

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    def files(self) -> Iterator[PackedFile]:
        """All that is to be copied, by name. Raises `PackError` where the metadata does not tell."""
        project = _editable_folder(self._found)
        found = _built_files(project) if project is not None else _installed_files(self._found)
        return iter(sorted((file for file in found if not _stays_here(file.name)), key=lambda file: file.name))


def closure(names: Iterable[str]) -> list[Package]:
    """These distributions and all that they require here, by name; without what every executor has.

    Raises `PackError` for one that is not installed.
    """
    found: dict[str, Distribution] = {}
    specifiers: dict[str, set[str]] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting: list[tuple[Requirement, str]] = [(_requirement(name), "") for name in names]
    while waiting:
        requirement, wanted_by = waiting.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if name in PROVIDED:
            continue
        if wanted_by and str(requirement.specifier):
            specifiers.setdefault(name, set()).add(str(requirement.specifier))
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        if name not in found:
            found[name] = _installed(requirement.name, wanted_by)
        waiting += [(needed, found[name].name) for needed in requirements_of(found[name], extras)]
    return [_package(found[name], sorted(specifiers.get(name, ()))) for name in sorted(found)]


def requirements_of(found: Distribution, extras: Iterable[str] = ()) -> Iterator[Requirement]:
    """What it requires on this platform and Python, with these extras."""
    environments = [{"extra": extra} for extra in ("", *extras)]
    for line in found.requires or ():
        needed = Requirement(line)
        if needed.marker is None or any(needed.marker.evaluate(environment) for environment in environments):
            yield needed


def _requirement(name: str) -> Requirement:
    try:
        return Requirement(name)
    except ValueError as error:
        raise PackError(f"{name!r:.100} is not the name of a distribution") from error


def _installed(name: str, wanted_by: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError as error:
        reason = f"{wanted_by} requires it, and it" if wanted_by else "it"
        raise PackError(f"{name} cannot be packed: {reason} is not installed in the driver's Python") from error


def _package(found: Distribution, specifiers: Sequence[str]) -> Package:
    project = _editable_folder(found)
    names = [] if project is not None else [str(path) for path in found.files or ()]
    is_pure = "Root-Is-Purelib: true" in (found.read_text("WHEEL") or "") and not any(map(_is_compiled, names))
    content = _project_facts(project) if project is not None else found.read_text("RECORD") or ""
    digest = hashlib.sha256(f"{found.name} {found.version}\n{content}".encode()).hexdigest()
    return Package(
        name=found.name,
        version=found.version,
        is_pure=is_pure,
        fingerprint=digest,
        specifiers=specifiers,
        _found=found,
    )


def _stays_here(name: str) -> bool:
    """Whether a file is of this machine or its user, whoever listed it."""
    last = PurePosixPath(name).name.casefold()
    return last in _OF_THIS_MACHINE or last in _PRIVATE or last.startswith(".env.")


def _is_compiled(name: str) -> bool:
    return name.endswith(_BINARY) or ".so." in PurePosixPath(name).name


def _installed_files(found: Distribution) -> Iterator[PackedFile]:
    if found.files is None or found.read_text("RECORD") is None:
        raise PackError(
            f"{found.name} {found.version} cannot be packed: its metadata has no RECORD of its files; "
            "install it with pip or uv"
        )
    for path in found.files:
        # Scripts are elsewhere, and name the interpreter of this machine.
        if ".." in path.parts or path.is_absolute() or "__pycache__" in path.parts or path.suffix == ".pyc":
            continue
        place = Path(str(path.locate()))
        if not place.is_file():
            raise PackError(f"{found.name} {found.version} cannot be packed: {place} is missing; install it again")
        yield PackedFile(str(path), place.read_bytes)


def _editable_folder(found: Distribution) -> Path | None:
    """The project of a distribution that was installed as editable."""
    text = found.read_text("direct_url.json")
    told = json.loads(text) if text else {}
    if not told.get("dir_info", {}).get("editable"):
        return None
    return Path(url2pathname(urlsplit(told["url"]).path))


def _built_files(project: Path) -> list[PackedFile]:
    """Those of the wheel, which is what would be installed elsewhere."""
    with (
        TemporaryDirectory(prefix="arroyo-pack-") as folder,
        zipfile.ZipFile(build_wheel(project, Path(folder))) as wheel,
    ):
        names = [name for name in wheel.namelist() if not name.endswith("/")]
        for name in names:
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                raise PackError(f"the wheel of {project} cannot be packed: {name!r:.200} would be outside of it")
        return [PackedFile(name, _constant(wheel.read(name))) for name in names]


def _constant(data: bytes) -> Callable[[], bytes]:
    return lambda: data


def _project_facts(project: Path) -> str:
    """Changes with every file from which the wheel is built; reads none of them."""
    lines = []
    for folder, folders, files in os.walk(project):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _UNPUBLISHED)
        for path in (Path(folder, name) for name in sorted(files)):
            found = path.lstat()
            lines.append(f"{path} {found.st_size} {found.st_mtime_ns}")
    return "\n".join(lines)
