"""Keys that a commit would refuse are refused before the checkpoint is published, or no restart would help."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from arroyo_iceberg import staging

from arroyo_core.errors import DataError, OperatorError

from .support.sinks import TABLE, Sink
from .support.tables import make_table

NARROW = pa.decimal128(3, 0)


def stage_deleted(folder: Any, keys: pa.Array) -> dict[str, Any]:
    """An epoch that deletes rows by their key."""
    schema = pa.schema([("id", keys.type), ("name", pa.string()), ("deleted", pa.bool_())])
    names, flags = pa.nulls(len(keys), pa.string()), pa.array([True] * len(keys))
    with Sink(schema, folder=folder, mode="merge", keys=["id"], deleted_column="deleted") as sink:
        staged = sink.stage(pa.RecordBatch.from_arrays([keys, names, flags], schema=schema))
        sink.commit(staged)
        return {"rows": sink.rows()}


def make_rows(folder: Any, kind: pa.DataType) -> None:
    make_table(
        folder, TABLE, pa.table({"id": pa.array([Decimal(1), Decimal(2)], NARROW).cast(kind), "name": ["a", "b"]})
    )


def test_a_key_with_more_digits_than_its_type(tmp_path):
    make_rows(tmp_path, NARROW)
    digits = pa.py_buffer((1000).to_bytes(16, "little"))
    with pytest.raises(OperatorError, match="key column 'id' has a value that a table cannot have") as caught:
        stage_deleted(tmp_path, pa.Array.from_buffers(NARROW, 1, [None, digits]))
    assert isinstance(caught.value.__cause__, DataError)


def test_a_key_that_does_not_fit_into_the_column_of_the_table(tmp_path):
    make_rows(tmp_path, pa.int32())
    with pytest.raises(OperatorError, match=r"cannot delete from shop\.rows: column 'id': Integer value") as caught:
        stage_deleted(tmp_path, pa.array([2**31]))
    assert isinstance(caught.value.__cause__, DataError)
    assert stage_deleted(tmp_path, pa.array([2, None]))["rows"] == [{"id": 1, "name": "a"}]


def test_more_keys_than_a_commit_reads(tmp_path, monkeypatch):
    make_rows(tmp_path, pa.int64())
    monkeypatch.setenv(staging.KEYS_BYTES.variable, "64")
    with pytest.raises(OperatorError, match=r"an epoch deletes more keys than it may: .* are too many") as caught:
        stage_deleted(tmp_path, pa.array(range(1000)))
    assert isinstance(caught.value.__cause__, DataError)
