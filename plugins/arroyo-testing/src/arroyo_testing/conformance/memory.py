"""Finds what an operator remembers outside its tables: attributes of the instance, of its class, and module globals.

Nothing here decides whether that is wrong: a cache is allowed. It names suspects once a result has changed.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from arroyo_testing.conformance.faults import shown

_PLAIN = (bool, int, float, str, bytes, type(None))
_MAX_ITEMS = 1000
_MAX_DEPTH = 3

#: By the name a person would write (`self._seen`, `CountEvents.total`): the value as text.
Remembered = Mapping[str, str]


def instance_memory(instance: object) -> Remembered:
    """The data in an instance's attributes, and one level down in objects of its own package."""
    found: dict[str, str] = {}
    for name, value in _attributes(instance).items():
        text = _text(value)
        if text is not None:
            found[f"self.{name}"] = text
        elif _package(type(value)) == _package(type(instance)):
            for inner_name, inner in _attributes(value).items():
                inner_text = _text(inner)
                if inner_text is not None:
                    found[f"self.{name}.{inner_name}"] = inner_text
    return found


def shared_memory(instance: object) -> Remembered:
    """The data in the instance's classes, and in the modules of its package."""
    found: dict[str, str] = {}
    for kind in type(instance).__mro__:
        if _package(kind) == _package(type(instance)):
            found |= _data_of(vars(kind), kind.__name__)
    for module in _modules(type(instance)):
        found |= _data_of(vars(module), module.__name__)
    return found


def changes(before: Remembered, after: Remembered) -> dict[str, tuple[str, str]]:
    """What differs, with both values."""
    return {
        name: (before.get(name, "nothing"), after.get(name, "nothing"))
        for name in [*before, *(name for name in after if name not in before)]
        if before.get(name) != after.get(name)
    }


def _attributes(instance: object) -> dict[str, Any]:
    found = dict(getattr(instance, "__dict__", {}))
    for kind in type(instance).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else slots:
            if hasattr(instance, name):
                found[name] = getattr(instance, name)
    return found


def _data_of(attributes: Mapping[str, Any], owner: str) -> dict[str, str]:
    texts = {name: _text(value) for name, value in attributes.items() if not name.startswith("__")}
    return {f"{owner}.{name}": text for name, text in texts.items() if text is not None}


def _modules(kind: type) -> list[ModuleType]:
    package = _package(kind)
    return [
        module
        for name, module in list(sys.modules.items())
        if isinstance(module, ModuleType) and (name == kind.__module__ or name.partition(".")[0] == package)
    ]


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]


def _text(value: Any, depth: int = 0) -> str | None:
    """Data as text; None for what is no data, such as views, files and functions."""
    if isinstance(value, (*_PLAIN, np.generic)):
        return shown(value)
    if isinstance(value, np.ndarray | pa.Array | pa.ChunkedArray):
        return shown(value.tolist() if len(value) <= _MAX_ITEMS else (len(value), str(value[-1])))
    if isinstance(value, pa.RecordBatch | pa.Table):
        return f"{value.num_rows} rows"
    if isinstance(value, dict):
        return _container_text(value, [*value.keys(), *value.values()], depth)
    if isinstance(value, list | tuple | set | frozenset | deque):
        return _container_text(value, list(value), depth)
    return None


def _container_text(container: Any, items: list[Any], depth: int) -> str:
    is_data = depth < _MAX_DEPTH and len(items) <= _MAX_ITEMS
    if is_data and all(_text(item, depth + 1) is not None for item in items):
        return shown(container)
    return f"{len(container)} entries"
