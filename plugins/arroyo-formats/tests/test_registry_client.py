from __future__ import annotations

import json
import socket
from typing import Any

import pyarrow as pa
import pytest
from arroyo_formats import read_choice
from arroyo_formats.avro.format import AvroFormat
from arroyo_formats.json_schema import JsonSchemaError, arrow_schema
from arroyo_formats.limits import REGISTRY_BYTES
from arroyo_formats.protobuf.compiling import ProtoError, compile_texts
from arroyo_formats.registry import RegisteredSchema, SchemaRegistry, UnknownSchemaError
from arroyo_formats.registry.client import UNKNOWN_FOR_S
from arroyo_formats.registry.transport import ATTEMPTS, Transport
from google.protobuf import json_format, struct_pb2

from arroyo_core.errors import ConfigError, ExternalError

from .support.formats_in_tests import choose, read, written
from .support.registry_server import RegistryState

LONG = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]}
TEXT = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "string"}]}
SECRET = "correct horse battery"


def client(state: RegistryState, **settings: Any) -> SchemaRegistry:
    waits: list[float] = []
    return SchemaRegistry(Transport(urls=(state.url,), sleep=waits.append, **settings))


def test_a_number_is_asked_for_once_in_a_process(registry: RegistryState):
    number = registry.add("s", LONG)
    for _ in range(3):
        assert json.loads(client(registry).by_id(number).text) == LONG
    assert registry.count("GET", f"/schemas/ids/{number}") == 1


def test_an_unknown_number_is_asked_for_again_after_a_while(registry: RegistryState):
    now = [100.0]
    patient = SchemaRegistry(Transport(urls=(registry.url,)), clock=lambda: now[0])
    for _ in range(3):
        with pytest.raises(UnknownSchemaError, match="no schema 1"):
            patient.by_id(1)
    assert registry.count("GET", "/schemas/ids/1") == 1
    registry.add("s", LONG)
    now[0] += UNKNOWN_FOR_S + 1
    assert json.loads(patient.by_id(1).text) == LONG


def test_numbers_of_one_registry_are_not_those_of_another(registry: RegistryState):
    from .support.registry_server import running_registry

    with running_registry() as other:
        registry.add("s", LONG)
        other.add("s", TEXT)
        assert json.loads(client(registry).by_id(1).text) == LONG
        assert json.loads(client(other).by_id(1).text) == TEXT


def test_what_passes_is_waited_out(registry: RegistryState):
    registry.add("s", LONG)
    registry.failures = [503, 500, 429]
    assert client(registry).version("s").version == 1


def test_an_outage_is_an_external_error_that_names_the_registry(registry: RegistryState):
    registry.failures = [503] * ATTEMPTS
    with pytest.raises(ExternalError, match=rf"does not answer: GET {registry.url}/subjects/s/versions/latest: 503"):
        client(registry).version("s")
    assert registry.failures == []


def test_nobody_at_the_address_is_an_external_error():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    alone = SchemaRegistry(Transport(urls=(f"http://127.0.0.1:{port}",), sleep=lambda _: None))
    with pytest.raises(ExternalError, match="does not answer"):
        alone.by_id(1)


def test_a_registry_that_never_answers_is_given_up():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        impatient = SchemaRegistry(Transport(urls=(url,), timeout_s=0.05, sleep=lambda _: None))
        with pytest.raises(ExternalError, match="timed out"):
            impatient.by_id(1)


def test_the_next_address_is_tried(registry: RegistryState):
    registry.add("s", LONG)
    both = SchemaRegistry(Transport(urls=("http://127.0.0.1:1", registry.url), sleep=lambda _: None))
    assert both.version("s").version == 1


@pytest.mark.parametrize(("how", "right"), [("basic", True), ("basic", False), ("token", True), ("token", False)])
def test_credentials_are_sent_and_never_shown(registry: RegistryState, how: str, right: bool):
    registry.add("s", LONG)
    secret = SECRET if right else SECRET + "!"
    if how == "basic":
        registry.require_basic("ana", SECRET)
        asking = client(registry, username="ana", password=secret)
    else:
        registry.require_token(SECRET)
        asking = client(registry, token=secret)
    assert SECRET not in repr(asking)
    if right:
        assert asking.version("s").version == 1
        return
    with pytest.raises(ConfigError, match=r"refuses (user 'ana'|the token)") as raised:
        asking.version("s")
    assert SECRET not in f"{raised.value}{raised.value.__dict__}"
    assert registry.count("GET", "/subjects/s/versions/latest") == 1, "a refusal is not tried again"


def test_credentials_do_not_follow_a_redirect(registry: RegistryState):
    registry.failures = [302]
    with pytest.raises(ConfigError, match="refuses"):
        client(registry, token=SECRET).version("s")


def test_a_schema_is_registered_once_and_looked_up(registry: RegistryState):
    asking = client(registry)
    schema = RegisteredSchema("AVRO", json.dumps(LONG))
    with pytest.raises(UnknownSchemaError):
        asking.lookup("s", schema)
    assert asking.register("s", schema) == asking.register("s", schema) == asking.lookup("s", schema) == 1


def test_a_subject_of_any_name_is_asked_for(registry: RegistryState):
    registry.add("a/b c-value", LONG)
    assert client(registry).version("a/b c-value").id == 1


@pytest.mark.parametrize(
    ("level", "old", "new", "fits"),
    [
        ("BACKWARD", LONG, TEXT, False),
        ("NONE", LONG, TEXT, True),
        ("BACKWARD", LONG, {**LONG, "fields": [*LONG["fields"], {"name": "b", "type": "long"}]}, False),
        ("FORWARD", LONG, {**LONG, "fields": [*LONG["fields"], {"name": "b", "type": "long"}]}, True),
        ("FULL", LONG, {**LONG, "fields": [*LONG["fields"], {"name": "b", "type": "long"}]}, False),
        ("FULL", LONG, {**LONG, "fields": [*LONG["fields"], {"name": "b", "type": "long", "default": 0}]}, True),
    ],
)
def test_compatibility_is_checked_before_and_while_registering(
    registry: RegistryState, level: str, old: Any, new: Any, fits: bool
):
    registry.add("s", old)
    registry.compatibility = level
    asking, schema = client(registry), RegisteredSchema("AVRO", json.dumps(new))
    if fits:
        asking.check("s", schema)
        assert asking.register("s", schema) == 2
        return
    for call in (asking.check, asking.register):
        with pytest.raises(ConfigError, match=rf"incompatible with what subject 's' has \({level}\)"):
            call("s", schema)
    assert registry.subjects == {"s": [1]}


def test_a_writer_is_checked_when_planned_and_registers_with_its_first_row(registry: RegistryState):
    registry.add("s", TEXT)
    choice = choose(AvroFormat(), registry={"url": registry.url, "subject": "s"})
    with pytest.raises(ConfigError, match="incompatible"):
        choice.writer(pa.schema([("a", pa.int64())]))
    fine = choice.writer(pa.schema([("a", pa.string()), ("b", pa.int64())]))
    assert registry.subjects == {"s": [1]}
    fine.write(pa.record_batch({"a": ["x"], "b": [1]}))
    fine.write(pa.record_batch({"a": ["x"], "b": [1]}))
    assert registry.subjects == {"s": [1, 2]}
    assert registry.count("POST", "/subjects/s/versions") == 1


def test_without_register_the_schema_has_to_be_there(registry: RegistryState):
    settings = {"url": registry.url, "subject": "s", "register": False}
    choice = choose(AvroFormat(), schema=json.dumps(LONG), registry=settings)
    with pytest.raises(ConfigError, match="register is false"):
        choice.writer(pa.schema([("a", pa.int64())]))
    registry.add("s", json.dumps(LONG))
    assert written(choice, pa.record_batch({"a": [1]})) == [b"\0\0\0\0\1\2"]
    assert registry.count("POST", "/subjects/s/versions") == 0


def test_the_subject_is_of_the_topic_unless_it_is_given(registry: RegistryState):
    def chosen(**settings: str) -> Any:
        value = struct_pb2.Value()
        json_format.ParseDict({"name": "avro", "registry": {"url": registry.url, **settings}}, value)
        return read_choice(value)

    assert chosen().for_topic("orders").settings.registry.subject == "orders-value"
    assert chosen().for_topic("orders", "key").settings.registry.subject == "orders-key"
    assert chosen(subject="mine").for_topic("orders").settings.registry.subject == "mine"
    resolved = chosen().for_topic("orders").resolve()
    again = read_choice(resolved.to_value())
    assert again.settings == resolved.settings
    registry.add("orders-value", LONG)
    assert again.resolve().settings == resolved.settings, "what is resolved stays as it is"
    assert SECRET not in repr(chosen(password=SECRET))


def test_a_mistake_in_the_registry_has_its_path_and_shows_nothing_else():
    value = struct_pb2.Value()
    json_format.ParseDict({"name": "avro", "registry": {"password": SECRET, "urll": "x"}}, value)
    with pytest.raises(ConfigError) as raised:
        read_choice(value)
    assert raised.value.field == "format.registry.urll"
    assert raised.value.suggestion == "url"
    assert SECRET not in f"{raised.value}{raised.value.__dict__}"


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({}, "url"),
        ({"url": "localhost:8081"}, "url"),
        ({"url": "http://ana:secret@localhost"}, "url"),
        ({"url": "http://x", "token": "t", "username": "u"}, "token"),
        ({"url": "http://x", "version": "newest"}, "version"),
        ({"url": "http://x", "ca_file": "/no/such/file"}, "ca_file"),
    ],
)
def test_settings_are_checked_before_anything_is_asked(settings: dict[str, str], field: str):
    with pytest.raises(ConfigError) as raised:
        choose(AvroFormat(), registry=settings)
    assert raised.value.field == f"format.registry.{field}"
    assert "secret" not in str(raised.value)


def test_messages_that_name_no_schema_are_bad_by_their_number(registry: RegistryState):
    registry.add("s", LONG)
    registry.add("json", "{}", kind="JSON")
    choice = choose(AvroFormat(), registry={"url": registry.url, "subject": "s"})
    right = b"\0\0\0\0\1\2"
    decoded = read(
        choice, [right, b"\0\0\0\0\x63\2", b"{}", b"\0\0\0\0\2\2", right, b"\1\0\0\0\1\2", right[:-1], right]
    )
    assert decoded.batch.to_pydict() == {"a": [1, 1, 1]}
    assert [(each.index, each.error) for each in decoded.bad] == [
        (1, "the schema registry has no schema 99"),
        (2, "has 2 bytes: too short for the number of a schema"),
        (3, "schema 2 is of JSON, not Avro"),
        (5, "begins with byte 1, and not with 0 and the number of a schema"),
        (6, "ends within a value"),
    ]


def test_an_outage_while_reading_is_an_external_error_and_no_bad_message(registry: RegistryState):
    registry.add("s", LONG)
    choice = choose(AvroFormat(), schema=json.dumps(LONG), registry={"url": registry.url})
    reader = choice.reader(choice.schema(None))
    registry.failures = [503] * ATTEMPTS
    with pytest.raises(ExternalError):
        reader.read([b"\0\0\0\0\1\2"])
    assert reader.read([b"\0\0\0\0\1\2"]).batch.to_pydict() == {"a": [1]}


def test_a_chain_of_references_without_end_is_not_followed(registry: RegistryState):
    for number in range(300):
        following = {"name": f"n{number + 1}", "subject": f"s{number + 1}", "version": 1}
        registry.add(f"s{number}", {**LONG, "name": f"r{number}"}, references=[following])
    asked = client(registry)
    with pytest.raises(ConfigError, match="201 are too many: at most 200 schemas"):
        asked.referenced(asked.version("s0"))
    assert len(registry.requests) <= 202


def test_an_answer_that_is_too_large_is_not_read(registry: RegistryState, monkeypatch: pytest.MonkeyPatch):
    registry.add("s", {**LONG, "doc": "x" * 1000})
    monkeypatch.setenv(REGISTRY_BYTES.variable, "500")
    with pytest.raises(ExternalError, match=r"too large: at most 500B in an answer.*ARROYO_MAX_REGISTRY_BYTES"):
        client(registry).version("s")


def test_an_answer_that_is_nested_too_deep_is_none(registry: RegistryState, monkeypatch: pytest.MonkeyPatch):
    registry.add("s", LONG)

    def recurse(*_: Any) -> Any:
        raise RecursionError

    monkeypatch.setattr("arroyo_formats.registry.transport.json.loads", recurse)
    with pytest.raises(ExternalError, match="the answer is nested too deep"):
        client(registry).version("s")


def test_a_number_that_is_none_is_no_answer(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Transport, "send", lambda *_: {"schema": '"int"', "id": "many"})
    with pytest.raises(ExternalError, match="an answer that is no schema"):
        SchemaRegistry(Transport(urls=("http://localhost:1",))).version("s")


@pytest.mark.parametrize("name", ["a/b", "x\0", "../../x.proto", "/etc/x.proto", "n" * 300])
def test_a_reference_cannot_be_a_file_elsewhere(name: str):
    with pytest.raises(ProtoError, match="is not the path of an import"):
        compile_texts(
            {"a": "", name: "", "schema.proto": 'syntax = "proto3"; message A { int32 a = 1; }'}, "schema.proto"
        )


@pytest.mark.parametrize("path", ["../../../../../etc/passwd", "/etc/passwd"])
def test_an_import_cannot_be_a_file_elsewhere(path: str):
    text = f'syntax = "proto3"; import "{path}"; message A {{ int32 a = 1; }}'
    with pytest.raises(ProtoError, match="not found or had errors"):
        compile_texts({"schema.proto": text}, "schema.proto")


@pytest.mark.parametrize("reference", ["file:///etc/passwd", "http://localhost/x", "/etc/passwd", "#/a/b", "#"])
def test_a_json_schema_refers_to_nothing_elsewhere(reference: str):
    with pytest.raises(JsonSchemaError, match=r"there is no schema|there is nothing|contains itself"):
        arrow_schema(json.dumps({"type": "object", "properties": {"a": {"$ref": reference}}}))
