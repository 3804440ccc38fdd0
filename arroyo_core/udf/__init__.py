"""Functions of the user's own: decorators that declare them, and what they become."""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from arroyo_core.plugin import known_elsewhere
from arroyo_core.udf.aggregate import AggregateUdf, udaf
from arroyo_core.udf.asynchronous import AsyncUdf, async_udf
from arroyo_core.udf.batch import BatchUdf, batch_udf
from arroyo_core.udf.scalar import ScalarUdf, udf
from arroyo_core.udf.user_function import Parameter, SourceKind, UdfSource, UserFunction, Volatility

__all__ = [
    "AggregateUdf",
    "AsyncUdf",
    "BatchUdf",
    "Parameter",
    "ScalarUdf",
    "SourceKind",
    "UdfSource",
    "UserFunction",
    "Volatility",
    "async_udf",
    "batch_udf",
    "udaf",
    "udf",
]

#: They are where they are used, and work here for one more version.
_MOVED = ("Calls", "InFlight", "to_column")

if not TYPE_CHECKING:
    # Type checkers would take any name for one of this module.
    def __getattr__(name: str) -> Any:
        if name not in _MOVED:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = f"{known_elsewhere('modules')['in_flight'].replace('-', '_')}.in_flight"
        warnings.warn(f"{__name__}.{name} has moved: import it from {module}", DeprecationWarning, stacklevel=2)
        return getattr(import_module(module), name)
