"""Streams of changing results: every row carries `_updating_meta`, which says whether it is added or taken back.

A result that changes is taken back first (`is_retract` true, with the values it was added with) and then added again.
`id` is the same for all rows of one result: sixteen bytes, a stable hash of its key. A stream is updating if it has
the column; operators that cannot take back rows refuse such a stream.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from arroyo_core.api.hashing import hash_batch, hash_columns
from arroyo_core.api.schema import ArroyoSchema
from arroyo_core.errors import ConfigError

UPDATING_META = "_updating_meta"
IS_RETRACT = "is_retract"
ROW_ID = "id"
UPDATING_TYPE = pa.struct([pa.field(IS_RETRACT, pa.bool_()), pa.field(ROW_ID, pa.binary(16))])

Mask = npt.NDArray[np.bool_]


def is_updating(stream: ArroyoSchema) -> bool:
    """Whether rows of this stream may be taken back; raises `ConfigError` if `_updating_meta` is something else."""
    if UPDATING_META not in stream.names:
        return False
    found = stream.schema.field(UPDATING_META).type
    if found != UPDATING_TYPE:
        raise ConfigError(f"column {UPDATING_META!r} is {found}, not {UPDATING_TYPE}: rename it")
    return True


def refuse_updating(stream: ArroyoSchema, *, operator: str) -> None:
    """Raise `ConfigError` if the stream is updating; for operators that cannot take back rows."""
    if is_updating(stream):
        raise ConfigError(f"{operator} cannot take back rows, and its input is updating: it has {UPDATING_META!r}")


def with_updating(stream: ArroyoSchema) -> ArroyoSchema:
    """The type of the stream with `_updating_meta` as its last column."""
    fields = [field for field in stream.schema if field.name != UPDATING_META]
    return stream.with_schema(pa.schema([*fields, pa.field(UPDATING_META, UPDATING_TYPE)]))


def without_updating(stream: ArroyoSchema) -> ArroyoSchema:
    """The type of the rows themselves."""
    return stream.with_schema(pa.schema([field for field in stream.schema if field.name != UPDATING_META]))


def retract_mask(batch: pa.RecordBatch) -> Mask:
    """Which rows are taken back; a row without `_updating_meta` is added."""
    if UPDATING_META not in batch.schema.names:
        return np.zeros(batch.num_rows, dtype=np.bool_)
    flags = batch.column(UPDATING_META).field(IS_RETRACT)
    mask: Mask = flags.fill_null(False).to_numpy(zero_copy_only=False)
    return mask


def split_updates(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The rows that are added and those that are taken back, each in order and without `_updating_meta`."""
    mask = retract_mask(batch)
    rows = batch.drop_columns([UPDATING_META]) if UPDATING_META in batch.schema.names else batch
    if not mask.any():
        return rows, rows.slice(0, 0)
    return rows.filter(pa.array(~mask)), rows.filter(pa.array(mask))


def row_ids(batch: pa.RecordBatch, keys: Sequence[str]) -> pa.FixedSizeBinaryArray:
    """The id of each row: two stable hashes of its key columns."""
    first = hash_batch(batch, keys)
    second = hash_columns([pa.array(first), *(batch.column(key) for key in keys)])
    words = np.stack([first, second], axis=1).astype("<u8")
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(16), batch.num_rows, [None, pa.py_buffer(np.ascontiguousarray(words))]
    )


def make_updates(batch: pa.RecordBatch, *, is_retract: bool | Mask, ids: pa.FixedSizeBinaryArray) -> pa.RecordBatch:
    """The rows with `_updating_meta` as their last column."""
    flags = np.full(batch.num_rows, is_retract, dtype=np.bool_) if isinstance(is_retract, bool) else is_retract
    meta = pa.StructArray.from_arrays([pa.array(flags), ids], fields=list(UPDATING_TYPE))
    return pa.RecordBatch.from_arrays(
        [*batch.columns, meta], schema=batch.schema.append(pa.field(UPDATING_META, UPDATING_TYPE))
    )


def interleave_updates(
    retracts: pa.RecordBatch, appends: pa.RecordBatch, *, retract_ranks: npt.ArrayLike, append_ranks: npt.ArrayLike
) -> pa.RecordBatch:
    """Rows with `_updating_meta` of both in the order of their ranks; of one rank what is taken back comes first."""
    joined = pa.concat_batches([retracts, appends])
    ranks = np.concatenate([np.asarray(retract_ranks, dtype=np.int64), np.asarray(append_ranks, dtype=np.int64)])
    return joined.take(pa.array(np.argsort(ranks, kind="stable")))
