"""Functions of a running program as bundles: cloudpickle, with the Python version in the manifest.

A pickle runs code when it is loaded. So it is only ever loaded from bytes whose digest the plan pins,
and a pipeline file cannot name one.
"""

from __future__ import annotations

import contextlib
import platform
import sys
from collections.abc import Iterator
from types import ModuleType

import cloudpickle

from arroyo_core.api.limits import BUNDLE_BYTES
from arroyo_core.udf.archive import write_archive
from arroyo_core.udf.bundle import PICKLE
from arroyo_core.udf.code_digest import code_digest
from arroyo_core.udf.failures import BundleError
from arroyo_core.udf.manifest import MANIFEST, ContentKind, Manifest, describe_functions
from arroyo_core.udf.own_modules import own_modules
from arroyo_core.udf.user_function import UserFunction


def pickle_function(function: UserFunction) -> bytes:
    """A bundle of one function, with all code of the program's own that it uses.

    What is installed is referred to by name, and must be on executors too. Equal functions give
    equal bytes most of the time only: `Manifest.code_sha256` is what does not change.
    """
    with _by_value():
        try:
            body = cloudpickle.dumps((function,), protocol=5)
        except Exception as error:
            raise BundleError(
                f"the function {function.name!r} cannot be sent to executors: {type(error).__name__}: {error}; "
                "something that it uses (a global, a default or a variable around it) cannot be pickled"
            ) from error
    manifest = Manifest(
        content=ContentKind.PICKLE,
        name=function.name,
        version=".".join(platform.python_version_tuple()[:2]),
        functions=describe_functions([function]),
        code_sha256=code_digest(function),
    )
    data = write_archive({PICKLE: body, MANIFEST: manifest.encode()})
    if len(data) > BUNDLE_BYTES.value:
        raise BundleError(
            f"the function {function.name!r} comes to {len(data)} bytes with the data that it holds: read large "
            f"data from a file instead ({BUNDLE_BYTES.hint})"
        )
    return data


@contextlib.contextmanager
def _by_value() -> Iterator[None]:
    """Let cloudpickle take the program's own modules with it, as it does with `__main__`."""
    registered = []
    known = {"__main__", *cloudpickle.list_registry_pickle_by_value()}
    for name in own_modules():
        module = sys.modules.get(name)
        # Some programs put other things there, or a module under a second name.
        if name not in known and isinstance(module, ModuleType) and module.__name__ == name:
            cloudpickle.register_pickle_by_value(module)
            registered.append(module)
    try:
        yield
    finally:
        for module in registered:
            cloudpickle.unregister_pickle_by_value(module)
