"""From a parsed bundle to its functions, once per process and digest."""

from __future__ import annotations

import pickle
import platform
import threading
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import ModuleType

from arroyo_core.udf.bundle import PICKLE, Bundle
from arroyo_core.udf.failures import BundleError
from arroyo_core.udf.manifest import ContentKind, Manifest, check_environment, describe_functions
from arroyo_core.udf.memory_import import forget, import_module
from arroyo_core.udf.user_function import SourceKind, UdfSource, UserFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedBundle:
    """The functions of a bundle, under their own names."""

    manifest: Manifest
    sha256: str
    functions: tuple[UserFunction, ...] = field(repr=False)

    @property
    def source(self) -> UdfSource:
        is_pickle = self.manifest.content is ContentKind.PICKLE
        return UdfSource(
            kind=SourceKind.PICKLE if is_pickle else SourceKind.BUNDLE,
            name=self.manifest.name,
            version=self.manifest.version,
            sha256=self.sha256,
        )

    def functions_as(self, alias: str | None) -> tuple[UserFunction, ...]:
        """The functions as pipelines call them: `alias.name` where there is an alias."""
        return tuple(function.at(self.source, prefix=alias) for function in self.functions)


_loaded: dict[str, LoadedBundle] = {}
_lock = threading.RLock()


def load_bundle(bundle: Bundle) -> LoadedBundle:
    """Import a bundle and collect its functions; raises `BundleError` for whatever is wrong with it.

    A pickle is loaded too: whoever calls has seen to it that its digest is pinned.
    """
    with _lock:
        loaded = _loaded.get(bundle.sha256)
        if loaded is None:
            check_environment(bundle.manifest, what=str(bundle))
            is_pickle = bundle.manifest.content is ContentKind.PICKLE
            functions = _unpickle(bundle) if is_pickle else collect_functions(bundle)
            _check_functions(bundle, functions)
            loaded = LoadedBundle(manifest=bundle.manifest, sha256=bundle.sha256, functions=functions)
            _loaded[bundle.sha256] = loaded
        return loaded


def import_modules(bundle: Bundle) -> list[ModuleType]:
    """Import every module that the manifest names; the code of the bundle runs here."""
    try:
        return [import_module(bundle, name) for name in bundle.manifest.modules]
    except BaseException as error:
        forget(bundle)
        # A bundle that calls `sys.exit` on import has failed too, and must not end the process.
        if isinstance(error, KeyboardInterrupt):
            raise
        raise BundleError(f"{bundle} cannot be imported: {_describe(error)}") from error


def collect_functions(bundle: Bundle) -> tuple[UserFunction, ...]:
    """The functions that the modules of a bundle define, sorted by name."""
    found: dict[str, tuple[UserFunction, str]] = {}
    for module in import_modules(bundle):
        place = module.__name__.partition(".")[2]
        for attribute, value in vars(module).items():
            if attribute.startswith("_") or not isinstance(value, UserFunction):
                continue
            other, where = found.setdefault(value.name, (value, place))
            if other is not value:
                raise BundleError(f"{bundle} defines {value.name!r} twice: in {where} and in {place}")
    if not found:
        raise BundleError(
            f"{bundle} defines no functions in {', '.join(bundle.manifest.modules)}: decorate them with "
            "@udf, @udaf, @async_udf or @batch_udf"
        )
    return tuple(found[name][0] for name in sorted(found))


def _unpickle(bundle: Bundle) -> tuple[UserFunction, ...]:
    wanted = bundle.manifest.version
    here = ".".join(platform.python_version_tuple()[:2])
    if wanted != here:
        raise BundleError(
            f"{bundle} was pickled by Python {wanted}, and this is Python {here}: pickled functions need the same "
            "version on the driver and on every executor; a bundle made with `arroyo udf build` does not"
        )
    try:
        functions = pickle.loads(bundle.files[PICKLE])
    except Exception as error:
        raise BundleError(f"{bundle} cannot be loaded: {_describe(error)}") from error
    if not isinstance(functions, tuple) or not all(isinstance(function, UserFunction) for function in functions):
        raise BundleError(f"{bundle} holds something else than user functions")
    return functions


def _check_functions(bundle: Bundle, functions: Iterable[UserFunction]) -> None:
    described = {function.name: function for function in describe_functions(tuple(functions))}
    stated = {function.name: function for function in bundle.manifest.functions}
    wrong = [
        f"{name}: {stated[name].signature if name in stated else 'not there'} in the manifest, "
        f"{described[name].signature if name in described else 'not there'} in the code"
        for name in sorted({*described, *stated})
        if described.get(name) != stated.get(name)
    ]
    if wrong:
        raise BundleError(f"{bundle} is not what its manifest says, build it again ({'; '.join(wrong)})")


def _describe(error: BaseException) -> str:
    """The error, and the line of the bundle where it happened."""
    text = f"{type(error).__name__}: {error}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "@" in frame.filename]
    if isinstance(error, SyntaxError) or not frames:
        return text
    return f"{text} ({frames[-1].filename}, line {frames[-1].lineno}: {frames[-1].line})"
