"""`kafka.lookup`: the last message of each key, as the table of `std.lookup_join`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from arroyo_kafka import lookup
from arroyo_kafka.broker import Broker
from arroyo_kafka.kafka_pb2 import Column, LookupConfig
from arroyo_kafka.plugin import TopicLookupConstructor
from arroyo_testing import FakeClock, OperatorHarness
from google.protobuf import json_format

from arroyo_core.api import ArrowOperator, ArroyoSchema, LookupTable, Registry, with_defaults
from arroyo_core.errors import ConfigError, DataError, ExternalError
from arroyo_core.plugin import installed_plugins

from .support.cluster import Cluster

MakeTopic = Callable[..., str]

LARGE = 1 << 20
COLUMNS = {"id": "int64", "name": "string"}
COMPACTED = {"cleanup.policy": "compact"}
STREAM = ArroyoSchema(pa.schema({"id": pa.int64()}))


def lookup_config(servers: str, topic: str, **config: Any) -> LookupConfig:
    columns = [Column(name=name, type=kind) for name, kind in config.pop("schema", COLUMNS).items()]
    written = LookupConfig(bootstrap_servers=servers, topic=topic, schema=columns)
    json_format.ParseDict({"format": "json", **config}, written)
    return with_defaults(written)


def make(servers: str, topic: str, **config: Any) -> LookupTable:
    """A table of a config that is resolved as a plan has it."""
    constructor = TopicLookupConstructor()
    return constructor.with_config(constructor.resolve(lookup_config(servers, topic, **config)), Registry())


def read(table: LookupTable, max_bytes: int = LARGE) -> list[dict[str, Any]]:
    found = table.read(table.schema(), max_bytes)
    assert found.schema == table.schema()
    return sorted(found.to_pylist(), key=str)


def put(cluster: Cluster, topic: str, rows: dict[str, Any], **options: Any) -> None:
    """A message for each key; None is a tombstone."""
    values = [json.dumps(row).encode() if row is not None else None for row in rows.values()]
    cluster.produce(topic, values, keys=[key.encode() for key in rows], **options)


def row(number: int, name: str) -> dict[str, Any]:
    return {"id": number, "name": name}


@pytest.fixture
def table(broker: Broker) -> Callable[..., LookupTable]:
    return lambda topic, **config: make(broker.bootstrap_servers, topic, **config)


Table = Callable[..., LookupTable]


def test_the_last_message_of_each_key_is_its_row(cluster: Cluster, topic: MakeTopic, table: Table) -> None:
    name = topic(3, **COMPACTED)
    put(cluster, name, {"a": row(1, "one"), "b": row(2, "two")})
    put(cluster, name, {"c": row(3, "three"), "d": row(4, "four")}, partition=2)
    put(cluster, name, {"a": row(1, "uno"), "b": None})
    assert read(table(name)) == [row(1, "uno"), row(3, "three"), row(4, "four")]
    put(cluster, name, {"b": row(2, "due")})
    assert read(table(name)) == [row(1, "uno"), row(2, "due"), row(3, "three"), row(4, "four")]


def test_an_empty_topic_is_an_empty_table(cluster: Cluster, topic: MakeTopic, table: Table) -> None:
    name = topic(2, **COMPACTED)
    assert read(table(name)) == []
    put(cluster, name, {"a": row(1, "one")})
    put(cluster, name, {"a": None})
    assert read(table(name)) == []


def test_messages_that_retention_has_removed_are_not_waited_for(
    cluster: Cluster, topic: MakeTopic, table: Table
) -> None:
    name = topic()
    put(cluster, name, {"a": row(1, "one"), "b": row(2, "two")})
    cluster.truncate(name, 0, 1)
    assert read(table(name)) == [row(2, "two")]
    cluster.truncate(name, 0, 2)
    assert read(table(name)) == []


def test_the_key_becomes_a_column(cluster: Cluster, topic: MakeTopic, table: Table) -> None:
    name = topic(**COMPACTED)
    put(cluster, name, {"ä": {"name": "one"}, "b": {"name": "two"}})
    found = table(name, schema={"name": "string"}, key_column="key")
    assert found.schema() == pa.schema({"name": pa.string(), "key": pa.string()})
    assert read(found) == [{"name": "one", "key": "ä"}, {"name": "two", "key": "b"}]


def test_more_messages_than_are_decoded_at_once_keep_their_keys(
    cluster: Cluster, topic: MakeTopic, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "TAKEN_MESSAGES", 7)
    name = topic(2, **COMPACTED)
    for partition in range(2):
        keys = {f"{number}": row(number, f"row {number}") for number in range(partition, 50, 2)}
        put(cluster, name, keys, partition=partition)
    found = read(table(name, key_column="key"))
    assert {item["key"]: item["id"] for item in found} == {str(number): number for number in range(50)}


def test_a_key_in_two_partitions_has_its_later_message(cluster: Cluster, topic: MakeTopic, table: Table) -> None:
    name = topic(2, **COMPACTED)
    put(cluster, name, {"a": row(1, "new"), "b": row(2, "old")}, partition=0, timestamp_ms=2_000)
    put(cluster, name, {"a": row(1, "old")}, partition=1, timestamp_ms=1_000)
    put(cluster, name, {"b": None}, partition=1, timestamp_ms=3_000)
    assert read(table(name)) == [row(1, "new")]


def test_only_what_is_committed_is_read(cluster: Cluster, topic: MakeTopic, table: Table) -> None:
    name = topic()
    put(cluster, name, {"a": row(1, "one")})
    # Without keys, which only a compacted topic refuses: reading any of them would be an error.
    # The end of the topic is a record of the transaction.
    cluster.transaction(name, [b"aborted"], is_committed=False)
    assert read(table(name)) == [row(1, "one")]
    with cluster.open_transaction(name, [b"open"], is_committed=False):
        put(cluster, name, {"a": row(1, "behind the open transaction")})
        assert read(table(name)) == [row(1, "one")]
    assert read(table(name)) == [row(1, "behind the open transaction")]


def test_a_topic_that_is_not_there_is_an_error_of_the_config(table: Table) -> None:
    with pytest.raises(ConfigError, match="there is no topic 'nowhere'") as raised:
        read(table("nowhere"))
    assert raised.value.field == "topic"


def test_a_bad_message_has_its_place(cluster: Cluster, topic: MakeTopic, table: Table) -> None:
    name = topic(2, **COMPACTED)
    put(cluster, name, {"a": row(1, "one"), "b": {"id": "many"}}, partition=1)
    with pytest.raises(DataError, match=rf"{name}\[1\]@1: .*many"):
        read(table(name))
    # What has a newer message is not read.
    put(cluster, name, {"b": row(2, "two")}, partition=1)
    assert read(table(name)) == [row(1, "one"), row(2, "two")]


def test_a_message_without_a_key_is_an_error(cluster: Cluster, topic: MakeTopic, table: Table) -> None:
    name = topic()
    cluster.produce(name, [b"{}"])
    with pytest.raises(DataError, match=rf"{name}\[0\]@0 has no key"):
        read(table(name))


def test_a_key_that_is_not_a_text_cannot_be_a_column(cluster: Cluster, topic: MakeTopic, table: Table) -> None:
    name = topic(**COMPACTED)
    cluster.produce(name, [json.dumps(row(1, "one")).encode()], keys=[b"\xff"])
    assert read(table(name)) == [row(1, "one")]
    with pytest.raises(DataError, match=rf"{name}\[0\]@0: the key is not a text"):
        read(table(name, key_column="key"))


def test_a_table_that_is_too_large_is_an_error(cluster: Cluster, topic: MakeTopic, table: Table) -> None:
    name = topic(**COMPACTED)
    for text in "abcdefgh":
        put(cluster, name, {"a": row(1, text * 400)})
    # Only the last message counts.
    assert read(table(name), max_bytes=1_000) == [row(1, "h" * 400)]
    put(cluster, name, {f"{number}": row(number, "x" * 400) for number in range(3)})
    with pytest.raises(DataError, match=r"larger than cache\.max_bytes, 1000"):
        read(table(name), max_bytes=1_000)


def test_an_outage_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    real = lookup.Cluster
    monkeypatch.setattr(lookup, "Cluster", lambda client: real(client, seconds=0.1))
    with pytest.raises(ExternalError):
        read(make("127.0.0.1:1", "t"))


@pytest.mark.parametrize(
    ("config", "field", "words"),
    [
        ({"format": "jsno"}, "format", "there is no format"),
        ({"format": "debezium_json"}, "format", "changes of rows"),
        ({"key_column": "name"}, "key_column", "have a column 'name' already"),
        ({"client": {"group.id": "x"}}, "client.group.id", "cannot be set"),
        ({"client": {"linger.mss": "5"}}, "client.linger.mss", "linger.mss"),
        ({"schema": {"id": "int46"}}, "schema.id", "int46"),
    ],
)
def test_a_wrong_config_is_refused_with_its_field(config: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as raised:
        make("nowhere:1", "t", **config)
    assert raised.value.field == field


def test_tables_of_equal_configs_are_kept_as_one() -> None:
    client = {"client.id": "x", "sasl.password": "rosebud"}
    one, same = (make("nowhere:1", "t", client=dict(items)) for items in (client.items(), reversed(client.items())))
    assert one.cache_key() == same.cache_key()
    assert one.cache_key() != make("nowhere:1", "u", client=client).cache_key()
    assert "rosebud" not in one.name()


def test_a_join_sees_updates_and_tombstones_after_the_ttl(cluster: Cluster, topic: MakeTopic, broker: Broker) -> None:
    name = topic(2, **COMPACTED)
    put(cluster, name, {"a": row(1, "one"), "b": row(2, "two")})
    plugins = installed_plugins()
    constructor = plugins.constructor("std.lookup_join")

    def make_join() -> ArrowOperator:
        written = constructor.config_type()
        json_format.ParseDict({"on": [{"left": "id"}], "type": "left", "table": {"lookup": "kafka.lookup"}}, written)
        written.cache.ttl = 60_000_000
        written.table.config.Pack(lookup_config(broker.bootstrap_servers, name))
        made = constructor.with_config(with_defaults(written), plugins.registry).operator
        assert made is not None
        return made

    fields = dict(make_join().display().fields)
    assert fields["table"] == name
    assert fields["lookup"].startswith("kafka.lookup of arroyo-kafka ")
    clock = FakeClock(now_us=1_000_000)
    ids = pa.RecordBatch.from_pydict({"id": pa.array([1, 2, 3], pa.int64())})
    with OperatorHarness(make_join, inputs=[STREAM], clock=clock) as subtask:
        subtask.feed(ids)
        put(cluster, name, {"a": row(1, "uno"), "b": None})
        put(cluster, name, {"c": row(3, "tre")}, partition=1)
        clock.advance(59)
        subtask.feed(ids)
        clock.advance(1)
        subtask.feed(ids)
        names = [(item["id"], item["name"]) for item in subtask.output.to_pylist()]
    before = [(1, "one"), (2, "two"), (3, None)]
    assert sorted(names[:3]) == sorted(names[3:6]) == before
    assert sorted(names[6:]) == [(1, "uno"), (2, None), (3, "tre")]
