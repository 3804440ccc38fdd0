"""JSON with a JSON Schema: of the settings, of a file, of a schema registry."""

from __future__ import annotations

import datetime
import decimal
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from arroyo_formats import read_choice
from arroyo_formats.debezium.format import DebeziumJsonFormat
from arroyo_formats.files import check_writable
from arroyo_formats.json.format import JsonFormat
from arroyo_formats.json_schema import arrow_schema, json_schema
from fsspec.implementations.local import LocalFileSystem
from google.protobuf import json_format, struct_pb2
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.api.updating import UPDATING_META, make_updates, row_ids
from arroyo_core.errors import ConfigError

from .support.formats_in_tests import choose, read, written
from .support.registry_server import RegistryState

ORDER = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}},
}
COLUMNS = pa.schema({"id": pa.int64(), "at": pa.timestamp("us", "UTC")})
#: A property that has no type: no column can be made of it.
OPEN = {"properties": {"id": {"type": "integer"}, "any": {}}}
CHANGE = {
    "properties": {
        "before": {"oneOf": [{"type": "null"}, {"$ref": "#/definitions/row"}]},
        "after": {"oneOf": [{"type": "null"}, {"$ref": "#/definitions/row"}]},
        "op": {"type": "string"},
        "source": {"type": "object"},
    },
    "definitions": {"row": {"properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}},
}
IDS = pa.schema([("id", pa.int64())])


def of_registry(state: RegistryState, **more: Any) -> dict[str, Any]:
    return {"registry": {"url": state.url, "subject": "s", **more}}


def framed(number: int, *texts: str) -> list[bytes]:
    return [b"\0" + number.to_bytes(4, "big") + text.encode() for text in texts]


def test_columns_are_of_the_schema_unless_they_are_declared():
    choice = choose(JsonFormat(), schema=json.dumps(ORDER))
    assert choice.schema(None) == COLUMNS
    assert choice.schema(IDS) == IDS
    decoded = read(choice, [b'{"id": 1, "at": "2026-01-31T12:00:00Z", "more": 2}'])
    assert decoded.batch.to_pylist() == [{"id": 1, "at": datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)}]


def test_a_schema_file_is_read_on_the_driver_and_is_relative_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "order.json").write_text(json.dumps(ORDER), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    choice = choose(JsonFormat(), schema_file="schemas/order.json")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert choose(JsonFormat(), schema_file="~/schemas/order.json").settings == choice.settings
    by_url = f"file://{tmp_path}/schemas/order.json"
    assert choose(JsonFormat(), schema_file=by_url).settings == choice.settings
    monkeypatch.chdir("/")
    (tmp_path / "schemas" / "order.json").unlink()
    assert choice.resolve() == choice, "what is resolved stays as it is"
    assert read_choice(choice.to_value()).schema(None) == COLUMNS


def test_settings_that_say_nothing_stay_as_they_are():
    value = struct_pb2.Value(string_value="json")
    assert read_choice(value).resolve().to_value() == value


@pytest.mark.parametrize(
    ("settings", "field", "message"),
    [
        ({"schema": "{"}, "schema", "the schema is not JSON"),
        ({"schema": "[" * 100_000}, "schema", "the schema is not JSON"),
        ({"schema": "true"}, "schema", "is a JSON object"),
        ({"schema_file": "no/such/file"}, "schema_file", r"cannot read /.*no/such/file: No such file"),
        ({"schema_file": "/dev/null"}, "schema_file", "it is not a regular file"),
        ({"schema": "{}", "schema_file": "x"}, "schema_file", "exclude each other"),
        ({"framing": "confluent"}, "registry", "needs a registry"),
        ({"framing": "single_object"}, "framing", "no framing 'single_object'"),
        ({"registry": {"url": "localhost"}}, "registry.url", "not the address"),
    ],
)
@pytest.mark.parametrize("format", [JsonFormat(), DebeziumJsonFormat()])
def test_a_mistake_in_the_settings_has_its_place(format: Any, settings: dict[str, Any], field: str, message: str):
    with pytest.raises(ConfigError, match=message) as raised:
        choose(format, **settings)
    assert raised.value.field == f"format.{field}"


def test_an_empty_schema_file_is_a_mistake(tmp_path: Path):
    (tmp_path / "empty.json").touch()
    with pytest.raises(ConfigError, match="the file is empty"):
        choose(JsonFormat(), schema_file=str(tmp_path / "empty.json"))


def test_without_any_schema_columns_are_to_be_declared(registry: RegistryState):
    with pytest.raises(ConfigError, match="json needs columns: declare them, or give a schema"):
        choose(JsonFormat()).schema(None)
    choice = choose(JsonFormat(), **of_registry(registry))
    with pytest.raises(ConfigError, match="has no subject 's', version latest") as raised:
        choice.schema(None)
    assert raised.value.field == "format.registry.subject"
    assert choice.schema(IDS) == IDS


def test_a_schema_without_types_needs_declared_columns():
    choice = choose(JsonFormat(), schema=json.dumps(OPEN))
    with pytest.raises(ConfigError, match="does not tell the columns: any: there is no type; declare them") as raised:
        choice.schema(None)
    assert raised.value.field == "format.schema"
    assert read(choice, [b'{"id": 1}'], IDS).batch.to_pylist() == [{"id": 1}]


def test_a_column_that_json_cannot_be_read_as_is_named():
    names = {"properties": {"a": {"type": "object", "additionalProperties": {"type": "string"}}}}
    with pytest.raises(ConfigError, match="column 'a': json cannot be read as map"):
        choose(JsonFormat(), schema=json.dumps(names)).schema(None)


def test_columns_are_of_the_subject_with_what_it_refers_to(registry: RegistryState):
    registry.add("money", {"properties": {"cents": {"type": "integer"}}}, kind="JSON")
    references = [{"name": "money.json", "subject": "money", "version": 1}]
    registry.add("s", {"properties": {"price": {"$ref": "money.json"}}}, kind="JSON", references=references)
    choice = choose(JsonFormat(), **of_registry(registry))
    assert choice.schema(None) == pa.schema({"price": pa.struct({"cents": pa.int64()})})
    registry.add("s", ORDER, kind="JSON")
    assert choice.resolve().schema(None) == choice.schema(None), "what is resolved stays as it is"
    assert choose(JsonFormat(), **of_registry(registry)).schema(None) == COLUMNS
    assert choose(JsonFormat(), **of_registry(registry, version="1")).schema(None) == choice.schema(None)
    assert choose(JsonFormat(), schema=json.dumps(OPEN), **of_registry(registry)).schema(IDS) == IDS


def test_a_subject_of_another_kind_is_a_mistake(registry: RegistryState):
    registry.add("s", '"long"')
    with pytest.raises(ConfigError, match="subject 's' has schemas of AVRO"):
        choose(JsonFormat(), **of_registry(registry))


def test_the_subject_is_of_the_topic():
    value = json_format.ParseDict({"name": "json", "registry": {"url": "http://x"}}, struct_pb2.Value())
    settings: Any = read_choice(value).for_topic("orders").settings
    assert settings.registry.subject == "orders-value"


def test_messages_that_are_not_framed_or_no_objects_are_bad_by_their_number(registry: RegistryState):
    registry.add("s", {"properties": {"id": {"type": "integer"}}}, kind="JSON")
    choice = choose(JsonFormat(), **of_registry(registry))
    right, other, empty, text = framed(1, '{"id": 1}', '{"id": 2}', "", '{"id": "x"}')
    decoded = read(choice, [right, b'{"id": 3}', b"", other, empty, b"\1" + right[1:], text, right])
    assert decoded.batch.to_pydict() == {"id": [1, 2, 1]}
    assert decoded.origins is not None
    assert decoded.origins.tolist() == [0, 3, 7]
    assert [(each.index, each.error.partition(" changed")[0]) for each in decoded.bad] == [
        (1, "begins with byte 123, and not with 0 and the number of a schema"),
        (2, "has 0 bytes: too short for the number of a schema"),
        (4, "the message is empty"),
        (5, "begins with byte 1, and not with 0 and the number of a schema"),
        (6, "Column(/id)"),
    ]
    bare = choose(JsonFormat(), framing="none", **of_registry(registry))
    assert read(bare, [b'{"id": 3}', right]).batch.to_pydict() == {"id": [3]}


@given(st.lists(st.sampled_from([b"", b"\0\0\0\0\1", b"\0\0\0\0\2{}", b'\0\0\0\0\1{"id":1}', b"{}", b"\2\0\0\0\1{}"])))
def test_what_is_bad_alone_is_bad_among_others(messages: list[bytes]):
    settings = JsonFormat().settings_type(framing="confluent")
    reader = JsonFormat().reader(settings, IDS)
    decoded = reader.read(messages)
    places = range(len(messages)) if decoded.origins is None else decoded.origins.tolist()
    assert sorted([*places, *(each.index for each in decoded.bad)]) == list(range(len(messages)))
    assert {each.index for each in decoded.bad} == {
        index for index, message in enumerate(messages) if reader.read([message]).bad
    }


def test_a_schema_of_the_columns_is_registered_with_the_first_row(registry: RegistryState):
    choice = choose(JsonFormat(), **of_registry(registry))
    writer = choice.writer(COLUMNS)
    assert registry.subjects == {}
    batch = pa.RecordBatch.from_pylist([{"id": 1, "at": datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC)}], COLUMNS)
    messages = writer.write(batch).messages.to_pylist()
    assert messages == framed(1, '{"id":1,"at":"2026-01-31T00:00:00.000000Z"}')
    assert writer.write(batch).messages.to_pylist() == messages
    assert registry.subjects == {"s": [1]}
    assert registry.count("POST", "/subjects/s/versions") == 1
    assert registry.schemas[0]["schemaType"] == "JSON"
    again = choose(JsonFormat(), **of_registry(registry))
    assert again.schema(None) == COLUMNS
    assert read(again, messages).batch == batch


def test_the_given_schema_is_registered_as_it_is(registry: RegistryState):
    choice = choose(JsonFormat(), schema=json.dumps(ORDER), **of_registry(registry))
    written(choice, pa.record_batch({"id": [1]}))
    assert json.loads(registry.schemas[0]["schema"]) == ORDER


def test_without_register_the_schema_has_to_be_there(registry: RegistryState):
    choice = choose(JsonFormat(), schema=json.dumps(ORDER), **of_registry(registry, register=False))
    with pytest.raises(ConfigError, match="register is false"):
        choice.writer(IDS)
    number = registry.add("s", ORDER, kind="JSON")
    assert written(choice, pa.record_batch({"id": [1]})) == framed(number, '{"id":1}')
    assert registry.count("POST", "/subjects/s/versions") == 0


def test_a_writer_with_a_registry_needs_a_subject(registry: RegistryState):
    choice = choose(JsonFormat(), registry={"url": registry.url})
    with pytest.raises(ConfigError, match="needs the subject"):
        choice.writer(IDS)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ({"type": "string"}, "string"),
        ({"type": "string"}, "decimal"),
        ({"type": "string"}, "timestamp"),
        ({"type": "string"}, "dictionary"),
        ({"type": "string", "format": "date-time"}, "timestamp"),
        ({"type": "string", "format": "date"}, "date"),
        ({"type": "string", "format": "time"}, "time"),
        ({"type": "number"}, "int"),
        ({"type": "array", "items": {"type": "number"}}, "list"),
        ({"properties": {"x": {"type": "integer"}, "y": {"type": "string"}}}, "struct"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "struct"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "map"),
        ({"type": "integer"}, "null"),
        ({}, "struct"),
        ({"type": "integer", "required": True}, "int"),
    ],
)
def test_columns_that_the_schema_allows_are_written(kind: Any, name: str):
    choice = choose(
        JsonFormat(), schema=json.dumps({"properties": {"a": kind}, "required": kind.get("required", ["a"])})
    )
    assert choice.writer(pa.schema([("a", TYPES[name])]))
    check_writable("json", JsonFormat.files, choice.settings, pa.schema([("a", TYPES[name])]))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ({"type": "integer"}, "string"),
        ({"type": "integer"}, "float"),
        ({"type": "integer"}, "decimal"),
        ({"type": "boolean"}, "int"),
        ({"type": "null"}, "int"),
        ({"type": "string"}, "int"),
        ({"type": "string"}, "list"),
        ({"type": "string", "format": "date-time"}, "date"),
        ({"type": "array", "items": {"type": "string"}}, "list"),
        ({"type": "array", "items": {"type": "string"}}, "int"),
        ({"properties": {"y": {"type": "integer"}}}, "struct"),
        ({"properties": {"x": {"type": "string"}}}, "struct"),
        ({"properties": {"x": {"type": "integer"}}}, "map"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "map"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "int"),
    ],
)
def test_columns_that_the_schema_does_not_allow_are_refused(kind: Any, name: str):
    choice = choose(JsonFormat(), schema=json.dumps({"properties": {"a": kind}}))
    schema = pa.schema([("a", TYPES[name])])
    with pytest.raises(ConfigError, match=r"column 'a' is .*, and the schema has") as raised:
        choice.writer(schema)
    assert raised.value.field == "format.schema"
    with pytest.raises(ConfigError, match=r"column 'a' is .*, and the schema has"):
        check_writable("json", JsonFormat.files, choice.settings, schema)


TYPES = {
    "string": pa.string(),
    "dictionary": pa.dictionary(pa.int32(), pa.string()),
    "decimal": pa.decimal128(9, 2),
    "timestamp": pa.timestamp("ms"),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "int": pa.int16(),
    "float": pa.float32(),
    "list": pa.list_(pa.int64()),
    "struct": pa.struct({"x": pa.int64()}),
    "map": pa.map_(pa.string(), pa.int64()),
    "null": pa.null(),
}


def test_columns_that_the_schema_requires_or_does_not_have_are_named():
    choice = choose(JsonFormat(), schema=json.dumps({**ORDER, "required": ["at"]}))
    with pytest.raises(ConfigError, match="requires 'at', and there is no such column"):
        choice.writer(IDS)
    with pytest.raises(ConfigError, match="has no property 'price'") as raised:
        choice.writer(pa.schema([*COLUMNS, ("price", pa.int64())]))
    assert raised.value.allowed == ("id", "at")
    check_writable("json", JsonFormat.files, choice.settings, COLUMNS)
    with pytest.raises(ConfigError, match="requires 'at'"):
        check_writable("json", JsonFormat.files, choice.settings, IDS)


def test_the_schema_of_columns_tells_their_types_again():
    same = {
        "a": pa.int64(),
        "b": pa.int32(),
        "c": pa.float64(),
        "d": pa.float32(),
        "e": pa.string(),
        "f": pa.bool_(),
        "g": pa.date32(),
        "h": pa.timestamp("us", "UTC"),
        "i": pa.list_(pa.struct({"x": pa.string()})),
        "j": pa.map_(pa.string(), pa.int64()),
        "k": pa.null(),
    }
    assert arrow_schema(json_schema(pa.schema(same))) == pa.schema(same)
    wider = {"a": pa.uint16(), "b": pa.uint32(), "c": pa.decimal128(5, 2), "d": pa.time32("s"), "e": pa.float16()}
    found = arrow_schema(json_schema(pa.schema(wider)))
    assert found.types == [pa.int32(), pa.int64(), pa.string(), pa.string(), pa.float32()]
    with pytest.raises(TypeError, match="no way to write binary"):
        json_schema(pa.schema({"a": pa.binary()}))


def test_the_schema_of_columns_says_where_null_may_be():
    fields = [pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.float64(), nullable=False)]
    assert json.loads(json_schema(pa.schema([*fields, ("c", pa.string())]))) == {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"oneOf": [{"type": "null"}, {"type": "number"}]},
            "c": {"oneOf": [{"type": "null"}, {"type": "string"}]},
        },
        "additionalProperties": False,
    }


def test_changes_are_of_the_rows_of_a_schema_of_changes(registry: RegistryState):
    registry.add("s", CHANGE, kind="JSON")
    choice = choose(DebeziumJsonFormat(), primary_key=["id"], **of_registry(registry))
    assert choice.schema(None) == pa.schema({"id": pa.int64(), "name": pa.string()})
    reader = choice.reader(choice.schema(None))
    changes = framed(
        1,
        '{"op": "u", "before": {"id": 1, "name": "a"}, "after": {"id": 1, "name": "b"}, "source": {"lsn": 5}}',
        '{"op": "x"}',
    )
    decoded = reader.read([b"{}", *changes])
    assert decoded.batch.column("name").to_pylist() == ["a", "b"]
    assert decoded.origins is not None
    assert decoded.origins.tolist() == [1, 1]
    assert [each.index for each in decoded.bad] == [0, 2]
    with pytest.raises(ConfigError, match="has to be that of changes") as raised:
        choose(DebeziumJsonFormat(), schema=json.dumps(ORDER)).schema(None)
    assert raised.value.field == "format.schema"


def test_changes_are_written_with_a_schema_of_changes(registry: RegistryState):
    choice = choose(DebeziumJsonFormat(), **of_registry(registry))
    rows = pa.record_batch({"id": [1, 2]})
    batch = make_updates(rows, is_retract=False, ids=row_ids(rows, ["id"]))
    encoded = choice.writer(batch.schema).write(batch)
    assert encoded.messages.to_pylist() == framed(
        1, '{"before":null,"after":{"id":1},"op":"c"}', '{"before":null,"after":{"id":2},"op":"c"}'
    )
    assert encoded.origins is not None
    assert encoded.origins.tolist() == [0, 1]
    assert list(json.loads(registry.schemas[0]["schema"])["properties"]) == ["before", "after", "op"]
    again = choose(DebeziumJsonFormat(), **of_registry(registry))
    decoded = again.reader(again.schema(None)).read(encoded.messages.to_pylist())
    assert decoded.batch.drop_columns([UPDATING_META]) == rows
    needs_source = json.dumps({**CHANGE, "required": ["source"]})
    with pytest.raises(ConfigError, match="requires 'source'"):
        choose(DebeziumJsonFormat(), schema=needs_source).writer(batch.schema)
    with pytest.raises(ConfigError, match="column 'before' is"):
        choose(DebeziumJsonFormat(), schema=json.dumps(CHANGE)).writer(pa.schema([("name", pa.int64())]))


@pytest.mark.parametrize(("format", "schema"), [(JsonFormat(), ORDER), (DebeziumJsonFormat(), CHANGE)])
def test_files_have_the_columns_of_the_schema(tmp_path: Path, format: Any, schema: Any):
    file = tmp_path / "a.jsonl"
    file.write_text("", encoding="utf-8")
    choice = choose(format, schema=json.dumps(schema))
    assert choice.files().read_schema(choice.settings, LocalFileSystem(), str(file)) == choice.schema(None)


def test_decimals_are_strings_for_whoever_reads_the_schema(registry: RegistryState):
    choice = choose(JsonFormat(), **of_registry(registry))
    batch = pa.record_batch({"price": [decimal.Decimal("1.50")]})
    assert written(choice, batch) == framed(1, '{"price":"1.50"}')
    assert read(choice, framed(1, '{"price":"1.50"}'), batch.schema).batch == batch
