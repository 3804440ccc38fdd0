"""A bundle: a pure-Python wheel, or a zip of one module, with a manifest. Parsed from bytes that are hashed already."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from arroyo_core.udf.archive import read_archive
from arroyo_core.udf.failures import BundleError, DigestMismatchError
from arroyo_core.udf.manifest import MANIFEST, ContentKind, Manifest, decode_manifest

#: The pickle in a bundle of content `pickle`.
PICKLE = "functions.pickle"

_BINARY_SUFFIXES = (".so", ".pyd", ".dll", ".dylib")
_DIST_INFO = re.compile(r"[^/]+\.dist-info/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A bundle that was read and checked; nothing of it was imported yet."""

    manifest: Manifest
    sha256: str
    #: By path; without the folder `*.dist-info`.
    files: Mapping[str, bytes] = field(repr=False)

    def __str__(self) -> str:
        return f"bundle {self.manifest} (sha256 {self.sha256[:12]})"

    @property
    def top_level(self) -> frozenset[str]:
        """The names that the bundle's own modules are imported by, without what is inside packages."""
        return frozenset(path.partition("/")[0].removesuffix(".py") for path in self.files if path.endswith(".py"))


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def parse_bundle(data: bytes, *, expected_sha256: str | None, what: str) -> Bundle:
    """Check the digest of `data`, then read it; what is imported later are these very bytes."""
    found = sha256_of(data)
    if expected_sha256 is not None and found != expected_sha256.lower():
        raise DigestMismatchError(f"{what} has the sha256 {found}, not {expected_sha256.lower()} ({len(data)} bytes)")
    files = read_archive(data, what=what)
    manifest_path = _manifest_path(files, what)
    manifest = decode_manifest(files[manifest_path], what=what)
    folder = manifest_path.removesuffix(MANIFEST)
    content = {path: body for path, body in files.items() if path != manifest_path}
    if folder:
        content = {path: body for path, body in content.items() if not path.startswith(folder)}
    bundle = Bundle(manifest=manifest, sha256=found, files=content)
    _check_content(bundle, what)
    return bundle


def _manifest_path(files: Mapping[str, bytes], what: str) -> str:
    found = [path for path in files if path == MANIFEST or (_DIST_INFO.match(path) and path.endswith(f"/{MANIFEST}"))]
    if len(found) != 1:
        raise BundleError(
            f"{what} has {len(found) or 'no'} {MANIFEST}; a bundle has one, in the folder *.dist-info of a wheel or at "
            "the root of a zip: make it with `arroyo udf build`"
        )
    return found[0]


def _check_content(bundle: Bundle, what: str) -> None:
    if bundle.manifest.content is ContentKind.PICKLE:
        if set(bundle.files) != {PICKLE}:
            raise BundleError(f"{what}: a bundle of pickled functions holds {PICKLE} and nothing else")
        return
    binary = sorted(path for path in bundle.files if path.endswith(_BINARY_SUFFIXES))
    if binary:
        raise BundleError(f"{what} holds compiled code ({', '.join(binary[:3])}): bundles are pure Python")
    missing = [name for name in bundle.manifest.modules if module_path(bundle.files, name) is None]
    if missing or not bundle.manifest.modules:
        raise BundleError(f"{what}: {MANIFEST} names modules that are not there: {', '.join(missing) or 'none at all'}")


def module_path(files: Mapping[str, bytes], module: str) -> str | None:
    """The path of a module's source, packages before plain modules as Python has it."""
    base = module.replace(".", "/")
    return next((path for path in (f"{base}/__init__.py", f"{base}.py") if path in files), None)
