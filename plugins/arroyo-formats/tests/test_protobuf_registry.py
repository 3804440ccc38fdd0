from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from arroyo_formats.protobuf import compiling
from arroyo_formats.protobuf.format import ProtobufFormat

from arroyo_core.errors import ConfigError, ExternalError

from .support.formats_in_tests import choose, read, written
from .support.registry_server import RegistryState

TEXT = """syntax = "proto3";
package acme;
message Other { string name = 1; }
message Order {
  message Line { int32 count = 1; }
  int64 id = 1;
  repeated Line lines = 2;
}
"""
INNER = 'syntax = "proto3"; package acme; message Money { int64 cents = 1; }'
OUTER = 'syntax = "proto3"; package acme; import "acme/money.proto"; message Bill { Money total = 1; }'


@pytest.fixture
def order(tmp_path: Path) -> Path:
    file = tmp_path / "order.proto"
    file.write_text(TEXT, encoding="utf-8")
    return file


def test_messages_carry_the_number_of_their_schema_and_the_place_of_their_type(registry: RegistryState, order: Path):
    def chosen(message: str) -> Any:
        settings = {"url": registry.url, "subject": "orders-value"}
        return choose(ProtobufFormat(), schema_file=str(order), message=message, registry=settings)

    rows = pa.RecordBatch.from_pylist([{"id": 7, "lines": []}], chosen("acme.Order").schema(None))
    assert written(chosen("acme.Order"), rows) == [b"\0\0\0\0\1" + b"\x02\x02" + b"\x08\x07"]
    assert written(chosen("acme.Other"), pa.record_batch({"name": ["x"]})) == [b"\0\0\0\0\1" + b"\0" + b"\x0a\x01x"]
    line = written(chosen("acme.Order.Line"), pa.record_batch({"count": [1]}))
    assert line == [b"\0\0\0\0\1" + b"\x04\x02\x00" + b"\x08\x01"]
    assert registry.schemas == [{"schemaType": "PROTOBUF", "schema": TEXT, "references": []}]


def test_nothing_is_registered_before_the_first_row(registry: RegistryState, order: Path):
    choice = choose(ProtobufFormat(), schema_file=str(order), registry={"url": registry.url, "subject": "s"})
    writer = choice.writer(pa.schema([("name", pa.string())]))
    assert registry.subjects == {}
    writer.write(pa.record_batch({"name": ["x"]}))
    assert registry.subjects == {"s": [1]}


def test_the_message_type_comes_from_the_registry(registry: RegistryState):
    number = registry.add("s", TEXT, kind="PROTOBUF")
    settings = {"url": registry.url, "subject": "s"}
    choice = choose(ProtobufFormat(), message="acme.Order", registry=settings)
    rows = pa.RecordBatch.from_pylist([{"id": 7, "lines": [{"count": 1}]}], choice.schema(None))
    messages = written(choice, rows)
    assert messages[0].startswith(b"\0" + number.to_bytes(4, "big") + b"\x02\x02")
    assert read(choice, messages).batch == rows
    assert registry.subjects == {"s": [number]}


def test_messages_of_another_type_or_of_no_schema_are_bad(registry: RegistryState, order: Path):
    mine = registry.add("s", TEXT, kind="PROTOBUF")
    newer = registry.add(
        "s", 'syntax = "proto3"; package acme; message Order { int64 id = 1; bool x = 9; }', "PROTOBUF"
    )
    broken = registry.add("b", "message {", kind="PROTOBUF")
    avro = registry.add("a", '"long"')
    choice = choose(ProtobufFormat(), schema_file=str(order), message="acme.Order", registry={"url": registry.url})
    body = b"\x08\x07"

    def framed(number: int, place: bytes) -> bytes:
        return b"\0" + number.to_bytes(4, "big") + place + body

    decoded = read(
        choice,
        [
            framed(mine, b"\x02\x02"),
            framed(mine, b"\x00"),
            framed(newer, b"\x00"),
            framed(mine, b"\x02\x08"),
            framed(99, b"\x00"),
            framed(broken, b"\x00"),
            framed(avro, b"\x00"),
            b"\0\0\0\0\1",
            b"\x08\x07",
        ],
    )
    assert decoded.batch.to_pydict() == {"id": [7, 7], "lines": [[], []]}
    assert [(each.index, each.error.partition(" schema.proto:")[0]) for each in decoded.bad] == [
        (1, "is a acme.Other, and not a acme.Order"),
        (3, f"schema {mine} cannot be read: its schema has no message type at [4]"),
        (4, "the schema registry has no schema 99"),
        (5, f"schema {broken} cannot be read:"),
        (6, f"schema {avro} cannot be read: it is of AVRO, not Protobuf"),
        (7, "ends within the place of its message type"),
        (8, "has 2 bytes: too short for the number of a schema"),
    ]


@pytest.mark.parametrize("code", [-9, 1])
def test_messages_are_not_bad_because_the_compiler_failed(
    registry: RegistryState, order: Path, monkeypatch: pytest.MonkeyPatch, code: int
):
    mine = registry.add("s", TEXT, kind="PROTOBUF")
    choice = choose(ProtobufFormat(), schema_file=str(order), message="acme.Order", registry={"url": registry.url})
    messages = [b"\0" + mine.to_bytes(4, "big") + b"\x02\x02\x08\x07"]
    reader = choice.reader(choice.schema(None))
    with monkeypatch.context() as patch:
        failed = subprocess.CompletedProcess([], code, stdout="", stderr="Traceback (most recent call last):")
        patch.setattr(compiling.subprocess, "run", lambda *_args, **_settings: failed)
        with pytest.raises(ExternalError, match=r"the compiler of \.proto files failed"):
            reader.read(messages)
    assert reader.read(messages).bad == []


def test_imports_are_registered_under_their_paths_and_found_again(registry: RegistryState, tmp_path: Path):
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "money.proto").write_text(INNER)
    (tmp_path / "bill.proto").write_text(OUTER)
    settings = {"url": registry.url, "subject": "bills-value"}
    choice = choose(ProtobufFormat(), schema_file=str(tmp_path / "bill.proto"), registry=settings)
    messages = written(choice, pa.record_batch({"total": [{"cents": 5}]}))
    assert registry.subjects == {"acme/money.proto": [1], "bills-value": [2]}
    assert registry.schemas[1]["references"] == [
        {"name": "acme/money.proto", "subject": "acme/money.proto", "version": 1}
    ]
    by_subject = choose(ProtobufFormat(), registry=settings)
    assert read(by_subject, messages).batch.to_pydict() == {"total": [{"cents": 5}]}


def test_an_import_cannot_leave_its_folder(registry: RegistryState):
    references = [{"name": "../../escape.proto", "subject": "i", "version": 1}]
    registry.add("i", INNER, kind="PROTOBUF")
    registry.add("s", OUTER, kind="PROTOBUF", references=references)
    with pytest.raises(ConfigError, match=r"'../../escape.proto' is not the path of an import"):
        choose(ProtobufFormat(), registry={"url": registry.url, "subject": "s"})


def test_a_subject_that_is_not_there_or_of_another_kind_is_a_mistake(registry: RegistryState):
    with pytest.raises(ConfigError, match=r"Subject 's' not found.*give a schema_file"):
        choose(ProtobufFormat(), registry={"url": registry.url, "subject": "s"})
    registry.add("s", '"long"')
    with pytest.raises(ConfigError, match="subject 's' has schemas of AVRO"):
        choose(ProtobufFormat(), registry={"url": registry.url, "subject": "s"})


def test_without_register_the_file_has_to_be_there(registry: RegistryState, order: Path):
    settings = {"url": registry.url, "subject": "s", "register": False}
    choice = choose(ProtobufFormat(), schema_file=str(order), registry=settings)
    with pytest.raises(ConfigError, match="register is false"):
        choice.writer(pa.schema([("name", pa.string())]))
    registry.add("s", TEXT, kind="PROTOBUF")
    assert written(choice, pa.record_batch({"name": ["x"]}))[0][:6] == b"\0\0\0\0\1\0"
