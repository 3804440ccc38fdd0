"""Runs plans on Spark, and brings DataFrames in and out; the only package of the core that imports pyspark."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arroyo_core.spark.application import apply
    from arroyo_core.spark.provisions import Provider, Provision
    from arroyo_core.spark.state_source import StateSource

__all__ = ["Provider", "Provision", "StateSource", "apply"]

_MODULES = {
    "Provider": "arroyo_core.spark.provisions",
    "Provision": "arroyo_core.spark.provisions",
    "StateSource": "arroyo_core.spark.state_source",
    "apply": "arroyo_core.spark.application",
}


def __getattr__(name: str) -> Any:
    # Workers import modules of this package, and must not wait for what only drivers need.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
