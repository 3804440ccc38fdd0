"""Arrow as if a column of some hundred bytes of text were one of 2 GiB, more than which no array can hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from arroyo_core.state import chunks, rows

#: What is cut where a batch could not hold it: 2 GiB of text in a column, and a gigabyte to be safe.
LIMITS = [
    "arroyo_core.state.chunks.MAX_CHUNK_BYTES",
    "arroyo_std.large_rows.BATCH_BYTES",
    "arroyo_std.large_rows.OUTPUT_BYTES",
    "arroyo_std.event_groups.REDUCE_BYTES",
    "arroyo_std.updating.store.MERGE_BYTES",
    "arroyo_std.windows.pending_sessions.MERGE_BYTES",
]
LIMIT_BYTES = 300
#: What an array can hold: as much more as 2 GiB are than a gigabyte.
MOST_BYTES = 2 * LIMIT_BYTES


def lower_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in LIMITS:
        monkeypatch.setattr(limit, LIMIT_BYTES)


def shrink_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits are lowered, and what makes one array of more text than `MOST_BYTES` fails, as Arrow does above 2 GiB."""
    lower_limits(monkeypatch)
    _refuse(monkeypatch, pa, "concat_batches", lambda batches, *_: [batch.columns for batch in batches])
    _refuse(monkeypatch, pa, "concat_arrays", lambda arrays, *_: [[array] for array in arrays])
    _refuse(monkeypatch, rows, "_one_chunk", lambda column: [[chunk] for chunk in column.chunks])
    _refuse(monkeypatch, chunks, "_arrow_take", lambda taken, _: _chunks_to_join(taken))


def check_sizes(output: pa.Table) -> None:
    """Every batch that was sent is one that Arrow can hold."""
    assert max(batch.nbytes for batch in output.to_batches()) <= MOST_BYTES


def _refuse(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, parts_of: Callable[..., Sequence[Sequence[pa.Array]]]
) -> None:
    original = getattr(module, name)

    def limited(*args: Any) -> Any:
        parts = parts_of(*args)
        for column in zip(*parts, strict=True) if len(parts) > 1 else ():
            if _has_offsets(column[0].type) and sum(array.nbytes for array in column) > MOST_BYTES:
                raise pa.ArrowInvalid("offset overflow while concatenating arrays")
        return original(*args)

    monkeypatch.setattr(module, name, limited)


def _chunks_to_join(taken: Any) -> list[list[pa.Array]]:
    """Of a table or a column in several chunks, which Arrow joins to take rows of them."""
    if isinstance(taken, pa.ChunkedArray):
        return [[chunk] for chunk in taken.chunks]
    return [batch.columns for batch in taken.to_batches()] if isinstance(taken, pa.Table) else []


def _has_offsets(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_offsets(field.type) for field in kind)
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_list(kind) or pa.types.is_map(kind))
