"""Arroyo's stream-processing operators and Parquet state, in Python, on Spark."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from arroyo_core.pipeline.builder.stream import Stream
    from arroyo_core.runtime.events import StopMode
    from arroyo_core.runtime.handle import JobHandle
    from arroyo_core.runtime.rescale import RescaleSignal
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
    "JobHandle",
    "OperatorConstructor",
    "OperatorContext",
    "OperatorError",
    "Pipeline",
    "PipelineError",
    "PluginError",
    "Registry",
    "RescaleSignal",
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
    "Stream",
    "TaskInfo",
    "UdfDeclarationError",
    "UdfError",
    "UdfTimeoutError",
    "UnboundedState",
    "Watermark",
]

#: What drives jobs; all other names are of `arroyo_core.api` or `arroyo_core.errors`.
_DRIVING = {
    "JobHandle": "arroyo_core.runtime.handle",
    "Pipeline": "arroyo_core.spark.pipeline",
    "RescaleSignal": "arroyo_core.runtime.rescale",
    "StartOptions": "arroyo_core.runtime.start",
    "StopMode": "arroyo_core.runtime.events",
    "StopSignal": "arroyo_core.runtime.stop",
    "Stream": "arroyo_core.pipeline.builder.stream",
}


def __getattr__(name: str) -> Any:
    # Nothing is imported before it is asked for: Spark waits for its daemon, and pytest for its plugins.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    is_error = name.endswith("Error")
    module = import_module(_DRIVING.get(name) or ("arroyo_core.errors" if is_error else "arroyo_core.api"))
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
