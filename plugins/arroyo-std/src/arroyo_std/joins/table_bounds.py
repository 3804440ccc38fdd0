"""What is found out about the files of a table before Arrow reads them: it takes them at their word."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.api.json_depth import deepest_line
from arroyo_core.api.limits import VALUE_DEPTH

#: What is looked at together, and the longest line that Arrow reads.
BLOCK_BYTES = 2**22


def check_json(filesystem: Any, path: str) -> None:
    """Raise `ValueError` for a JSON table with values that are so deep that Arrow would end the process."""
    for name in _files(filesystem, path):
        with filesystem.open(name, "rb", compression="infer") as file:
            rest = b""
            while block := file.read(BLOCK_BYTES):
                data = rest + block
                cut = data.rfind(b"\n") + 1
                if not cut and len(data) > BLOCK_BYTES:
                    raise ValueError(f"{name}: a line is longer than {BLOCK_BYTES} bytes")
                _check_depth(name, data[:cut])
                rest = data[cut:]
            _check_depth(name, rest)


def text_columns(schema: pa.Schema) -> list[str]:
    """The columns that may hold a value once for many rows, where they are read as dictionaries."""
    return [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_binary(field.type)]


def folded_schema(schema: pa.Schema, found: pa.Schema) -> pa.Schema:
    """The schema, with dictionaries where the files are read as such: their values are not repeated so far."""
    fields = [
        field.with_type(found.field(field.name).type) if pa.types.is_dictionary(found.field(field.name).type) else field
        for field in schema
    ]
    return pa.schema(fields)


def unfolded_bytes(batch: pa.RecordBatch) -> int:
    """What a batch takes with every text as often as it is there."""
    return sum(_unfolded_bytes(column) for column in batch.columns)


def unfold(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with plain values, in the schema."""
    if batch.schema.equals(schema):
        return batch
    columns = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _unfolded_bytes(column: pa.Array) -> int:
    kind = column.type
    if not pa.types.is_dictionary(kind):
        return int(column.nbytes)
    if pa.types.is_primitive(kind.value_type):
        return len(column) * int(kind.value_type.bit_width) // 8
    lengths = pc.take(pc.binary_length(column.dictionary), column.indices)
    return int(pc.sum(lengths).as_py() or 0) + 4 * len(column)


def _files(filesystem: Any, path: str) -> Iterator[str]:
    if filesystem.isdir(path):
        yield from sorted(filesystem.find(path))
    else:
        yield path


def _check_depth(name: str, lines: bytes) -> None:
    problem = VALUE_DEPTH.problem(deepest_line(lines))
    if problem is not None:
        raise ValueError(f"{name}: {problem}")
