"""Imports the modules of a bundle from memory, under a private name of its own.

Module `geo` of a bundle becomes `_arroyo_udf_<digest>.geo`, so two versions of a bundle live side by
side, and neither hides an installed package. Inside the bundle its modules see one another by their
own names: relative imports work by themselves, absolute ones through an `__import__` of the bundle's own.
`importlib.import_module("geo")` does not pass through it: bundles use import statements.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import linecache
import sys
import threading
import zipfile
from collections.abc import Mapping, Sequence
from importlib.resources.abc import Traversable, TraversableResources
from types import CodeType, ModuleType
from typing import Any

from arroyo_core.udf.archive import write_archive
from arroyo_core.udf.bundle import Bundle, module_path

PREFIX = "_arroyo_udf_"
#: How much of the digest names the modules: nobody finds two bundles that agree in this many digits by accident.
_DIGITS = 32

_lock = threading.Lock()


def private_root(sha256: str) -> str:
    """The private package of a bundle."""
    return f"{PREFIX}{sha256[:_DIGITS]}"


def import_module(bundle: Bundle, module: str) -> ModuleType:
    """Import one module of a bundle; the same object every time in one process."""
    _install(bundle)
    return importlib.import_module(f"{private_root(bundle.sha256)}.{module}")


def forget(bundle: Bundle) -> None:
    """Drop the modules of a bundle that could not be imported wholly."""
    root = private_root(bundle.sha256)
    with _lock:
        _FINDER.bundles.pop(root, None)
        for name in [name for name in sys.modules if name == root or name.startswith(f"{root}.")]:
            del sys.modules[name]


def _install(bundle: Bundle) -> None:
    with _lock:
        _FINDER.bundles.setdefault(private_root(bundle.sha256), bundle)
        if _FINDER not in sys.meta_path:
            sys.meta_path.append(_FINDER)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self) -> None:
        self.bundles: dict[str, Bundle] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        root, _, module = fullname.partition(".")
        bundle = self.bundles.get(root)
        if bundle is None:
            return None
        if not module:
            return importlib.util.spec_from_loader(fullname, _RootLoader(), is_package=True)
        source = module_path(bundle.files, module)
        if source is None:
            return None
        is_package = source.endswith("/__init__.py")
        loader = _Loader(bundle, source, is_package)
        return importlib.util.spec_from_loader(fullname, loader, origin=loader.filename, is_package=is_package)


class _RootLoader(importlib.abc.Loader):
    """The private package itself is empty."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        return


class _Loader(importlib.abc.InspectLoader):
    def __init__(self, bundle: Bundle, path: str, is_package: bool) -> None:
        self._bundle = bundle
        self._path = path
        self._is_package = is_package
        #: Not the name of a file anywhere, and readable in a traceback.
        self.filename = f"{bundle.manifest.name}-{bundle.manifest.version}@{bundle.sha256[:12]}/{path}"

    def get_source(self, fullname: str) -> str:
        return importlib.util.decode_source(self._bundle.files[self._path])

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = compile(self.get_source(fullname), self.filename, "exec", dont_inherit=True)
        return code

    def is_package(self, fullname: str) -> bool:
        return self._is_package

    def exec_module(self, module: ModuleType) -> None:
        source = self.get_source(module.__name__)
        # Without a time, so that linecache does not look for a file.
        linecache.cache[self.filename] = (len(source), None, source.splitlines(keepends=True), self.filename)
        module.__file__ = self.filename
        module.__dict__["__builtins__"] = _builtins_of(self._bundle)
        exec(self.get_code(module.__name__), module.__dict__)

    def get_resource_reader(self, fullname: str) -> TraversableResources:
        """For `importlib.resources.files(__package__)`: data files of the bundle."""
        return _Resources(self._bundle.files, self._path.rpartition("/")[0])


class _Resources(TraversableResources):
    def __init__(self, files: Mapping[str, bytes], folder: str) -> None:
        self._files = files
        self._folder = folder

    def files(self) -> Traversable:
        return zipfile.Path(zipfile.ZipFile(io.BytesIO(write_archive(self._files))), f"{self._folder}/")


def _builtins_of(bundle: Bundle) -> dict[str, Any]:
    """Python's builtins, with an `__import__` that knows the bundle's own modules."""
    root, own = private_root(bundle.sha256), bundle.top_level

    def import_(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        top = name.partition(".")[0]
        if level or top not in own:
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        module = builtins.__import__(f"{root}.{name}", globals, locals, fromlist or ("__name__",), 0)
        return module if fromlist else sys.modules[f"{root}.{top}"]

    return {**vars(builtins), "__import__": import_}


_FINDER = _Finder()
