"""What a merge takes and refuses: rows without values, values that are none, tables with odd names of partitions."""

from __future__ import annotations

import pyarrow as pa
import pytest
from arroyo_delta.log import check_inside
from deltalake import DeltaTable, Field, Schema, write_deltalake
from deltalake.schema import PrimitiveType

from arroyo_core.errors import DataError, OperatorError

from .support.sinks import Sink
from .support.tables import rows

pytestmark = pytest.mark.once

SCHEMA = pa.schema([("id", pa.int64()), ("place", pa.string())])


def test_rows_are_deleted_by_key_in_a_table_with_columns_without_nulls(tmp_path):
    fields = [Field(name, PrimitiveType(kind), nullable=False) for name, kind in (("id", "long"), ("place", "string"))]
    DeltaTable.create(str(tmp_path / "t"), Schema(fields))
    schema = pa.schema([*SCHEMA, ("deleted", pa.bool_())])
    gone = {"place": None, "deleted": True}
    with Sink(tmp_path / "t", schema, mode="merge", keys=["id"], deleted_column="deleted") as sink:
        sink.write([{"id": each, "place": "a", "deleted": False} for each in (1, 2)], epoch=1)
        sink.write([{"id": 1, **gone}, {"id": 2, "place": "b"}, {"id": 3, "place": "c"}, {"id": 4, **gone}], epoch=2)
        assert rows(sink.table) == [(2, "b"), (3, "c")]
        with pytest.raises(OperatorError, match="column 'place' has a null, and the table has none there"):
            sink.stage([{"id": 5, "place": None, "deleted": None}])


def test_values_that_the_commit_would_refuse_are_found_before_the_checkpoint(tmp_path):
    """As arithmetic of decimals makes them: more digits than the type has."""
    kind = pa.decimal128(3, 0)
    schema = pa.schema([("id", pa.int64()), ("amount", kind)])
    amount = pa.Array.from_buffers(kind, 1, [None, pa.py_buffer((1000).to_bytes(16, "little"))])
    with Sink(tmp_path / "t", schema, parallelism=1, mode="merge", keys=["id"]) as sink:
        sink.harness.process(pa.RecordBatch.from_arrays([pa.array([1]), amount], schema=schema))
        with pytest.raises(OperatorError, match="column 'amount' has a value that a table cannot have") as caught:
            sink.harness.checkpoint()
        assert isinstance(caught.value.__cause__, DataError)


def test_partitions_that_look_like_a_way_out_are_inside(tmp_path):
    given = [{"id": 1, "place": "a/../b"}, {"id": 2, "place": "/../../x"}]
    write_deltalake(str(tmp_path / "t"), pa.Table.from_pylist(given, schema=SCHEMA), partition_by=["place"])
    table = DeltaTable(str(tmp_path / "t"))
    assert "place=a%252F..%252Fb/" in str(pa.table(table.get_add_actions()).column("path").to_pylist())
    check_inside(table, "t")
    with Sink(tmp_path / "t", SCHEMA, mode="merge", keys=["id"]) as sink:
        sink.write([{"id": 3, "place": "/../../x"}, {"id": 1, "place": "c"}], epoch=1)
        assert rows(sink.table, "id", "place") == [(1, "c"), (2, "/../../x"), (3, "/../../x")]
