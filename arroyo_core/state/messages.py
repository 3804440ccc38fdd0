"""What tables tell their checkpointers, and what a row of state does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import pyarrow as pa

from arroyo_core.api.operations import (
    DeleteKey,
    DeleteTimeKey,
    DeleteTimeRange,
    DeleteValue,
    Insert,
)
from arroyo_core.proto.state_pb2 import StateFile


class OperationCode(IntEnum):
    """The value of a data file's `_operation` column."""

    INSERT = 0
    DELETE_TIME_KEY = 1
    DELETE_KEY = 2
    DELETE_VALUE = 3
    DELETE_TIME_RANGE = 4


OPERATION_CODES: Mapping[type, OperationCode] = {
    Insert: OperationCode.INSERT,
    DeleteTimeKey: OperationCode.DELETE_TIME_KEY,
    DeleteKey: OperationCode.DELETE_KEY,
    DeleteValue: OperationCode.DELETE_VALUE,
    DeleteTimeRange: OperationCode.DELETE_TIME_RANGE,
}


@dataclass(frozen=True, slots=True)
class RecordBatchData:
    """Rows of an expiring table as a file holds them: with key hash and operation."""

    rows: pa.Table


@dataclass(frozen=True, slots=True)
class CommitData:
    """What the subtask stages for the second phase of the epoch's commit."""

    data: bytes


@dataclass(frozen=True, slots=True)
class KeyedData:
    """Keys of a global table with their new values; None deletes a key. Both are msgpack."""

    changes: Mapping[bytes, bytes | None] = field(repr=False)


TableData = RecordBatchData | CommitData | KeyedData


@dataclass(frozen=True, slots=True)
class TableMessage:
    """Data for one table that does not come from its view."""

    table: str
    data: TableData


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointMessage:
    """The epoch ends: write what changed since the last one."""

    epoch: int
    min_epoch: int
    timestamp_us: int
    watermark_us: int | None
    then_stop: bool = False
    #: No epoch will look into these tables again: their input has ended.
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class CompactionMessage:
    """By table: the files that replace files carried so far; they count from the next checkpoint on."""

    tables: Mapping[str, Compacted]


@dataclass(frozen=True, slots=True)
class Compacted:
    """New files that hold all that is live of `replaced`."""

    replaced: Sequence[StateFile]
    files: Sequence[StateFile]


StateMessage = CheckpointMessage | CompactionMessage | TableMessage
