from __future__ import annotations

import datetime as dt
import io
import json
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from arroyo_formats.avro.format import AvroFormat
from arroyo_formats.avro.resolution import IncompatibleError, resolve
from arroyo_formats.avro.schema import parse

from arroyo_core.errors import ConfigError

from .support.formats_in_tests import choose, read, written
from .support.registry_server import RegistryState

COLORS = {"type": "enum", "name": "color", "symbols": ["RED", "BLUE"]}


def record(*fields: Any, name: str = "r") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def f(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


@dataclass(frozen=True)
class Case:
    """Rows of one schema, read as another: what comes of them, and why some are bad."""

    name: str
    writer: dict[str, Any]
    reader: dict[str, Any]
    rows: list[dict[str, Any]]
    expected: list[dict[str, Any]]
    errors: dict[int, str] = field(default_factory=dict)
    #: Where Avro's own rules, as fastavro has them, end.
    is_ours: bool = False

    def __str__(self) -> str:
        return self.name


CASES = [
    Case(
        "a field is added, with a default",
        record(f("a", "long")),
        record(f("a", "long"), f("b", "string", default="x"), f("c", ["null", "long"], default=None)),
        [{"a": 1}, {"a": 2}],
        [{"a": 1, "b": "x", "c": None}, {"a": 2, "b": "x", "c": None}],
    ),
    Case(
        "a field is added, with a default of every kind",
        record(f("a", "long")),
        record(
            f("by", "bytes", default="\u00ff"),
            f("fx", {"type": "fixed", "name": "fx", "size": 2}, default="ab"),
            f("e", COLORS, default="BLUE"),
            f("l", {"type": "array", "items": "int"}, default=[1, 2]),
            f("m", {"type": "map", "values": "double"}, default={"k": 1}),
            f("r", record(f("x", "int"), f("y", "int", default=5), name="inner"), default={"x": 1}),
            f("d", {"type": "int", "logicalType": "date"}, default=1),
            f("t", "boolean", default=True),
        ),
        [{"a": 1}],
        [
            {
                "by": b"\xff",
                "fx": b"ab",
                "e": "BLUE",
                "l": [1, 2],
                "m": [("k", 1.0)],
                "r": {"x": 1, "y": 5},
                "d": dt.date(1970, 1, 2),
                "t": True,
            }
        ],
        is_ours=True,
    ),
    Case(
        "a field is removed",
        record(f("a", "long"), f("b", "string")),
        record(f("b", "string")),
        [{"a": 1, "b": "x"}],
        [{"b": "x"}],
    ),
    Case(
        "fields are reordered",
        record(f("a", "long"), f("b", "string")),
        record(f("b", "string"), f("a", "long")),
        [{"a": 1, "b": "x"}],
        [{"b": "x", "a": 1}],
    ),
    Case(
        "a field is renamed, with an alias",
        record(f("old", "long")),
        record(f("new", "long", aliases=["old"])),
        [{"old": 1}],
        [{"new": 1}],
    ),
    *[
        Case(f"{narrow} is read as {wide}", record(f("a", narrow)), record(f("a", wide)), [{"a": value}], [{"a": out}])
        for narrow, wide, value, out in [
            ("int", "long", 5, 5),
            ("int", "float", 5, 5.0),
            ("int", "double", -5, -5.0),
            ("long", "float", 2**40, float(2**40)),
            ("long", "double", 2**60, float(2**60)),
            ("float", "double", 0.5, 0.5),
            ("string", "bytes", "é", "é".encode()),
            ("bytes", "string", b"ab", "ab"),
        ]
    ],
    Case(
        "bytes that are no text are bad",
        record(f("a", "bytes")),
        record(f("a", "string")),
        [{"a": b"ok"}, {"a": b"\xff"}],
        [{"a": "ok"}],
        {1: "a: a value does not fit string"},
        is_ours=True,
    ),
    Case(
        "a field may be null from now on",
        record(f("a", "long")),
        record(f("a", ["null", "long"])),
        [{"a": 1}],
        [{"a": 1}],
    ),
    Case(
        "a field may be null no more",
        record(f("a", ["null", "long"])),
        record(f("a", "long")),
        [{"a": 1}, {"a": None}, {"a": 3}],
        [{"a": 1}, {"a": 3}],
        {1: "a: null, where it cannot be null"},
        is_ours=True,
    ),
    Case(
        "null is promoted too",
        record(f("a", ["null", "int"])),
        record(f("a", ["double", "null"])),
        [{"a": 1}, {"a": None}],
        [{"a": 1.0}, {"a": None}],
    ),
    Case(
        "an enum gets a symbol",
        record(f("a", COLORS)),
        record(f("a", {**COLORS, "symbols": ["GREEN", "BLUE", "RED"]})),
        [{"a": "RED"}],
        [{"a": "RED"}],
    ),
    Case(
        "an enum loses a symbol, and has a default",
        record(f("a", COLORS)),
        record(f("a", {**COLORS, "symbols": ["BLUE", "OTHER"], "default": "OTHER"})),
        [{"a": "RED"}, {"a": "BLUE"}],
        [{"a": "OTHER"}, {"a": "BLUE"}],
    ),
    Case(
        "an enum loses a symbol, and has no default",
        record(f("a", COLORS)),
        record(f("a", {**COLORS, "symbols": ["BLUE"]})),
        [{"a": "RED"}, {"a": "BLUE"}],
        [{"a": "BLUE"}],
        {0: "a: a symbol that enum color does not have"},
        is_ours=True,
    ),
    Case(
        "items are promoted",
        record(f("a", {"type": "array", "items": "int"})),
        record(f("a", {"type": "array", "items": ["null", "double"]})),
        [{"a": [1, 2]}, {"a": []}],
        [{"a": [1.0, 2.0]}, {"a": []}],
    ),
    Case(
        "an item is null no more",
        record(f("a", ["null", {"type": "array", "items": ["null", "int"]}])),
        record(f("a", ["null", {"type": "array", "items": "int"}])),
        [{"a": [1]}, {"a": None}, {"a": [1, None]}, {"a": [2]}],
        [{"a": [1]}, {"a": None}, {"a": [2]}],
        {2: "a: null, where it cannot be null"},
        is_ours=True,
    ),
    Case(
        "values of maps are promoted",
        record(f("a", {"type": "map", "values": "int"})),
        record(f("a", {"type": "map", "values": "long"})),
        [{"a": {"k": 1}}],
        [{"a": [("k", 1)]}],
    ),
    Case(
        "fields of an inner record change",
        record(f("a", ["null", record(f("x", "int"), f("y", "int"), name="i")])),
        record(f("a", ["null", record(f("z", "string", default="-"), f("x", "long"), name="i")])),
        [{"a": {"x": 1, "y": 2}}, {"a": None}],
        [{"a": {"z": "-", "x": 1}}, {"a": None}],
    ),
    Case(
        "a record has another name",
        record(f("a", "long"), name="old"),
        record(f("a", "long"), name="new"),
        [{"a": 1}],
        [{"a": 1}],
        is_ours=True,
    ),
    Case(
        "a type becomes one of several",
        record(f("a", "long")),
        record(f("a", ["string", "long"])),
        [{"a": 1}],
        [{"a": {"member0": None, "member1": 1}}],
        is_ours=True,
    ),
    Case(
        "one of several types is the only one",
        record(f("a", ["null", "int", "string"])),
        record(f("a", ["null", "long"])),
        [{"a": 1}, {"a": "x"}, {"a": None}],
        [{"a": 1}, {"a": None}],
        {1: "a: a string, which cannot be read here"},
        is_ours=True,
    ),
    Case(
        "milliseconds are read as microseconds",
        record(f("a", {"type": "long", "logicalType": "timestamp-millis"})),
        record(f("a", {"type": "long", "logicalType": "timestamp-micros"})),
        [{"a": 1500}],
        [{"a": dt.datetime(1970, 1, 1, 0, 0, 1, 500000, dt.UTC)}],
        is_ours=True,
    ),
    Case(
        "a number gets a meaning",
        record(f("a", "int")),
        record(f("a", {"type": "int", "logicalType": "date"})),
        [{"a": 1}],
        [{"a": dt.date(1970, 1, 2)}],
        is_ours=True,
    ),
    Case(
        "a decimal of more digits than it may have is bad",
        record(f("a", {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1})),
        record(f("a", {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1})),
        [{"a": b"\x64"}, {"a": b"\x7f\xff"}],
        [{"a": Decimal("10.0")}],
        {1: "a: a number of more than 3 digits"},
        is_ours=True,
    ),
]

INCOMPATIBLE = [
    (record(f("a", "long")), record(f("a", "int")), "a: long cannot be read as int"),
    (record(f("a", "string")), record(f("a", "long")), "a: string cannot be read as long"),
    (record(f("a", "long")), record(f("a", "long"), f("b", "long")), "b: it was not written, and has no default"),
    (record(f("a", "long")), record(f("b", "long", default="x")), "b: 'x' is no default of long"),
    (record(f("a", "null")), record(f("a", "long")), "a: null cannot be read as long"),
    (
        record(f("a", {"type": "array", "items": "string"})),
        record(f("a", {"type": "array", "items": "int"})),
        "a[]: string cannot be read as int",
    ),
    (
        record(f("a", {"type": "map", "values": "string"})),
        record(f("a", {"type": "map", "values": "int"})),
        "a{}: string cannot be read as int",
    ),
    (
        record(f("a", record(f("x", "string"), name="i"))),
        record(f("a", record(f("x", "int"), name="i"))),
        "a.x: string cannot be read as int",
    ),
    (
        record(f("a", {"type": "fixed", "name": "x", "size": 2})),
        record(f("a", {"type": "fixed", "name": "x", "size": 3})),
        "a: fixed x cannot be read as fixed x",
    ),
    (record(f("a", ["int", "string"])), record(f("a", "boolean")), "a: [int, string] cannot be read as boolean"),
    (
        record(f("a", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2})),
        record(f("a", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3})),
        "a: decimal(9, 2) cannot be read as decimal(9, 3)",
    ),
    (
        record(f("a", {"type": "long", "logicalType": "time-micros"})),
        record(f("a", {"type": "long", "logicalType": "timestamp-micros"})),
        "a: time-micros cannot be read as timestamp-micros",
    ),
]


def message(schema: dict[str, Any], number: int, row: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(_bare(schema)), row)
    return b"\0" + number.to_bytes(4, "big") + out.getvalue()


def _bare(schema: Any) -> Any:
    """Without logical types, so that rows have the numbers and bytes that are written."""
    if isinstance(schema, dict):
        return {key: _bare(value) for key, value in schema.items() if key != "logicalType"}
    return [_bare(each) for each in schema] if isinstance(schema, list) else schema


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rows_of_an_older_schema_are_read_as_the_given_one(case: Case, registry: RegistryState):
    number = registry.add("s", case.writer)
    choice = choose(AvroFormat(), schema=json.dumps(case.reader), registry={"url": registry.url})
    decoded = read(choice, [message(case.writer, number, row) for row in case.rows])
    assert decoded.batch.to_pylist() == case.expected
    assert {each.index: each.error for each in decoded.bad} == case.errors


@pytest.mark.parametrize("case", [case for case in CASES if not case.is_ours], ids=str)
def test_fastavro_resolves_the_same(case: Case):
    writer, reader = fastavro.parse_schema(_bare(case.writer)), fastavro.parse_schema(case.reader)
    found = []
    for row in case.rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, writer, row)
        out.seek(0)
        found.append(fastavro.schemaless_reader(out, writer, reader))
    expected = [{key: dict(value) if _is_map(value) else value for key, value in row.items()} for row in case.expected]
    assert found == expected


def _is_map(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], tuple)


@pytest.mark.parametrize(("writer", "reader", "reason"), INCOMPATIBLE)
def test_messages_of_an_incompatible_schema_are_bad(writer: Any, reader: Any, reason: str, registry: RegistryState):
    with pytest.raises(IncompatibleError) as raised:
        resolve(parse(json.dumps(writer)), parse(json.dumps(reader)))
    assert str(raised.value) == reason
    number, right = registry.add("s", writer), registry.add("s", record(f("a", "long")))
    choice = choose(AvroFormat(), schema=json.dumps(record(f("a", "long"))), registry={"url": registry.url})
    decoded = read(choice, [message(record(f("a", "long")), right, {"a": 1})])
    assert decoded.batch.to_pydict() == {"a": [1]}
    strict = choose(AvroFormat(), schema=json.dumps(reader), registry={"url": registry.url})
    decoded = strict.reader(strict.schema(None)).read([b"\0" + number.to_bytes(4, "big")])
    assert [each.error for each in decoded.bad] == [f"schema {number} cannot be read: {reason}"]


def test_rows_are_read_as_the_latest_version_of_the_subject(registry: RegistryState):
    old = registry.add("s", record(f("a", "int")))
    new = registry.add("s", record(f("b", "long", default=7), f("a", "long")))
    choice = choose(AvroFormat(), registry={"url": registry.url, "subject": "s"})
    rows = [(old, record(f("a", "int")), {"a": 1}), (new, record(f("b", "long"), f("a", "long")), {"a": 2, "b": 3})]
    decoded = read(choice, [message(schema, number, row) for number, schema, row in rows * 2])
    assert decoded.batch.to_pydict() == {"b": [7, 3, 7, 3], "a": [1, 2, 1, 2]}


def test_rows_are_read_as_the_version_that_is_given(registry: RegistryState):
    registry.add("s", record(f("a", "int")))
    registry.add("s", record(f("b", "long")))
    choice = choose(AvroFormat(), registry={"url": registry.url, "subject": "s", "version": "1"})
    assert choice.schema(None) == pa.schema({"a": pa.int32()})


def test_declared_columns_need_no_schema_of_a_reader(registry: RegistryState):
    first = registry.add("other", record(f("a", "int"), f("b", "string")))
    second = registry.add("other", record(f("b", "string"), f("c", "long")))
    choice = choose(AvroFormat(), registry={"url": registry.url, "subject": "none-yet"})
    messages = [
        message(record(f("a", "int"), f("b", "string")), first, {"a": 1, "b": "x"}),
        message(record(f("b", "string"), f("c", "long")), second, {"b": "y", "c": 2}),
    ]
    declared = pa.schema([("a", pa.int64()), ("b", pa.string())])
    assert read(choice, messages, declared).batch.to_pydict() == {"a": [1, None], "b": ["x", "y"]}
    strict = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    decoded = read(choice, messages, strict)
    assert [each.error for each in decoded.bad] == [
        f"schema {second} cannot be read: it has no field 'a', and the column cannot be null"
    ]


def test_without_columns_an_unknown_subject_is_a_mistake(registry: RegistryState):
    choice = choose(AvroFormat(), registry={"url": registry.url, "subject": "none-yet"})
    with pytest.raises(ConfigError, match=r"no subject 'none-yet', version latest: declare the columns"):
        choice.schema(None)


def test_types_of_referenced_schemas_are_known(registry: RegistryState):
    inner = record(f("x", "int"), name="org.acme.inner")
    registry.add("inner", inner)
    outer = record(f("a", "org.acme.inner"), f("b", {"type": "array", "items": "org.acme.inner"}))
    references = [{"name": "org.acme.inner", "subject": "inner", "version": 1}]
    number = registry.add("s", outer, references=references)
    choice = choose(AvroFormat(), registry={"url": registry.url, "subject": "s"})
    decoded = read(choice, [b"\0" + number.to_bytes(4, "big") + b"\x02\x02\x04\x00"])
    assert decoded.batch.to_pylist() == [{"a": {"x": 1}, "b": [{"x": 2}]}]


def test_a_writer_of_more_columns_adds_a_version_that_old_readers_and_new_ones_read(registry: RegistryState):
    settings = {"url": registry.url, "subject": "s"}
    old = written(choose(AvroFormat(), registry=settings), pa.record_batch({"a": [1]}))
    new = written(choose(AvroFormat(), registry=settings), pa.record_batch({"a": [2], "b": ["x"]}))
    assert registry.subjects == {"s": [1, 2]}
    latest = choose(AvroFormat(), registry=settings)
    assert read(latest, old + new).batch.to_pydict() == {"a": [1, 2], "b": [None, "x"]}
    first = choose(AvroFormat(), registry={**settings, "version": "1"})
    assert read(first, old + new).batch.to_pydict() == {"a": [1, 2]}
