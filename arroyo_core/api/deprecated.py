"""What operators that were written for an earlier version may still do; each thing for one version, with a warning."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any


def accept_inputs(kind: type, *names: str) -> None:
    """Let methods of an operator class that were written without `inputs` be called with them.

    Called when the class is made, so that the warning names the line of the class.
    """
    for name in names:
        method = inspect.getattr_static(kind, name)
        if inspect.isfunction(method) and not _takes_inputs(method):
            warnings.warn(
                f"{kind.__module__}.{kind.__qualname__}.{name}(self) is deprecated: write {name}(self, inputs), which "
                "is given the schemas of the inputs",
                DeprecationWarning,
                # Past this function, `__init_subclass__` and the metaclass of `ABC`.
                stacklevel=4,
            )
            setattr(kind, name, _ignoring_inputs(method))


def warn_define_table(table: str, operator_id: str) -> None:
    """For callers of `TableManager.define_table`."""
    warnings.warn(
        f"operator {operator_id!r}: define_table is deprecated. Give the columns of table {table!r} where it is "
        "declared, in tables(self, inputs)",
        DeprecationWarning,
        stacklevel=3,
    )


def warn_former_name(former: str, name: str) -> None:
    """For modules that still answer to a name that changed."""
    warnings.warn(f"{former} is called {name} now", DeprecationWarning, stacklevel=3)


def _takes_inputs(method: Callable[..., Any]) -> bool:
    try:
        inspect.signature(method).bind(None, ())
    except TypeError:
        return False
    return True


def _ignoring_inputs(method: Callable[[Any], Any]) -> Callable[..., Any]:
    def call(self: Any, inputs: Any = ()) -> Any:
        return method(self)

    call.__doc__ = method.__doc__
    return call
