"""Partial aggregates before a shuffle: what the rows are that go through it, and of what they were made.

The operator behind the shuffle sees the type of these rows only. It needs the type of the rows they stand for, to know
its functions, so that type travels in the metadata of the schema.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from arroyo_core.api import ArroyoSchema

#: How many rows of the input a partial row stands for.
ROWS = "_rows"

_INPUT = b"arroyo_std.input"
_INPUT_TIME = b"arroyo_std.input_time"


def partial_schema(
    fields: Sequence[pa.Field], stream: ArroyoSchema, *, timestamp_column: str | None = None
) -> ArroyoSchema:
    """The type of partial rows of these columns, made of rows of `stream`."""
    metadata = {_INPUT: stream.schema.serialize().to_pybytes()}
    if stream.timestamp_column is not None:
        metadata[_INPUT_TIME] = stream.timestamp_column.encode()
    return ArroyoSchema(pa.schema(fields, metadata=metadata), timestamp_column)


def partial_input(rows: ArroyoSchema) -> ArroyoSchema | None:
    """The type of the rows that partial rows were made of; None if these are no partial rows."""
    metadata = rows.schema.metadata or {}
    if _INPUT not in metadata:
        return None
    time = metadata.get(_INPUT_TIME)
    return ArroyoSchema(pa.ipc.read_schema(pa.py_buffer(metadata[_INPUT])), time.decode() if time else None)
