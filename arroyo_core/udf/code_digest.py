"""A digest of code and of what it holds, the same in every run of the same program.

Pickles of equal functions differ between runs: cloudpickle gives classes random ids, and sets have
no order. So changes are noticed by this digest: bytecode, constants, defaults, closures and the globals that
functions use, as deep as it goes through the program's own code. Installed code counts by name and version.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import metadata
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from arroyo_core.udf.own_modules import is_own_module

#: Members of a class that say where it was written, not what it does.
_PLACES = {"__dict__", "__weakref__", "__module__", "__doc__", "__firstlineno__", "__static_attributes__"}
#: Where a function came from, and what it is called here, is not a part of what it does.
_UNCOUNTED_FIELDS = {"source"}


def code_digest(value: object) -> str:
    """The digest in hex."""
    return _Walk().digest(value).hex()


class _Walk:
    def __init__(self) -> None:
        #: What is being walked or was, by identity: code may refer to itself. Kept alive, or ids would come again.
        self._seen: dict[int, tuple[int, object]] = {}

    def digest(self, value: object) -> bytes:
        if value is None or isinstance(value, bool | int | float | complex | str | bytes):
            return _hash(type(value).__name__, repr(value).encode())
        # Whether equal constants are one object differs between a module just compiled and one from its .pyc.
        if isinstance(value, tuple | frozenset | CodeType):
            return self._structure(value)
        known = self._seen.get(id(value))
        if known is not None:
            return _hash("again", str(known[0]).encode())
        self._seen[id(value)] = (len(self._seen), value)
        return self._structure(value)

    def _structure(self, value: object) -> bytes:
        match value:
            case tuple() | list():
                return self._all(type(value).__name__, value)
            case Mapping():
                pairs = [(self.digest(key), value[key]) for key in value]
                return _hash(
                    "mapping", *(part for key, item in sorted(pairs, key=_first) for part in (key, self.digest(item)))
                )
            case Set():
                # Each on its own, because the order they come in is not the same in every run.
                return _hash("set", *sorted(_Walk().digest(item) for item in value))
            case CodeType():
                return self._code(value)
            case FunctionType():
                return self._function(value)
            case MethodType():
                return self._all("method", (value.__func__, value.__self__))
            case CellType():
                return self._all("cell", (value.cell_contents,))
            case ModuleType():
                return _hash("module", _installed(value.__name__).encode())
            case BuiltinFunctionType():
                return _hash("builtin", f"{value.__module__}.{value.__qualname__}".encode())
            case type():
                return self._class(value)
            case staticmethod() | classmethod():
                return self._all(type(value).__name__, (value.__func__,))
            case property():
                return self._all("property", (value.fget, value.fset, value.fdel))
            case _:
                return self._object(value)

    def _all(self, kind: str, values: Iterable[object]) -> bytes:
        return _hash(kind, *(self.digest(value) for value in values))

    def _code(self, code: CodeType) -> bytes:
        shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        return self._all("code", (code.co_name, shape, code.co_code, code.co_consts, names))

    def _function(self, function: FunctionType) -> bytes:
        if not is_own_module(function.__module__):
            return _hash("function", f"{_installed(function.__module__)}:{function.__qualname__}".encode())
        names = sorted(_names(function.__code__))
        used = {name: _used_of(function.__globals__[name], names) for name in names if name in function.__globals__}
        return self._all(
            "own function",
            (function.__code__, function.__defaults__, function.__kwdefaults__, function.__closure__, used),
        )

    def _class(self, cls: type) -> bytes:
        if not is_own_module(cls.__module__):
            return _hash("class", f"{_installed(cls.__module__)}:{cls.__qualname__}".encode())
        members = {name: member for name, member in vars(cls).items() if name not in _PLACES}
        return self._all("own class", (cls.__name__, cls.__bases__, members))

    def _object(self, value: object) -> bytes:
        if is_dataclass(value):
            counted = {
                item.name: getattr(value, item.name) for item in fields(value) if item.name not in _UNCOUNTED_FIELDS
            }
            return self._all("dataclass", (type(value), counted))
        if is_own_module(type(value).__module__):
            return self._all("object", (type(value), getattr(value, "__dict__", None)))
        try:
            return _hash("pickle", pickle.dumps(value, protocol=5))
        except Exception:
            return self._all("opaque", (type(value),))


def _used_of(value: object, names: Sequence[str], parents: tuple[object, ...] = ()) -> object:
    """For a module of the program's own: those of its members that are named where it is used."""
    if not isinstance(value, ModuleType) or not is_own_module(value.__name__) or value in parents:
        return value
    members = vars(value)
    return {name: _used_of(members[name], names, (*parents, value)) for name in names if name in members}


def _names(code: CodeType) -> set[str]:
    """Every name that the code, and the code inside it, may look up as a global."""
    inner = (item for item in code.co_consts if isinstance(item, CodeType))
    return set(code.co_names).union(*(_names(item) for item in inner))


def _first(pair: tuple[bytes, Any]) -> bytes:
    return pair[0]


def _hash(kind: str, *parts: bytes) -> bytes:
    hasher = hashlib.sha256(kind.encode())
    for part in parts:
        hasher.update(len(part).to_bytes(8, "little"))
        hasher.update(part)
    return hasher.digest()


def _installed(module: str) -> str:
    """A module that is installed, with the versions of what brought it."""
    return f"{module} {' '.join(_versions(module.partition('.')[0]))}"


@cache
def _versions(top: str) -> tuple[str, ...]:
    if top in sys.stdlib_module_names:
        return (f"python {sys.version_info.major}.{sys.version_info.minor}",)
    found = metadata.packages_distributions().get(top, [])
    return tuple(f"{name} {metadata.version(name)}" for name in sorted(set(found)))
