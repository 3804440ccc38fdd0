"""What the first rows of a Parquet file say about its encodings."""

import io
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arroyo_formats.parquet.encodings import DELTA, MIN_ROWS, encoding_options
from arroyo_formats.parquet.writing import ROW_GROUP_ROWS, ParquetFileWriter

ROWS = 4096


def written(*tables: pa.Table) -> pq.ParquetFile:
    stream = io.BytesIO()
    writer = ParquetFileWriter(stream, tables[0].schema, "snappy")
    for table in tables:
        for batch in table.to_batches():
            writer.write(batch)
        writer.flush()
    writer.close()
    return pq.ParquetFile(io.BytesIO(stream.getvalue()))


def encodings_of(file: pq.ParquetFile, column: str, group: int = 0) -> set[str]:
    found = file.metadata.row_group(group)
    columns = [found.column(index) for index in range(found.num_columns)]
    return next(set(item.encodings) for item in columns if item.path_in_schema.split(".")[0] == column)


def test_columns_are_encoded_by_how_often_their_values_come_again() -> None:
    rows = pa.table(
        {
            "id": range(ROWS),
            "kind": [number % 7 for number in range(ROWS)],
            "name": [f"name {number}" for number in range(ROWS)],
            "city": [f"city {number % 100}" for number in range(ROWS)],
            "share": [number / 3 for number in range(ROWS)],
        }
    )
    file = written(rows)
    assert file.read().equals(rows)
    assert DELTA in encodings_of(file, "id")
    for column in ("kind", "city"):
        assert "RLE_DICTIONARY" in encodings_of(file, column)
    for column in ("name", "share"):
        assert encodings_of(file, column) == {"PLAIN", "RLE"}


def test_later_rows_that_differ_from_the_first_are_written_all_the_same() -> None:
    first = pa.table({"id": pa.array(range(ROWS), pa.int64()), "name": [f"name {number}" for number in range(ROWS)]})
    later = pa.table({"id": pa.array([None, -(2**63), 2**63 - 1] * ROWS, pa.int64()), "name": ["same"] * 3 * ROWS})
    file = written(first, later)
    assert file.num_row_groups == 2
    assert file.read().equals(pa.concat_tables([first, later]))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int8(), range(100)),
        (pa.uint64(), range(2**63, 2**63 + 100)),
        (pa.float32(), [1.5, float("nan")]),
        (pa.bool_(), [True, False]),
        (pa.date32(), [date(2026, 1, 1) + timedelta(days=day) for day in range(100)]),
        (pa.date64(), [date(2026, 1, 1) + timedelta(days=day) for day in range(100)]),
        (pa.time64("us"), [time(second=second) for second in range(60)]),
        (pa.timestamp("ns", "UTC"), range(1000)),
        (pa.duration("us"), range(1000)),
        (pa.decimal128(20, 3), [Decimal(number) / 8 for number in range(1000)]),
        (pa.binary(), [bytes([number]) for number in range(256)]),
        (pa.binary(4), [bytes([number] * 4) for number in range(256)]),
        (pa.large_string(), [str(number) for number in range(1000)]),
        (pa.dictionary(pa.int32(), pa.string()), ["a", "b"]),
        (pa.null(), [None]),
        (pa.list_(pa.int64()), [[1, 2], []]),
        (pa.struct({"a": pa.int64()}), [{"a": 1}, None]),
        (pa.map_(pa.string(), pa.int64()), [[("a", 1)], []]),
    ],
    ids=str,
)
def test_every_type_comes_back_as_it_was(kind: pa.DataType, values: Any) -> None:
    values = list(values)
    column = pa.array([values[number % len(values)] for number in range(ROWS)], kind)
    rows = pa.table({"column": column, "nulls": pa.nulls(ROWS, kind), "id": range(ROWS)})
    # As text where NaN is among them, which is never equal.
    assert str(written(rows).read().to_pylist()) == str(rows.to_pylist())


def test_few_rows_and_nested_columns_are_left_to_the_defaults() -> None:
    assert encoding_options(pa.table({"id": range(MIN_ROWS - 1)})) == {}
    assert encoding_options(pa.table({"id": range(ROWS), "tags": [["a"]] * ROWS})) == {}


def test_a_file_without_rows_is_a_file() -> None:
    schema = pa.schema({"id": pa.int64()})
    assert written(schema.empty_table()).read().schema.equals(schema)


def test_row_groups_are_as_large_as_before() -> None:
    rows = pa.table({"id": range(2 * ROW_GROUP_ROWS + 1)})
    file = written(rows)
    assert [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)] == [
        ROW_GROUP_ROWS,
        ROW_GROUP_ROWS,
        1,
    ]
