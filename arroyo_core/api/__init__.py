"""The contract with authors of operators: traits, contexts, schemas, signals, views of tables, the registry."""

from typing import TYPE_CHECKING, Any

from arroyo_core.api.clock import Clock, SystemClock
from arroyo_core.api.collector import ArrowCollector, SourceCollector
from arroyo_core.api.config_defaults import with_defaults
from arroyo_core.api.constructor import ConstructedOperator, OperatorConstructor
from arroyo_core.api.context import OperatorContext, SourceContext
from arroyo_core.api.datasets import Dataset
from arroyo_core.api.deprecated import warn_former_name
from arroyo_core.api.given import GivenPosition, GivenRows
from arroyo_core.api.guarantee import Guarantee
from arroyo_core.api.lookup import KeyedLookupTable, LookupConstructor, LookupSource, LookupTable
from arroyo_core.api.operations import DataOperation, DeleteKey, DeleteTimeKey, DeleteTimeRange, DeleteValue, Insert
from arroyo_core.api.operator import ArrowOperator, DisplayableOperator, SourceOperator, UnboundedState
from arroyo_core.api.outages import OUTAGES, Outage, Outages, RetryPolicy
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
from arroyo_core.api.state_tables import StateTables
from arroyo_core.api.token import CommitToken
from arroyo_core.api.views import (
    ExpiringTimeKeyState,
    GlobalKeyedState,
    KeyTimeState,
    LastKeyValueState,
    Matches,
    PartitionedKeyedState,
)
from arroyo_core.ids import KeyRange, TaskInfo

__all__ = [
    "END_OF_TIME_US",
    "OUTAGES",
    "ArrowCollector",
    "ArrowOperator",
    "ArroyoSchema",
    "CheckpointBarrier",
    "Clock",
    "CommitToken",
    "ConstructedOperator",
    "ControlMessage",
    "DataOperation",
    "Dataset",
    "DeleteKey",
    "DeleteTimeKey",
    "DeleteTimeRange",
    "DeleteValue",
    "DisplayableOperator",
    "ExpiringTimeKeyState",
    "GivenPosition",
    "GivenRows",
    "GlobalKeyedState",
    "Guarantee",
    "Insert",
    "KeyRange",
    "KeyTimeState",
    "KeyedLookupTable",
    "LastKeyValueState",
    "LookupConstructor",
    "LookupSource",
    "LookupTable",
    "Matches",
    "OperatorConstructor",
    "OperatorContext",
    "Origin",
    "Outage",
    "Outages",
    "PartitionedKeyedState",
    "Registry",
    "RetryPolicy",
    "SignalMessage",
    "SourceCollector",
    "SourceContext",
    "SourceFinishType",
    "SourceOperator",
    "StateTables",
    "StopRequest",
    "SystemClock",
    "TaskInfo",
    "Udf",
    "UnboundedState",
    "Watermark",
    "with_defaults",
]

if not TYPE_CHECKING:
    # Type checkers would take any name for one of this module.
    def __getattr__(name: str) -> Any:
        if name == "TableManager":
            warn_former_name("arroyo_core.api.TableManager", "arroyo_core.api.StateTables")
            return StateTables
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
