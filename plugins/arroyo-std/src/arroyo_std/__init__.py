"""The everyday operators of arroyo_core, under the prefix `std`; and what authors of `std.process` need."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arroyo_std.process import Process
    from arroyo_std.process_function import KeyedState, ProcessFunction, Timers

__all__ = ["KeyedState", "Process", "ProcessFunction", "Timers"]


def __getattr__(name: str) -> Any:
    # Every command imports this package with the plugin, and should not pay for what it does not use.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "arroyo_std.process" if name == "Process" else "arroyo_std.process_function"
    return getattr(importlib.import_module(module), name)
