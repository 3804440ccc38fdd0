from __future__ import annotations

import base64
import datetime as dt
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from arroyo_formats import FormatChoice
from arroyo_formats.protobuf.fast import FastDecoder, FastEncoder, is_fast
from arroyo_formats.protobuf.fields import to_fields
from arroyo_formats.protobuf.format import ProtobufFormat
from arroyo_formats.protobuf.message_type import MessageType, message_type
from arroyo_formats.protobuf.plain import PlainDecoder, PlainEncoder
from google.protobuf import message_factory
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.errors import ConfigError, DataError

from .support.formats_in_tests import choose, read, written
from .support.protobuf_rows import EVERYTHING, batch_of, rows, same


@cache
def everything() -> FormatChoice:
    return choose(ProtobufFormat(), schema_file=str(EVERYTHING), message="everything.Row")


@cache
def row_type() -> MessageType:
    return message_type(everything().settings, None)


def chosen(data: Any) -> list[Any]:
    """Some fields of the message, and with one of a `oneof` all of it."""
    fields = row_type().fields
    names = data.draw(st.sets(st.sampled_from([field.name for field in fields]), min_size=1, max_size=6))
    oneofs = {field.oneof for field in fields if field.name in names and field.oneof}
    return [field for field in fields if field.name in names or field.oneof in oneofs]


@given(st.data())
def test_any_value_comes_back_as_it_was(data: Any):
    fields = chosen(data)
    batch = batch_of(data.draw(st.lists(rows(fields), max_size=4)), fields)
    decoded = read(everything(), written(everything(), batch), batch.schema)
    assert decoded.bad == []
    assert same(decoded.batch.to_pylist(), batch.to_pylist())


@given(st.data())
def test_both_decoders_and_both_encoders_agree(data: Any):
    fields = chosen(data)
    batch = batch_of(data.draw(st.lists(rows(fields), min_size=1, max_size=4)), fields)
    kind = message_type(everything().settings, batch.schema)
    assert is_fast(kind.descriptor)
    stored = to_fields(kind.fields, batch.columns)
    plain, fast = PlainEncoder(kind.descriptor, kind.fields), FastEncoder(kind.descriptor, kind.fields, kind.unit)
    messages, others = plain.encode(stored).to_pylist(), fast.encode(stored).to_pylist()
    parse = message_factory.GetMessageClass(kind.descriptor).FromString
    assert [parse(each) for each in messages] == [parse(each) for each in others]
    first = FastDecoder(kind.descriptor, kind.fields, kind.unit).decode(messages + others)
    second = PlainDecoder(kind.descriptor, kind.fields).decode(messages + others)
    assert first[1] == second[1] == []
    for found, expected in zip(first[0], second[0], strict=True):
        assert same(found.to_pylist(), expected.to_pylist())


@given(st.data())
def test_a_part_of_a_longer_batch_is_written_as_itself(data: Any):
    fields = [field for field in row_type().fields if field.name in ("rm", "ms", "inner", "rs")]
    batch = batch_of(data.draw(st.lists(rows(fields), min_size=3, max_size=5)), fields)
    assert written(everything(), batch.slice(1, 2)) == written(everything(), batch)[1:3]


OUT_OF_ORDER = """
syntax = "proto3";
message Row {
  string first = 7;
  string second = 2;
  Place place = 5;
  string third = 1;
  repeated Place others = 3;
}
message Place { string street = 4; string town = 1; }
message Flat { string first = 7; string second = 2; int64 n = 3; string third = 1; }
"""


@pytest.mark.parametrize(
    "row",
    [
        {"first": "a", "second": "b", "n": 4, "third": "c"},
        {
            "first": "a",
            "second": "b",
            "place": {"street": "s", "town": "t"},
            "third": "c",
            "others": [{"street": "x", "town": "y"}],
        },
    ],
    ids=["Flat", "Row"],
)
def test_fields_that_are_declared_in_another_order_than_that_of_their_numbers_stay_apart(tmp_path, row):
    """Columns of one type would change places, and nobody would notice."""
    file = tmp_path / "row.proto"
    file.write_text(OUT_OF_ORDER)
    name = "Flat" if "n" in row else "Row"
    choice = choose(ProtobufFormat(), schema_file=str(file), message=name)
    kind = message_type(choice.settings, None)
    assert choice.schema(None).names == list(row)
    message = message_factory.GetMessageClass(kind.descriptor)(**row)
    decoded = read(choice, [message.SerializeToString()], choice.schema(None))
    assert (decoded.bad, decoded.batch.to_pylist()) == ([], [row])
    (encoded,) = written(choice, decoded.batch)
    assert type(message).FromString(encoded) == message


def test_columns_have_the_types_of_the_fields():
    schema = everything().schema(None)
    inner = pa.struct(
        {"x": pa.int32(), "s": pa.string(), "n": pa.list_(pa.int64()), "yes": pa.bool_(), "much": pa.float64()}
    )
    assert schema.field("u64").type == pa.uint64()
    assert schema.field("e").type == pa.string()
    assert schema.field("inner").type == inner
    assert schema.field("mi").type == pa.map_(pa.int32(), inner)
    assert schema.field("ts").type == pa.timestamp("us", "UTC")
    assert schema.field("du").type == pa.duration("us")
    assert schema.field("wu32").type == pa.uint32()
    assert schema.field("rw").type == pa.list_(pa.int64())


def test_what_is_absent_is_null_where_the_field_can_tell_and_zero_elsewhere():
    row = read(everything(), [b""]).batch.to_pylist()[0]
    assert {name for name, value in row.items() if value is None} == {
        *("inner", "ob", "oi", "ou", "od", "os", "oby", "oe", "c1", "c2", "c3", "c4", "ts", "du"),
        *("wb", "wi32", "wi64", "wu32", "wu64", "wfl", "wdb", "ws", "wby"),
    }
    assert (row["b"], row["i32"], row["st"], row["by"], row["e"], row["rs"], row["ms"]) == (
        False,
        0,
        "",
        b"",
        "RED",
        [],
        [],
    )


def test_times_of_a_nanosecond_are_read_where_a_column_is_so_exact():
    columns = pa.schema([("ts", pa.timestamp("ns", "UTC")), ("du", pa.duration("ns"))])
    batch = pa.record_batch([pa.array([-1], columns[0].type), pa.array([-1_000_000_001], columns[1].type)], columns)
    (message,) = written(everything(), batch)
    assert read(everything(), [message], columns).batch == batch
    rounded = read(everything(), [message]).batch.to_pylist()[0]
    assert rounded["ts"] == dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"i32": pa.array([1, None], pa.int32())}, "column 'i32' is null in row 1.*declare it `optional`"),
        ({"rs": pa.array([["a", None]])}, r"column 'rs\[\]' is null in row 1"),
        ({"rs": pa.array([None], pa.list_(pa.string()))}, "column 'rs' is null in row 0"),
        ({"rm": [[{"x": 1, "s": None, "n": None, "yes": None, "much": None}]]}, r"column 'rm\[\].n' is null in row 0"),
        ({"e": ["PINK"]}, "column 'e' is 'PINK', which its enum does not have: RED, GREEN"),
        ({"e": ["01"]}, "'01'"),
        ({"c1": [1], "c2": ["x"]}, "only one of c1, c2.* can be set, and in row 0 several are"),
        ({"i32": [2**40]}, "column 'i32', row 0: a value does not fit int32"),
        ({"u64": [-1]}, "column 'u64', row 0"),
    ],
)
def test_a_value_that_a_field_cannot_hold_is_an_error_with_its_place(columns: dict[str, Any], message: str):
    with pytest.raises(DataError, match=message):
        written(everything(), pa.record_batch(columns))


def test_a_null_parent_hides_what_stands_under_it():
    fields = [field for field in row_type().fields if field.name == "inner"]
    inner = {"x": 1, "s": None, "n": [], "yes": None, "much": None}
    batch = batch_of([{"inner": None}, {"inner": inner}], fields)
    assert read(everything(), written(everything(), batch), batch.schema).batch.to_pylist() == batch.to_pylist()


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (pa.schema([("nope", pa.int64())]), "has no field 'nope'"),
        (pa.schema([("ms", pa.int64())]), "column 'ms' is int64, and cannot be written as map"),
    ],
)
def test_columns_that_can_never_be_written_are_refused(schema: pa.Schema, message: str):
    with pytest.raises(ConfigError, match=message):
        everything().writer(schema)


PROTO2 = """
syntax = "proto2";
message Old {
  enum Size { SMALL = 1; LARGE = 2; }
  required int32 id = 1;
  optional string name = 2 [default = "none"];
  optional Size size = 3;
  repeated group Part = 4 { optional int32 n = 5; }
  repeated double d = 6;
}
message Empty {}
message Self { optional Self self = 1; optional int32 x = 2; }
message Holder { optional Empty nothing = 1; optional int32 x = 2; }
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    file = tmp_path / "old.proto"
    file.write_text(PROTO2, encoding="utf-8")
    return file


def test_proto2_is_read_and_written_too(old: Path):
    choice = choose(ProtobufFormat(), schema_file=str(old))
    assert choice.settings.message == "Old"
    row = {"id": 1, "name": None, "size": "LARGE", "part": [{"n": 3}, {"n": None}], "d": [0.5]}
    batch = pa.RecordBatch.from_pylist([row], choice.schema(None))
    assert not is_fast(message_type(choice.settings, None).descriptor)
    assert read(choice, written(choice, batch)).batch.to_pylist() == [row]
    decoded = read(choice, [b""])
    assert [each.error for each in decoded.bad] == ["lacks required fields: id"]
    with pytest.raises(DataError, match="column 'id' is null"):
        written(choice, pa.RecordBatch.from_pylist([{**row, "id": None}], choice.schema(None)))


def test_a_message_that_contains_itself_is_read_without_that_column(old: Path):
    choice = choose(ProtobufFormat(), schema_file=str(old), message="Self")
    with pytest.raises(ConfigError, match="self: Self contains itself, which columns cannot: leave the column out"):
        choice.schema(None)
    assert read(choice, [b"\x0a\x02\x10\x07\x10\x08"], pa.schema([("x", pa.int64())])).batch.to_pydict() == {"x": [8]}


def test_a_message_without_fields_is_a_struct_without_any(old: Path):
    choice = choose(ProtobufFormat(), schema_file=str(old), message="Holder")
    rows = [{"nothing": {}, "x": 1}, {"nothing": None, "x": 2}]
    batch = pa.RecordBatch.from_pylist(rows, choice.schema(None))
    assert read(choice, written(choice, batch)).batch.to_pylist() == rows


def test_a_negative_zero_is_written():
    kinds = pa.schema([("db", pa.float64()), ("fl", pa.float32())])
    batch = pa.RecordBatch.from_pylist([{"db": -0.0, "fl": 1.0}, {"db": 0.0, "fl": -0.0}], kinds)
    assert str(read(everything(), written(everything(), batch), batch.schema).batch.to_pylist()) == str(
        batch.to_pylist()
    )


def test_of_several_names_of_a_number_the_first_is_read():
    batch = pa.record_batch({"e": ["VERDE", "GREEN"]})
    assert read(everything(), written(everything(), batch), batch.schema).batch.to_pydict() == {"e": ["GREEN", "GREEN"]}


def test_the_file_is_compiled_on_the_driver_only(tmp_path: Path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "inner.proto").write_text('syntax = "proto3"; package a; message I { int32 x = 1; }')
    (tmp_path / "outer.proto").write_text('syntax = "proto3"; import "a/inner.proto"; message O { a.I i = 1; }')
    choice = choose(ProtobufFormat(), schema_file=str(tmp_path / "outer.proto"))
    for file in tmp_path.rglob("*.proto"):
        file.unlink()
    assert read(choice, [b"\x0a\x02\x08\x05"]).batch.to_pydict() == {"i": [{"x": 5}]}
    assert [file.name for file in choice.settings.files] == ["a/inner.proto", "outer.proto"]
    again = choose(ProtobufFormat(), descriptor_set=choice.settings.descriptor_set, message="a.I")
    assert read(again, [b"\x08\x05"]).batch.to_pydict() == {"x": [5]}


@pytest.mark.parametrize(
    ("settings", "field", "message"),
    [
        ({}, "schema_file", "protobuf needs a schema_file"),
        ({"schema_file": "/no/such.proto"}, "schema_file", "there is no file /no/such.proto"),
        ({"descriptor_set": "%"}, "descriptor_set", "not a set of descriptors"),
        ({"descriptor_set": ""}, "schema_file", "needs a schema_file"),
        ({"descriptor_set": base64.b64encode(b"\xff").decode()}, "descriptor_set", "not a set of descriptors"),
        ({"descriptor_set": "AAAA", "schema_file": "x"}, "schema_file", "exclude each other"),
        ({"schema_file": str(EVERYTHING), "message": "Row"}, "message", "no message 'Row'"),
    ],
)
def test_a_mistake_in_the_settings_is_found_when_the_pipeline_is_planned(settings: Any, field: str, message: str):
    with pytest.raises(ConfigError, match=message) as raised:
        choose(ProtobufFormat(), **settings)
    assert raised.value.field == f"format.{field}"


def test_what_the_compiler_says_has_the_line(tmp_path: Path):
    file = tmp_path / "bad.proto"
    file.write_text('syntax = "proto3";\nmessage M { int33 x = 1; }')
    with pytest.raises(ConfigError, match=r'bad.proto:2:13: "int33" is not defined'):
        choose(ProtobufFormat(), schema_file=str(file))
