"""The manifest of a bundle, `arroyo-udf.json`: what it is, what it needs, and which functions it brings."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from enum import StrEnum
from importlib import metadata

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from arroyo_core.udf.failures import BundleError
from arroyo_core.udf.user_function import UserFunction

MANIFEST = "arroyo-udf.json"
#: The format that this version writes, and the newest that it reads.
FORMAT = 1
_MAX_NAME_LENGTH = 200


class ContentKind(StrEnum):
    """What is in a bundle."""

    #: Python modules, as source.
    MODULES = "modules"
    #: Functions of a running program, pickled; only ever loaded from a plan that pins them.
    PICKLE = "pickle"


class ManifestFunction(msgspec.Struct, frozen=True, kw_only=True):
    """One function; `kind` is the name of its class."""

    name: str
    kind: str
    signature: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What `arroyo-udf.json` holds."""

    format: int = FORMAT
    content: ContentKind = ContentKind.MODULES
    name: str
    version: str
    #: As in `pyproject.toml`; empty for any.
    requires_python: str = ""
    #: Requirements with specifiers; they must be installed already.
    dependencies: tuple[str, ...] = ()
    #: The modules that are imported to find the functions.
    modules: tuple[str, ...] = ()
    functions: tuple[ManifestFunction, ...] = ()
    #: For pickles: a digest of the code, which does not change between two runs of one program.
    code_sha256: str = ""

    def encode(self) -> bytes:
        """As JSON; equal manifests give equal bytes."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip()


class _Header(msgspec.Struct):
    format: int


def decode_manifest(data: bytes, *, what: str) -> Manifest:
    """Raises `BundleError` naming `what` for a manifest that cannot be read, or is of a newer format."""
    try:
        header = msgspec.json.decode(data, type=_Header)
        if header.format != FORMAT:
            raise BundleError(
                f"{what}: {MANIFEST} has format {header.format}, and this arroyo-core reads {FORMAT}: update it"
            )
        manifest = msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BundleError(f"{what}: {MANIFEST} cannot be read: {error}") from error
    for text in (manifest.name, manifest.version):
        # They are shown in errors and in plans, and are part of the names of source files in tracebacks.
        if not text or len(text) > _MAX_NAME_LENGTH or not text.isprintable() or set(text) & set("/\\@ "):
            raise BundleError(f"{what}: {text!r:.100} in {MANIFEST} is not a name with a version")
    return manifest


def describe_functions(functions: Sequence[UserFunction]) -> tuple[ManifestFunction, ...]:
    """What a manifest says of functions, sorted by name."""
    return tuple(
        ManifestFunction(name=function.name, kind=type(function).__name__, signature=function.signature)
        for function in sorted(functions, key=lambda function: function.name)
    )


def check_environment(
    manifest: Manifest,
    *,
    what: str,
    python: str | None = None,
    installed: Callable[[str], str] = metadata.version,
) -> None:
    """Raises `BundleError` naming everything that this environment lacks: nothing is installed at run time."""
    python = python or platform.python_version()
    lacks = []
    try:
        if not SpecifierSet(manifest.requires_python).contains(python, prereleases=True):
            lacks.append(f"Python {manifest.requires_python} (this is {python})")
    except InvalidSpecifier as error:
        raise BundleError(f"{what}: requires_python {manifest.requires_python!r} is not a version specifier") from error
    for dependency in manifest.dependencies:
        lack = _lack(dependency, what, installed)
        if lack is not None:
            lacks.append(lack)
    if lacks:
        raise BundleError(
            f"{what} needs {', '.join(lacks)}: install it on the driver and on every executor; "
            "bundles bring their own code only"
        )


def _lack(dependency: str, what: str, installed: Callable[[str], str]) -> str | None:
    try:
        requirement = Requirement(dependency)
    except InvalidRequirement as error:
        raise BundleError(f"{what}: the dependency {dependency!r} is not a requirement: {error}") from error
    if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
        return None
    try:
        found = installed(requirement.name)
    except metadata.PackageNotFoundError:
        return f"{requirement} (not installed)"
    try:
        fits = requirement.specifier.contains(Version(found), prereleases=True)
    except InvalidVersion:
        fits = not requirement.specifier
    return None if fits else f"{requirement} (installed: {found})"
