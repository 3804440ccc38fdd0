"""The contract with authors of operators: traits, contexts, schemas, signals, the registry."""

from arroyo_core.api.clock import Clock, SystemClock
from arroyo_core.api.collector import ArrowCollector, SourceCollector
from arroyo_core.api.constructor import ConstructedOperator, OperatorConstructor
from arroyo_core.api.context import OperatorContext, SourceContext, TableManager
from arroyo_core.api.guarantee import Guarantee
from arroyo_core.api.operator import ArrowOperator, DisplayableOperator, SourceOperator, UnboundedState
from arroyo_core.api.registry import Origin, Registry, Udf
from arroyo_core.api.schema import ArroyoSchema
from arroyo_core.api.signals import (
    END_OF_TIME_US,
    CheckpointBarrier,
    ControlMessage,
    SignalMessage,
    SourceFinishType,
    StopRequest,
    Watermark,
)
from arroyo_core.api.token import CommitToken
from arroyo_core.ids import KeyRange, TaskInfo

__all__ = [
    "END_OF_TIME_US",
    "ArrowCollector",
    "ArrowOperator",
    "ArroyoSchema",
    "CheckpointBarrier",
    "Clock",
    "CommitToken",
    "ConstructedOperator",
    "ControlMessage",
    "DisplayableOperator",
    "Guarantee",
    "KeyRange",
    "OperatorConstructor",
    "OperatorContext",
    "Origin",
    "Registry",
    "SignalMessage",
    "SourceCollector",
    "SourceContext",
    "SourceFinishType",
    "SourceOperator",
    "StopRequest",
    "SystemClock",
    "TableManager",
    "TaskInfo",
    "Udf",
    "UnboundedState",
    "Watermark",
]
