"""What columns weigh when they are made plain: dictionaries and views hold a value once, however often it is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

#: Rows of so many bytes are made plain at a time, unless one row has more.
PLAIN_BYTES = 256 * 2**20


def plain_slices(batch: pa.RecordBatch, max_rows: int, *, start: int = 0) -> Iterator[pa.RecordBatch]:
    """The rows from one on, in order, in batches that stay small when they are made plain."""
    folded = [index for index, field in enumerate(batch.schema) if is_folded(field.type)]
    for place in range(start, batch.num_rows, max_rows):
        part = batch.slice(place, max_rows)
        if folded:
            yield from _halved(part, folded)
        else:
            yield part


def plain_bytes(values: pa.Array) -> int:
    """What values take, with each as often as it is there; of plain types, what they take anyway."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _dictionary_bytes(values)
    if kind in (pa.string_view(), pa.binary_view()):
        sizes = np.frombuffer(values.buffers()[1], dtype="<i4")[::4]
        return int(sizes[values.offset : values.offset + len(values)].sum(dtype=np.int64))
    if pa.types.is_struct(kind):
        return sum(plain_bytes(each) for each in values.flatten())
    if pa.types.is_list(kind):
        return plain_bytes(values.flatten())
    return int(values.nbytes)


def is_folded(kind: pa.DataType) -> bool:
    """Whether values of a type, or in it, may be stored once for many."""
    if pa.types.is_dictionary(kind) or kind in (pa.string_view(), pa.binary_view()):
        return True
    return any(is_folded(kind.field(index).type) for index in range(kind.num_fields))


def _dictionary_bytes(values: pa.DictionaryArray) -> int:
    found = values.dictionary
    if pa.types.is_string(found.type) or pa.types.is_binary(found.type):
        return int(pc.sum(pc.take(pc.binary_length(found), values.indices)).as_py() or 0)
    # Of others the greatest is not known: as if each were all of them.
    return len(values) * (found.type.bit_width // 8 if _is_fixed(found.type) else plain_bytes(found))


def _is_fixed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind))


def _halved(batch: pa.RecordBatch, folded: Sequence[int]) -> Iterator[pa.RecordBatch]:
    size = sum(plain_bytes(batch.column(index)) for index in folded)
    if size <= PLAIN_BYTES or batch.num_rows <= 1:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _halved(batch.slice(0, half), folded)
    yield from _halved(batch.slice(half), folded)
