"""Messages as rows: the format reads their values, and metadata columns come beside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from arroyo_formats import Indices, MessageReader

from arroyo_kafka.bad_messages import BadMessages
from arroyo_kafka.event_time import NO_TIME, Ints
from arroyo_kafka.metadata import MetadataColumns

if TYPE_CHECKING:
    from confluent_kafka import Message

_UNITS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of some messages; `origins` has the number of the message of each, None where row i is of message i."""

    batch: pa.RecordBatch
    origins: Indices | None


class MessageDecoder:
    """Makes rows of messages, in one thread. Rows have the columns of `schema`, `_updating_meta` last."""

    def __init__(self, reader: MessageReader, metadata: MetadataColumns, schema: pa.Schema) -> None:
        self._reader = reader
        self._metadata = metadata
        self._schema = schema

    def decode(self, messages: Sequence[Message], bad: BadMessages) -> Rows:
        """The rows of all messages that have a value and can be read; those without are tombstones."""
        values = [message.value() for message in messages]
        kept: Indices | None = None
        if None in values:
            kept = np.array([index for index, value in enumerate(values) if value is not None], dtype=np.int64)
            values = [value for value in values if value is not None]
        decoded = self._reader.read(values)  # type: ignore[arg-type]
        for item in decoded.bad:
            bad.add(messages[item.index if kept is None else int(kept[item.index])], item.error)
        origins = decoded.origins
        if kept is not None:
            origins = kept if origins is None else kept[origins]
        return Rows(self._with_metadata(decoded.batch, messages, origins), origins)

    def _with_metadata(
        self, batch: pa.RecordBatch, messages: Sequence[Message], origins: Indices | None
    ) -> pa.RecordBatch:
        columns = self._metadata.build(messages)
        if not columns:
            return batch
        if origins is not None:
            columns = [column.take(pa.array(origins)) for column in columns]
        return pa.RecordBatch.from_arrays([*batch.columns, *columns], schema=self._schema)


def event_times_us(times: pa.Array) -> Ints:
    """Timestamps of any unit in whole microseconds, rounded down; `NO_TIME` for null."""
    # Not by a cast to microseconds, which refuses nanoseconds that are none.
    numbers: Ints = pc.fill_null(times.cast(pa.int64()), NO_TIME).to_numpy()
    per_second = _UNITS_PER_SECOND[times.type.unit]
    if per_second == 1_000_000:
        return numbers
    scaled = numbers * (1_000_000 // per_second) if per_second < 1_000_000 else numbers // (per_second // 1_000_000)
    return np.where(numbers == NO_TIME, NO_TIME, scaled)
