"""Makes bundles: a wheel from a project folder, a zip from one module. Equal sources give equal bytes.

Written by hand, without a build backend: nothing is fetched, nothing of the machine gets in.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from arroyo_core.udf.archive import write_archive
from arroyo_core.udf.bundle import Bundle, sha256_of
from arroyo_core.udf.failures import BundleError
from arroyo_core.udf.loading import collect_functions
from arroyo_core.udf.manifest import MANIFEST, Manifest, check_environment, describe_functions
from arroyo_core.udf.memory_import import forget

_SKIPPED_FOLDERS = {"__pycache__", ".git", ".mypy_cache", ".pytest_cache", ".ruff_cache"}
_SKIPPED_SUFFIXES = {".pyc", ".pyo"}
#: The block of metadata that a single file may have, as scripts do: `# /// script` ... `# ///`.
_INLINE = re.compile(r"^# /// script[ \t]*\n(?P<body>(?:#(?: [^\n]*)?\n)+?)# ///[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class BuiltBundle:
    """A bundle that was just made, with the name its file should have."""

    file_name: str
    manifest: Manifest
    data: bytes = field(repr=False)

    @property
    def sha256(self) -> str:
        return sha256_of(self.data)


def build_bundle(source: str | Path) -> BuiltBundle:
    """The bundle of a folder with a `pyproject.toml`, or of one `.py` file.

    Imports the code to learn its functions; so what it depends on must be installed.
    """
    path = Path(source)
    if path.is_dir():
        return _build_wheel(path)
    if path.is_file() and path.suffix == ".py":
        return _build_zip(path)
    if not path.exists():
        raise BundleError(f"there is no {path}: give a folder with a pyproject.toml, or a .py file")
    raise BundleError(f"{path} is neither a folder with a pyproject.toml nor a .py file")


def _build_zip(path: Path) -> BuiltBundle:
    module = path.stem
    if not module.isidentifier():
        raise BundleError(f"{path}: {module!r} is not a name for a Python module")
    code = _read(path)
    text = code.decode("utf-8", errors="replace")
    inline = _inline_metadata(text, path)
    manifest = Manifest(
        name=module.replace("_", "-"),
        version=_module_version(text, path),
        requires_python=str(inline.get("requires-python", "")),
        dependencies=tuple(sorted(inline.get("dependencies", ()))),
        modules=(module,),
    )
    files = {f"{module}.py": code}
    manifest = _with_functions(manifest, files)
    data = write_archive({**files, MANIFEST: manifest.encode()})
    return BuiltBundle(f"{module}-{manifest.version}.zip", manifest, data)


def _build_wheel(folder: Path) -> BuiltBundle:
    project = _project(folder)
    files = _package_files(folder, str(project["name"]))
    manifest = Manifest(
        name=str(canonicalize_name(project["name"])),
        version=str(project["version"]),
        requires_python=str(project.get("requires-python", "")),
        dependencies=tuple(sorted(project.get("dependencies", ()))),
        modules=_public_modules(files),
    )
    manifest = _with_functions(manifest, files)
    stem = f"{manifest.name.replace('-', '_')}-{manifest.version}"
    info = f"{stem}.dist-info"
    files = {
        **files,
        f"{info}/{MANIFEST}": manifest.encode(),
        f"{info}/METADATA": _metadata(manifest, str(project.get("description", ""))),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: arroyo-core\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    points = _entry_points(project.get("entry-points", {}))
    if points:
        files[f"{info}/entry_points.txt"] = points
    files[f"{info}/RECORD"] = _record(files, f"{info}/RECORD")
    return BuiltBundle(f"{stem}-py3-none-any.whl", manifest, write_archive(files))


def _with_functions(manifest: Manifest, files: Mapping[str, bytes]) -> Manifest:
    """The manifest with the functions that the code defines; imported as a bundle is, and forgotten again."""
    # Any digest does that names these sources: the bundle's own is not known yet.
    digest = sha256_of(write_archive({**files, MANIFEST: manifest.encode()}))
    draft = Bundle(manifest=manifest, sha256=digest, files=files)
    check_environment(manifest, what=str(manifest))
    try:
        functions = describe_functions(collect_functions(draft))
    finally:
        forget(draft)
    return Manifest(
        name=manifest.name,
        version=manifest.version,
        requires_python=manifest.requires_python,
        dependencies=manifest.dependencies,
        modules=manifest.modules,
        functions=functions,
    )


def _project(folder: Path) -> dict[str, Any]:
    path = folder / "pyproject.toml"
    try:
        document = tomllib.loads(_read(path).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BundleError(f"{path} is not TOML: {error}") from error
    project: dict[str, Any] = document.get("project", {})
    for key in ("name", "version"):
        if not isinstance(project.get(key), str):
            raise BundleError(f"{path}: [project] needs {key!r} as a string; a dynamic one cannot be built here")
    _check_version(project["version"], path)
    return project


def _package_files(folder: Path, name: str) -> dict[str, bytes]:
    root = folder / "src" if (folder / "src").is_dir() else folder
    package = canonicalize_name(name).replace("-", "_")
    if (root / package).is_dir():
        tops = [root / package]
    elif (root / f"{package}.py").is_file():
        tops = [root / f"{package}.py"]
    elif root != folder:
        tops = [path for path in sorted(root.iterdir()) if (path / "__init__.py").is_file() or path.suffix == ".py"]
    else:
        tops = []
    files = {path.relative_to(root).as_posix(): _read(path) for path in _walk(tops)}
    if not any(path.endswith(".py") for path in files):
        raise BundleError(f"{folder} has no package {package!r}: expected src/{package}/ or {package}/")
    return files


def _walk(paths: Iterable[Path]) -> Iterable[Path]:
    for path in sorted(paths):
        if path.is_symlink():
            raise BundleError(f"{path} is a link: a bundle holds plain files only")
        if path.is_dir():
            if path.name not in _SKIPPED_FOLDERS and not path.name.endswith(".egg-info"):
                yield from _walk(path.iterdir())
        elif path.suffix not in _SKIPPED_SUFFIXES:
            yield path


def _public_modules(files: Iterable[str]) -> tuple[str, ...]:
    """All modules but those with a name that begins with `_`: importing finds the functions."""
    modules = []
    for path in files:
        parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
        if path.endswith(".py") and not any(part.startswith("_") for part in parts):
            modules.append(".".join(parts))
    return tuple(sorted(modules))


def _inline_metadata(text: str, path: Path) -> dict[str, Any]:
    found = _INLINE.search(text)
    if found is None:
        return {}
    body = "".join(line.removeprefix("#").removeprefix(" ") + "\n" for line in found["body"].splitlines())
    try:
        return tomllib.loads(body)
    except tomllib.TOMLDecodeError as error:
        raise BundleError(f"{path}: the block '# /// script' is not TOML: {error}") from error


def _module_version(text: str, path: Path) -> str:
    """The `__version__` that the module gives as a literal; `0` without one."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise BundleError(f"{path}, line {error.lineno}: {error.msg}") from error
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__version__" for target in statement.targets
        ):
            if not (isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)):
                raise BundleError(f"{path}, line {statement.lineno}: __version__ must be a plain string")
            _check_version(statement.value.value, path)
            return statement.value.value
    return "0"


def _check_version(version: str, path: Path) -> None:
    try:
        Version(version)
    except InvalidVersion as error:
        raise BundleError(f"{path}: {version!r} is not a version such as 1.2.0") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BundleError(f"cannot read {path}: {error.strerror or error}") from error


def _metadata(manifest: Manifest, summary: str) -> bytes:
    lines = ["Metadata-Version: 2.1", f"Name: {manifest.name}", f"Version: {manifest.version}"]
    if summary:
        lines.append(f"Summary: {' '.join(summary.split())}")
    if manifest.requires_python:
        lines.append(f"Requires-Python: {manifest.requires_python}")
    lines += [f"Requires-Dist: {dependency}" for dependency in manifest.dependencies]
    return ("\n".join(lines) + "\n").encode()


def _entry_points(groups: Mapping[str, Mapping[str, str]]) -> bytes:
    lines = []
    for group in sorted(groups):
        lines += [f"[{group}]", *(f"{name} = {groups[group][name]}" for name in sorted(groups[group])), ""]
    return "\n".join(lines).encode()


def _record(files: Mapping[str, bytes], own_path: str) -> bytes:
    lines = []
    for path in sorted(files):
        digest = base64.urlsafe_b64encode(hashlib.sha256(files[path]).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(files[path])}")
    return ("\n".join([*lines, f"{own_path},,"]) + "\n").encode()
