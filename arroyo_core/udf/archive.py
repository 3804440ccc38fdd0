"""Zip archives: read wholly into memory with everything odd refused, written so that equal input gives equal bytes."""

from __future__ import annotations

import io
import stat
import zipfile
import zlib
from collections.abc import Mapping

from arroyo_core.api.limits import BUNDLE_BYTES, BUNDLE_FILES, BUNDLE_UNPACKED_BYTES
from arroyo_core.udf.failures import BundleError, UnsafeBundleError

_IS_ENCRYPTED = 0x1
#: The earliest time that a zip can hold: when something was built must not change its digest.
_EPOCH = (1980, 1, 1, 0, 0, 0)


def read_archive(data: bytes, *, what: str) -> dict[str, bytes]:
    """Every file of a zip by its path; raises `UnsafeBundleError` for an evil one, `BundleError` for a damaged one.

    Nothing is written anywhere. `what` names the archive in errors.
    """
    if len(data) > BUNDLE_BYTES.value:
        raise UnsafeBundleError(
            f"{what} has {len(data)} bytes; at most {BUNDLE_BYTES.value} are allowed; {BUNDLE_BYTES.other}"
        )
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            _check(infos, what)
            return {info.filename: archive.read(info) for info in infos if not info.is_dir()}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OSError) as error:
        raise BundleError(f"{what} is not a readable zip archive: {error}") from error


def write_archive(files: Mapping[str, bytes]) -> bytes:
    """A zip of `files`, sorted by path.

    Stored, not compressed: the digest must not depend on the version of zlib.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(files):
            info = zipfile.ZipInfo(path, _EPOCH)
            info.create_system = 3  # Unix, on every system: it is part of the bytes.
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(info, files[path])
    return buffer.getvalue()


def _check(infos: list[zipfile.ZipInfo], what: str) -> None:
    if len(infos) > BUNDLE_FILES.value:
        raise UnsafeBundleError(
            f"{what} has {len(infos)} files; at most {BUNDLE_FILES.value} are allowed; {BUNDLE_FILES.other}"
        )
    # Reading stops at the size that is declared, so that the sum bounds what is unpacked.
    unpacked = sum(info.file_size for info in infos)
    if unpacked > BUNDLE_UNPACKED_BYTES.value:
        raise UnsafeBundleError(
            f"{what} would unpack to {unpacked} bytes; at most {BUNDLE_UNPACKED_BYTES.value} are allowed; "
            f"{BUNDLE_UNPACKED_BYTES.other}"
        )
    seen: set[str] = set()
    for info in infos:
        _check_path(info, what)
        if info.filename in seen:
            raise UnsafeBundleError(f"{what} holds {info.filename!r} twice")
        seen.add(info.filename)


def _check_path(info: zipfile.ZipInfo, what: str) -> None:
    # `orig_filename`, because zipfile cuts a name at a NUL and turns separators round.
    name = info.orig_filename
    parts = name.removesuffix("/").split("/")
    is_odd = "\\" in name or ":" in name or not name.isprintable()
    if is_odd or any(part in ("", ".", "..") for part in parts):
        raise UnsafeBundleError(f"{what} holds the path {name!r}, which is not a plain relative path")
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise UnsafeBundleError(f"{what} holds {name!r}, which is a link or a special file")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise UnsafeBundleError(f"{what} holds {name!r}, which is neither stored nor deflated")
    if info.flag_bits & _IS_ENCRYPTED:
        raise UnsafeBundleError(f"{what} holds {name!r}, which is encrypted")
