"""Arroyo's stream-processing operators and Parquet state, in Python, on Spark."""

from typing import TYPE_CHECKING, Any

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    CheckpointBarrier,
    ConstructedOperator,
    DisplayableOperator,
    Guarantee,
    OperatorConstructor,
    OperatorContext,
    Registry,
    SignalMessage,
    SourceCollector,
    SourceContext,
    SourceFinishType,
    SourceOperator,
    TaskInfo,
    Watermark,
)
from arroyo_core.errors import (
    ArroyoError,
    ConfigError,
    DataError,
    ExchangeError,
    ExternalError,
    InvalidPipelineError,
    OperatorError,
    PipelineError,
    PluginError,
    SetupError,
    StateError,
)

if TYPE_CHECKING:
    from arroyo_core.spark.pipeline import Pipeline

__all__ = [
    "ArrowCollector",
    "ArrowOperator",
    "ArroyoError",
    "ArroyoSchema",
    "CheckpointBarrier",
    "ConfigError",
    "ConstructedOperator",
    "DataError",
    "DisplayableOperator",
    "ExchangeError",
    "ExternalError",
    "Guarantee",
    "InvalidPipelineError",
    "OperatorConstructor",
    "OperatorContext",
    "OperatorError",
    "Pipeline",
    "PipelineError",
    "PluginError",
    "Registry",
    "SetupError",
    "SignalMessage",
    "SourceCollector",
    "SourceContext",
    "SourceFinishType",
    "SourceOperator",
    "StateError",
    "TaskInfo",
    "Watermark",
]


def __getattr__(name: str) -> Any:
    # Executors import this package for every worker process: the planner stays out of their way.
    if name == "Pipeline":
        from arroyo_core.spark.pipeline import Pipeline

        return Pipeline
    raise AttributeError(name)
