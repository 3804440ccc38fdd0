"""Arroyo's stream-processing operators and Parquet state, in Python, on Spark."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    CheckpointBarrier,
    CommitToken,
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
    UnboundedState,
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
    UdfDeclarationError,
    UdfError,
    UdfTimeoutError,
)

if TYPE_CHECKING:
    from arroyo_core.runtime.events import StopMode
    from arroyo_core.runtime.start import StartOptions
    from arroyo_core.runtime.stop import StopSignal
    from arroyo_core.spark.pipeline import Pipeline

__all__ = [
    "ArrowCollector",
    "ArrowOperator",
    "ArroyoError",
    "ArroyoSchema",
    "CheckpointBarrier",
    "CommitToken",
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
    "StartOptions",
    "StateError",
    "StopMode",
    "StopSignal",
    "TaskInfo",
    "UdfDeclarationError",
    "UdfError",
    "UdfTimeoutError",
    "UnboundedState",
    "Watermark",
]


#: What drives jobs, by the module that has it: executors, which import this package in every worker
#: process, need none of it.
_DRIVING = {
    "Pipeline": "arroyo_core.spark.pipeline",
    "StartOptions": "arroyo_core.runtime.start",
    "StopMode": "arroyo_core.runtime.events",
    "StopSignal": "arroyo_core.runtime.stop",
}


def __getattr__(name: str) -> Any:
    if name in _DRIVING:
        return getattr(import_module(_DRIVING[name]), name)
    raise AttributeError(name)
