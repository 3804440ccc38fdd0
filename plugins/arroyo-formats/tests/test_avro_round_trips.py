from __future__ import annotations

import io
import json
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from arroyo_formats.avro.arrow_types import arrow_type, avro_schema
from arroyo_formats.avro.encoding import FastavroEncoder
from arroyo_formats.avro.fast import FastDecoder, FastEncoder, is_fast
from arroyo_formats.avro.format import AvroFormat
from arroyo_formats.avro.plain import PlainDecoder
from arroyo_formats.avro.resolution import resolve
from arroyo_formats.avro.schema import parse
from arroyo_formats.avro.storage import to_storage
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.errors import ConfigError, DataError

from .support.arrow_values import batches
from .support.formats_in_tests import choose, read, written

AVRO_TYPES = [
    pa.bool_(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.time32("ms"),
    pa.time64("us"),
    pa.timestamp("ms", "UTC"),
    pa.timestamp("us", "UTC"),
    pa.timestamp("ns", "UTC"),
    pa.timestamp("us"),
    pa.decimal128(5, 2),
    pa.decimal128(38, 10),
    pa.decimal256(60, 3),
]
FAST_TYPES = [kind for kind in AVRO_TYPES if not (pa.types.is_binary(kind) or pa.types.is_decimal(kind))]


@given(batches(AVRO_TYPES))
def test_any_value_comes_back_as_it_was(batch: pa.RecordBatch):
    choice = choose(AvroFormat(), schema=json.dumps(avro_schema(batch.schema)))
    decoded = read(choice, written(choice, batch), batch.schema)
    assert not decoded.bad
    assert decoded.batch.to_pylist() == batch.to_pylist()


@given(batches(FAST_TYPES), st.data())
def test_both_decoders_and_both_encoders_agree(batch: pa.RecordBatch, data: Any):
    record = parse(json.dumps(avro_schema(batch.schema)))
    columns = [
        to_storage(field.type, column.cast(arrow_type(field.type)), field.name)
        for field, column in zip(record.fields, _plain(batch), strict=True)
    ]
    rows = pa.StructArray.from_arrays(columns, batch.schema.names)
    messages = FastavroEncoder(record).encode(rows).to_pylist()
    if is_fast(record):
        assert FastEncoder(record).encode(rows).to_pylist() == messages
        fast, plain = FastDecoder(record).decode(messages), PlainDecoder(record).decode(messages)
        assert fast[1] == plain[1] == []
        assert fast[0].to_pylist() == plain[0].to_pylist()
        step = resolve(record, record)
        assert step(fast[0]).values.equals(step(plain[0]).values)


def _plain(batch: pa.RecordBatch) -> list[pa.Array]:
    """Columns of any nullability, as Avro's types have none of it."""
    kinds = [arrow_type(field.type) for field in parse(json.dumps(avro_schema(batch.schema))).fields]
    return [pa.array(column.to_pylist(), kind) for column, kind in zip(batch.columns, kinds, strict=True)]


@given(batches(AVRO_TYPES))
def test_fastavro_reads_what_is_written(batch: pa.RecordBatch):
    schema = avro_schema(batch.schema)
    choice = choose(AvroFormat(), schema=json.dumps(schema))
    record = parse(json.dumps(schema))
    parsed = fastavro.parse_schema(_without_logical_types(schema))
    for message in written(choice, batch):
        body = io.BytesIO(message)
        fastavro.schemaless_reader(body, parsed, None)
        assert body.tell() == len(message)
    assert len(record.fields) == batch.num_columns


def _without_logical_types(schema: Any) -> Any:
    """fastavro's own values of them end with the year 9999."""
    if isinstance(schema, dict):
        return {key: _without_logical_types(value) for key, value in schema.items() if key != "logicalType"}
    return [_without_logical_types(each) for each in schema] if isinstance(schema, list) else schema


@pytest.mark.parametrize(
    ("given_type", "read_type", "value"),
    [
        (pa.int8(), pa.int32(), -5),
        (pa.uint8(), pa.int32(), 200),
        (pa.int16(), pa.int32(), -300),
        (pa.uint32(), pa.int64(), 2**32 - 1),
        (pa.large_string(), pa.string(), "é"),
        (pa.large_binary(), pa.binary(), b"\0\xff"),
        (pa.binary(3), pa.binary(), b"abc"),
        (pa.timestamp("s", "UTC"), pa.timestamp("ms", "UTC"), 1_700_000_000),
        (pa.dictionary(pa.int32(), pa.string()), pa.string(), "x"),
        (pa.large_list(pa.int64()), pa.list_(pa.int64()), [1, None]),
    ],
)
def test_a_type_that_avro_does_not_have_is_written_as_the_next(given_type: Any, read_type: Any, value: Any):
    batch = pa.record_batch({"a": pa.array([value, None], given_type)})
    choice = choose(AvroFormat(), schema=json.dumps(avro_schema(batch.schema)))
    decoded = read(choice, written(choose(AvroFormat()), batch))
    assert decoded.batch.schema == pa.schema({"a": read_type})
    assert decoded.batch.column(0).cast(pa.array([value], given_type).type).to_pylist() == batch.column(0).to_pylist()


@pytest.mark.parametrize(
    "kind", [pa.uint64(), pa.duration("us"), pa.map_(pa.int64(), pa.string()), pa.struct([]), pa.time64("ns")]
)
def test_a_column_that_avro_cannot_hold_is_refused_by_name(kind: pa.DataType):
    with pytest.raises(ConfigError, match=r"column 'a'.*cannot hold"):
        choose(AvroFormat()).writer(pa.schema([("a", kind)]))


def test_a_column_whose_name_avro_cannot_have_is_refused():
    with pytest.raises(ConfigError, match="'a-b' is not a name"):
        choose(AvroFormat()).writer(pa.schema([("a-b", pa.int64())]))


def _schema(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "r", "fields": list(fields)})


def test_a_null_that_the_schema_does_not_allow_is_an_error_with_its_place():
    choice = choose(AvroFormat(), schema=_schema({"name": "a", "type": "long"}))
    with pytest.raises(DataError, match=r"'a' is null in row 1"):
        written(choice, pa.record_batch({"a": [1, None]}))


def test_a_value_that_the_schema_cannot_hold_is_an_error_with_its_place():
    choice = choose(AvroFormat(), schema=_schema({"name": "a", "type": "int"}))
    with pytest.raises(DataError, match=r"'a', row 1: a value does not fit int32"):
        written(choice, pa.record_batch({"a": [1, 2**40]}))


def test_an_enum_takes_its_symbols_only():
    kind = {"type": "enum", "name": "e", "symbols": ["RED", "BLUE"]}
    choice = choose(AvroFormat(), schema=_schema({"name": "a", "type": kind}))
    assert read(choice, written(choice, pa.record_batch({"a": ["BLUE", "RED"]}))).batch.to_pydict() == {
        "a": ["BLUE", "RED"]
    }
    with pytest.raises(DataError, match=r"'GREEN' in row 1, which enum e does not have"):
        written(choice, pa.record_batch({"a": ["RED", "GREEN"]}))


def test_a_field_without_a_column_has_its_default():
    choice = choose(
        AvroFormat(), schema=_schema({"name": "a", "type": "long"}, {"name": "b", "type": "string", "default": "x"})
    )
    assert read(choice, written(choice, pa.record_batch({"a": [1]}))).batch.to_pylist() == [{"a": 1, "b": "x"}]


def test_a_field_without_a_column_and_without_a_default_is_refused():
    choice = choose(AvroFormat(), schema=_schema({"name": "a", "type": "long"}, {"name": "b", "type": "string"}))
    with pytest.raises(ConfigError, match="no column 'b'"):
        choice.writer(pa.schema([("a", pa.int64())]))


def test_a_column_without_a_field_is_refused():
    choice = choose(AvroFormat(), schema=_schema({"name": "a", "type": "long"}))
    with pytest.raises(ConfigError, match="no field 'b'"):
        choice.writer(pa.schema([("a", pa.int64()), ("b", pa.int64())]))


@pytest.mark.parametrize("size", [None, 9])
def test_decimals_are_bytes_or_fixed(size: int | None):
    carrier = {"type": "bytes"} if size is None else {"type": "fixed", "name": "f", "size": size}
    kind = {**carrier, "logicalType": "decimal", "precision": 10, "scale": 3}
    choice = choose(AvroFormat(), schema=_schema({"name": "a", "type": kind}))
    values = [Decimal("-0.001"), Decimal("9999999.999"), Decimal("0.000"), Decimal("-128.000"), Decimal("0.128")]
    batch = pa.record_batch({"a": pa.array(values, pa.decimal128(10, 3))})
    parsed = fastavro.parse_schema(json.loads(_schema({"name": "a", "type": kind})))
    messages = written(choice, batch)
    assert [fastavro.schemaless_reader(io.BytesIO(each), parsed, None)["a"] for each in messages] == values
    assert read(choice, messages).batch.column(0).to_pylist() == values


def test_a_schema_that_is_no_record_is_one_column():
    choice = choose(AvroFormat(), schema='"string"')
    assert read(choice, [b"\x04ab", b"\x00"]).batch.to_pydict() == {"value": ["ab", ""]}


def test_a_union_of_several_types_is_a_struct_of_which_one_member_is_set():
    choice = choose(AvroFormat(), schema=_schema({"name": "a", "type": ["null", "long", "string"]}))
    decoded = read(choice, [b"\x00", b"\x02\x06", b"\x04\x02x", b"\x06"])
    assert decoded.batch.to_pydict() == {
        "a": [None, {"member0": 3, "member1": None}, {"member0": None, "member1": "x"}]
    }
    assert [each.error for each in decoded.bad] == ["a union has no branch 3"]


def test_messages_in_single_object_encoding_carry_the_fingerprint_of_their_schema():
    schema = _schema({"name": "a", "type": "long"})
    choice = choose(AvroFormat(), schema=schema, framing="single_object")
    (message,) = written(choice, pa.record_batch({"a": [7]}))
    assert message[:2] == b"\xc3\x01"
    assert message[10:] == b"\x0e"
    other = message[:2] + bytes(8) + message[10:]
    decoded = read(choice, [message, other, b"\x0e"])
    assert decoded.batch.to_pydict() == {"a": [7]}
    assert [each.error for each in decoded.bad] == [
        "has the fingerprint 0000000000000000, which is of another schema",
        "does not begin as a single object of Avro",
    ]


def test_declared_columns_choose_among_the_fields_and_their_types():
    choice = choose(AvroFormat(), schema=_schema({"name": "a", "type": "long"}, {"name": "b", "type": "string"}))
    declared = pa.schema([("b", pa.string()), ("a", pa.int32()), ("c", pa.float64())])
    decoded = read(choice, [b"\x02\x02x", b"\xfe\xff\xff\xff\xff\xff\x01\x02y"], declared)
    assert decoded.batch.to_pylist() == [{"b": "x", "a": 1, "c": None}]
    assert [(each.index, each.error) for each in decoded.bad] == [(1, "a: a value does not fit int32")]


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (pa.field("c", pa.int64(), nullable=False), "there is no field 'c', and the column cannot be null"),
        (pa.field("a", pa.struct({"x": pa.int64()})), r"'a' is int64, and cannot be read as struct<x: int64>"),
        (pa.field("l", pa.list_(pa.struct({"x": pa.date32()}))), "'l' is list.*and cannot be read as"),
    ],
)
def test_a_column_that_no_field_can_be_read_as_is_refused(declared: pa.Field, message: str):
    inner = {"type": "record", "name": "i", "fields": [{"name": "x", "type": "boolean"}]}
    fields = [{"name": "a", "type": "long"}, {"name": "l", "type": {"type": "array", "items": inner}}]
    with pytest.raises(ConfigError, match=message) as raised:
        choose(AvroFormat(), schema=_schema(*fields)).schema(pa.schema([declared]))
    assert raised.value.field == f"schema.{declared.name}"


def test_a_schema_file_is_read_on_the_driver_only(tmp_path):
    file = tmp_path / "r.avsc"
    file.write_text(_schema({"name": "a", "type": "long"}), encoding="utf-8")
    choice = choose(AvroFormat(), schema_file=str(file))
    file.unlink()
    assert read(choice, [b"\x02"]).batch.to_pydict() == {"a": [1]}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"schema": "{"}, "the schema cannot be used: not JSON"),
        ({"schema": '{"type": "record", "name": "r"}'}, "no list of fields"),
        ({"schema": '"strin"'}, "there is no type 'strin'"),
        ({"schema": '{"type": "array", "items": "null"}'}, "an array of values without bytes"),
        ({"schema_file": "/no/such/file"}, "cannot read"),
        ({"framing": "confluent"}, "needs a registry"),
        ({"framing": "raw"}, "no framing 'raw'"),
        ({"schema": '"long"', "schema_file": "x"}, "exclude each other"),
    ],
)
def test_a_mistake_in_the_settings_is_found_when_the_pipeline_is_planned(settings: dict[str, str], message: str):
    with pytest.raises(ConfigError, match=message):
        choose(AvroFormat(), **settings)


def test_a_recursive_schema_is_refused():
    node = _schema({"name": "next", "type": ["null", "r"]})
    with pytest.raises(ConfigError, match="next: 'r' contains itself"):
        choose(AvroFormat(), schema=node)


def test_messages_without_a_schema_are_refused():
    with pytest.raises(ConfigError, match="avro needs columns: declare them, or give a schema"):
        choose(AvroFormat()).schema(None)
    with pytest.raises(ConfigError, match="need the schema that they were written with"):
        choose(AvroFormat()).reader(pa.schema([("a", pa.int64())]))
