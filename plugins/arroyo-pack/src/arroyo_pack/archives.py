"""The two archives: a zip of pure Python packages, and a tar of an environment that runs wherever it is unpacked."""

from __future__ import annotations

import gzip
import io
import platform
import shlex
import stat
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from arroyo_pack.limits import PACK_BYTES
from arroyo_pack.packages import Package, PackedFile, PackError

#: Zips know no earlier time; the same content is to give the same bytes.
_DATE: Final = (1980, 1, 1, 0, 0, 0)

#: What `bin/python` of an environment is: it says in a sentence what is missing. Spark shows what it prints.
_LAUNCHER: Final = """\
#!/bin/sh
# Starts the Python of this environment, which links to one that the machine must have.
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd -P) || exit 127
python="$here/python{minor}"
base={base}
if [ ! -x "$python" ]; then
    echo "arroyo-environment: this machine has no $base, which the environment needs: install Python {minor} there, \
or name the path of its own with --ship-python PATH" >&2
    exit 127
fi
if ! "$python" -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] != "{minor}")'; then
    echo "arroyo-environment: $base is another Python here, and the environment needs {minor}: name the path of one \
with --ship-python PATH" >&2
    exit 127
fi
exec "$python" "$@"
"""


def this_minor() -> str:
    return "{}.{}".format(*sys.version_info[:2])


def base_python() -> str:
    """The interpreter that the driver's environment was made from."""
    return str(Path(getattr(sys, "_base_executable", None) or sys.executable).resolve())


def write_zip(packages: Iterable[Package], path: Path) -> None:
    """All packages in one zip, from which Python imports, and finds metadata. Raises `PackError`."""
    with path.open("wb") as raw, zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in _files(packages):
            entry = zipfile.ZipInfo(file.name, date_time=_DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(entry, file.read())
            _check_size(raw.tell())


def write_environment(packages: Iterable[Package], path: Path, *, python: str) -> None:
    """A virtual environment in a `.tar.gz`, whose Python is the one at that path of each executor.

    Raises `PackError`.
    """
    if not python.isprintable():
        # It is a line of a file of settings, and of a script.
        raise PackError(f"{python!r:.200} is not the path of a Python: it has control characters")
    minor = this_minor()
    launcher = _LAUNCHER.format(minor=minor, base=shlex.quote(python))
    settings = (
        f"home = {Path(python).parent}\ninclude-system-site-packages = false\nversion = {platform.python_version()}\n"
    )
    with (
        path.open("wb") as raw,
        # It is sent to a few machines and unpacked there: time counts more than size.
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=1, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        _add(archive, "pyvenv.cfg", settings.encode())
        _add(archive, "bin/python", launcher.encode(), mode=0o755)
        link = tarfile.TarInfo(f"bin/python{minor}")
        link.type, link.linkname = tarfile.SYMTYPE, python
        archive.addfile(link)
        for file in _files(packages):
            _add(archive, f"lib/python{minor}/site-packages/{file.name}", file.read())
            _check_size(raw.tell())


def _add(archive: tarfile.TarFile, name: str, data: bytes, *, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    archive.addfile(entry, io.BytesIO(data))


def _files(packages: Iterable[Package]) -> Iterator[PackedFile]:
    """Every name once: parts of one namespace may come from several distributions."""
    owners: dict[str, Package] = {}
    for package in packages:
        for file in package.files():
            before = owners.setdefault(file.name, package)
            if before is package:
                yield file


def _check_size(size: int) -> None:
    """Called after each file: what is too large is not written to its end."""
    problem = PACK_BYTES.problem(size)
    if problem is not None:
        raise PackError(f"the archive for executors is too large: {problem}")
