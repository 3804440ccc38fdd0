"""What the sink writes, the source reads back: every format, any table, local and object storage."""

from __future__ import annotations

import datetime
import decimal
import uuid
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

UTC = pa.timestamp("us", tz="UTC")
#: Years that every format writes with four digits.
TIMES = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31)).map(
    lambda time: time.replace(tzinfo=datetime.UTC)
)
FLAT: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "int8": (pa.int8(), st.integers(-128, 127)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "float64": (pa.float64(), st.floats(allow_nan=False, allow_infinity=False)),
    "string": (pa.string(), st.text(st.characters(codec="utf-8"), max_size=6)),
    "bool": (pa.bool_(), st.booleans()),
    "timestamp": (UTC, TIMES),
    "date": (pa.date32(), st.dates()),
    "decimal(12,3)": (pa.decimal128(12, 3), st.decimals(-(10**8), 10**8, places=3).map(decimal.Decimal)),
}
NESTED: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "list<int64>": (pa.list_(pa.int64()), st.lists(st.none() | st.integers(0, 9), max_size=3)),
    "struct<a: string, t: timestamp, d: date>": (
        pa.struct([("a", pa.string()), ("t", UTC), ("d", pa.date32())]),
        st.fixed_dictionaries({"a": st.text("ab", max_size=2), "t": st.none() | TIMES, "d": st.none() | st.dates()}),
    ),
}


@st.composite
def tables(draw: st.DrawFn, *, nested: bool) -> tuple[pa.Table, dict[str, str]]:
    """A table and its schema as written in YAML."""
    kinds = draw(st.lists(st.sampled_from(sorted(FLAT | NESTED if nested else FLAT)), min_size=1, max_size=4))
    rows = draw(st.integers(1, 12))
    columns, schema = {}, {}
    for index, written in enumerate(kinds):
        kind, values = (FLAT | NESTED)[written]
        name = f"c{index}"
        columns[name] = pa.array(draw(st.lists(st.none() | values, min_size=rows, max_size=rows)), kind)
        schema[name] = written
    return pa.table(columns), schema


def storage() -> str:
    return f"memory://{uuid.uuid4().hex}"


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@given(drawn=tables(nested=True), batch_rows=st.integers(1, 5))
@settings(max_examples=15)
def test_binary_formats_keep_every_value_and_type(files: Any, kind: str, drawn: Any, batch_rows: int) -> None:
    table, _ = drawn
    url = storage()
    files.write(url, table, format=kind)
    read = files.read(url, batch_rows=batch_rows)
    assert read.schema == table.schema
    assert read.equals(table)


@pytest.mark.parametrize("compression", ["none", "gzip"])
@given(drawn=tables(nested=True), batch_rows=st.integers(1, 5))
@settings(max_examples=15)
def test_json_keeps_every_value_of_a_declared_schema(files: Any, compression: str, drawn: Any, batch_rows: int) -> None:
    table, schema = drawn
    url = storage()
    files.write(url, table, format="json", compression=compression)
    assert files.read(url, schema=schema, batch_rows=batch_rows).equals(table)


@given(
    drawn=tables(nested=False),
    batch_rows=st.integers(1, 5),
    compression=st.sampled_from(["none", "gzip"]),
    delimiter=st.sampled_from([",", ";", "\t"]),
)
@settings(max_examples=30)
def test_csv_keeps_every_value_of_a_declared_schema(
    files: Any, drawn: Any, batch_rows: int, compression: str, delimiter: str
) -> None:
    table, schema = drawn
    url = storage()
    files.write(url, table, format="csv", compression=compression, delimiter=delimiter)
    dialect = {"newlines_in_values": True, "delimiter": delimiter}
    assert files.read(url, schema=schema, batch_rows=batch_rows, csv=dialect).equals(table)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "json", "csv"])
def test_files_on_any_storage_are_found_by_folder_file_and_glob(files: Any, names: Any, folder: str, kind: str) -> None:
    table = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]})
    files.write(folder, table, format=kind)
    (name,) = names(folder)
    for path in (folder, f"{folder}/{name}", f"{folder}/part-*"):
        assert files.read(path).equals(table)


@pytest.mark.parametrize("compression", ["zstd", "snappy", "lz4", "gzip", "none"])
def test_parquet_compressions_are_readable(files: Any, folder: str, compression: str) -> None:
    table = pa.table({"a": list(range(1000))})
    files.write(folder, table, compression=compression)
    assert files.read(folder).equals(table)


def test_dictionaries_are_read_as_plain_values(files: Any, folder: str) -> None:
    table = pa.table({"a": pa.array(["x", "y", "x", None]).dictionary_encode()})
    files.write(folder, table, format="arrow")
    read = files.read(folder)
    assert read.schema.field("a").type == pa.string()
    assert read.to_pylist() == table.to_pylist()


def test_the_stream_format_of_arrow_is_read_too(files: Any) -> None:
    table = pa.table({"a": list(range(10))})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)
    fsspec.filesystem("memory").pipe_file("/streams/a.arrow", sink.getvalue().to_pybytes())
    assert files.read("memory://streams/a.arrow", batch_rows=2).equals(table)
