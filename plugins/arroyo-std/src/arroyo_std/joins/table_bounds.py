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
_INDEX = pa.int32()


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


def folded_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with texts as dictionaries: a text that is stored once for many rows stays so while it is read."""
    fields = [field.with_type(pa.dictionary(_INDEX, field.type)) if _is_text(field.type) else field for field in schema]
    return pa.schema(fields)


def unfolded_bytes(batch: pa.RecordBatch) -> int:
    """What a batch takes with every text as often as it is there."""
    return sum(_unfolded_bytes(column) for column in batch.columns)


def unfold(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with plain texts."""
    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _unfolded_bytes(column: pa.Array) -> int:
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    lengths = pc.take(pc.binary_length(column.dictionary), column.indices)
    return int(pc.sum(lengths).as_py() or 0) + 4 * len(column)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _files(filesystem: Any, path: str) -> Iterator[str]:
    if filesystem.isdir(path):
        yield from sorted(filesystem.find(path))
    else:
        yield path


def _check_depth(name: str, lines: bytes) -> None:
    problem = VALUE_DEPTH.problem(deepest_line(lines))
    if problem is not None:
        raise ValueError(f"{name}: {problem}")
