"""What `kafka.sink` writes: values, keys, partitions, times, headers, topics, and changes."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from arroyo_core.api import ArroyoSchema
from arroyo_core.api.updating import make_updates, row_ids
from arroyo_core.errors import OperatorError

from .support.sinks import Sink

SCHEMA = pa.schema(
    [("id", pa.int64()), ("name", pa.string()), ("at", pa.timestamp("us", "UTC")), ("where", pa.string())]
)
AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
DELIVERIES = ["exactly_once", "at_least_once"]


def row(number: int, *, name: str | None = "a", where: str = "") -> dict[str, object]:
    return {"id": number, "name": name, "at": AT, "where": where}


@pytest.fixture(params=DELIVERIES)
def delivery(request):
    return request.param


@pytest.fixture
def sink(cluster, delivery):
    """Makes sinks, and ends what they have open."""
    made = []

    def make(stream=SCHEMA, **config):
        made.append(Sink(stream, **{"bootstrap_servers": cluster.bootstrap_servers, "delivery": delivery, **config}))
        return made[-1]

    yield make
    for each in made:
        each.__exit__()


def values(records):
    return [json.loads(record.value) for record in records]


def test_a_value_has_all_columns_and_no_key(sink, cluster, topic):
    name = topic()
    sink(topic=name).write([row(1), row(2, name=None)])
    records = cluster.read(name)
    assert [value["id"] for value in values(records)] == [1, 2]
    assert list(values(records)[0]) == SCHEMA.names
    assert {record.key for record in records} == {None}
    assert {record.headers for record in records} == {()}


def test_one_column_of_text_is_the_key_as_it_is_and_null_is_none(sink, cluster, topic):
    name = topic()
    sink(topic=name, key_fields=["name"]).write([row(1, name="ü"), row(2, name=None), row(3, name="")])
    assert [record.key for record in cluster.read(name)] == ["ü".encode(), None, b""]


def test_other_keys_are_json_objects_in_the_order_of_key_fields(sink, cluster, topic):
    name = topic()
    sink(topic=name, key_fields=["name", "id"]).write([row(1)])
    assert cluster.read(name)[0].key == b'{"name":"a","id":1}'
    name = topic()
    sink(topic=name, key_fields=["id"]).write([row(7)])
    assert cluster.read(name)[0].key == b'{"id":7}'


def test_a_key_is_in_the_partition_where_producers_of_kafka_put_it(sink, cluster, topic):
    name = topic(partitions=10)
    keys = [
        "21",
        "foobar",
        "a-little-bit-long-string",
        "a-little-bit-longer-string",
        "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8",
    ]
    sink(topic=name, key_fields=["name"]).write([row(1, name=key) for key in keys])
    # The hashes are those of the tests of Kafka itself (UtilsTest.testMurmur2).
    hashes = [-973932308, -790332482, -985981536, -1486304829, -58897971]
    expected = {key.encode(): (value & 0x7FFFFFFF) % 10 for key, value in zip(keys, hashes, strict=True)}
    assert {record.key: record.partition for record in cluster.read(name)} == expected


def test_partition_by_puts_equal_values_together_whatever_the_key(sink, cluster, topic):
    name = topic(partitions=4)
    writer = sink(topic=name, key_fields=["name"], partition_by=["id"])
    writer.write([row(number % 5, name=f"k{number}") for number in range(50)])
    writer.write([row(number % 5, name=f"l{number}") for number in range(50)])
    records = cluster.read(name)
    places = {}
    for record, value in zip(records, values(records), strict=True):
        places.setdefault(value["id"], set()).add(record.partition)
    assert len(records) == 100
    assert all(len(found) == 1 for found in places.values())
    assert len({partition for found in places.values() for partition in found}) > 1


def test_new_partitions_are_used_as_soon_as_they_are_there(sink, cluster, topic):
    name = topic(partitions=1)
    writer = sink(topic=name, partition_by=["id"])
    writer.write([row(number) for number in range(50)])
    cluster.grow(name, 8)
    writer.write([row(number) for number in range(50)])
    assert len({record.partition for record in cluster.read(name)}) == 8


def test_the_order_of_a_key_is_kept_in_an_epoch_and_over_epochs(sink, cluster, topic):
    name = topic(partitions=3)
    writer = sink(topic=name, key_fields=["name"])
    for epoch in range(3):
        writer.write([row(epoch * 1000 + number, name=f"k{number % 7}") for number in range(500)])
    seen: dict[bytes, list[int]] = {}
    records = cluster.read(name)
    for record, value in zip(records, values(records), strict=True):
        seen.setdefault(record.key, []).append(value["id"])
    assert sum(map(len, seen.values())) == 1500
    assert all(ids == sorted(ids) for ids in seen.values())


def test_the_time_of_a_message_is_that_of_its_column_or_the_event_time(sink, cluster, topic):
    ms = int(AT.timestamp() * 1000)
    name = topic()
    sink(topic=name, timestamp_field="at").write([row(1)])
    assert cluster.read(name)[0].timestamp_ms == ms
    name = topic()
    sink(ArroyoSchema(SCHEMA, "at"), topic=name).write([row(1)])
    assert cluster.read(name)[0].timestamp_ms == ms


def test_a_row_without_a_time_has_the_clock_of_the_producer(sink, cluster, topic):
    name = topic()
    before = int(datetime.now(UTC).timestamp() * 1000)
    rows = [row(1) | {"at": None}, row(2) | {"at": datetime(1969, 1, 1, tzinfo=UTC)}]
    sink(topic=name, timestamp_field="at").write(rows)
    assert all(record.timestamp_ms >= before for record in cluster.read(name))


def test_headers_come_from_columns_in_order(sink, cluster, topic):
    name = topic(partitions=2)
    writer = sink(topic=name, headers={"z": "name", "a": "where"}, key_fields=["name"], partition_by=["id"])
    writer.write([row(1, name="é", where="x"), row(2, name=None, where="")])
    found = {record.headers for record in cluster.read(name)}
    assert found == {(("z", "é".encode()), ("a", b"x")), (("z", None), ("a", b""))}


def test_each_row_goes_to_the_topic_of_its_column_and_does_not_carry_it(sink, cluster, topic, delivery):
    first, second = topic(), topic(partitions=2)
    progress = {"progress_topic": f"progress-{first}"} if delivery == "exactly_once" else {}
    sink(topic_field="where", **progress).write([row(1, where=first), row(2, where=second), row(3, where=first)])
    assert [value["id"] for value in values(cluster.read(first))] == [1, 3]
    assert [value["id"] for value in values(cluster.read(second))] == [2]
    assert "where" not in values(cluster.read(second))[0]


def test_a_message_of_a_megabyte_and_more_needs_settings_and_says_so(sink, cluster, topic):
    name = topic(**{"max.message.bytes": "4000000"})
    large = [row(1, name="x" * 2_000_000)]
    with pytest.raises(
        OperatorError, match=r"2000\d\d\d bytes is too large for topic .* raise message.max.bytes in client"
    ) as caught:
        sink(topic=name).write(large)
    assert caught.value.cause_retry == "no_retry"
    sink(topic=name, client={"message.max.bytes": "3000000"}).write(large)
    assert len(cluster.read(name)) == 1


def test_a_message_that_the_topic_refuses_is_reported_with_its_size(sink, cluster, topic):
    name = topic(**{"max.message.bytes": "1000"})
    with pytest.raises(OperatorError, match=r"bytes is too large for topic .* max.message.bytes of the topic"):
        sink(topic=name).write([row(1), row(2, name="x" * 5000)])
    # Nothing is left open: what others write is visible at once.
    cluster.produce(name, [b"other"])
    assert b"other" in {record.value for record in cluster.read(name)}


def test_a_missing_topic_is_named_and_not_retried(sink, delivery):
    with pytest.raises(OperatorError, match=r"there is no topic 'nowhere' at .*: create it") as caught:
        sink(topic="nowhere").write([row(1)])
    assert caught.value.cause_retry == "no_retry"


def changes(rows: list[tuple[bool, int, str | None]]) -> pa.RecordBatch:
    batch = pa.RecordBatch.from_pylist([row(number, name=name) for _, number, name in rows], schema=SCHEMA)
    return make_updates(batch, is_retract=np.array([taken for taken, _, _ in rows]), ids=row_ids(batch, ["name"]))


def test_an_updating_stream_is_upserts_and_tombstones(sink, cluster, topic):
    name = topic()
    first = changes([(False, 1, "a"), (False, 1, "b"), (True, 1, "a"), (False, 2, "a")])
    writer = sink(first.schema, topic=name, key_fields=["name"])
    writer.write(first)
    writer.write(changes([(True, 1, "b"), (True, 2, "a"), (False, 3, "a")]))
    records = cluster.read(name)
    found = [(record.key, record.value and json.loads(record.value)["id"]) for record in records]
    assert found == [(b"b", 1), (b"a", 2), (b"b", None), (b"a", 3)]
    assert "_updating_meta" not in json.loads(records[0].value)


def test_an_updating_stream_as_debezium_is_all_changes(sink, cluster, topic):
    name = topic()
    batch = changes([(False, 1, "a"), (True, 1, "a"), (False, 2, "a"), (True, 2, "a")])
    sink(batch.schema, topic=name, format="debezium_json", key_fields=["name"]).write(batch)
    records = cluster.read(name)
    assert [json.loads(record.value)["op"] for record in records] == ["c", "u", "d"]
    assert {record.key for record in records} == {b"a"}


def test_an_upsert_without_a_key_is_refused(sink, topic):
    batch = changes([(False, 1, None)])
    with pytest.raises(OperatorError, match="a row has no key: 'name' is null"):
        sink(batch.schema, topic=topic(), key_fields=["name"]).write(batch)


def test_an_epoch_without_rows_writes_nothing(sink, cluster, topic):
    name = topic()
    writer = sink(topic=name)
    writer.write([])
    writer.write([row(1)])
    writer.write([])
    assert len(cluster.read(name)) == 1


def test_many_rows_arrive_in_order(sink, cluster, topic):
    name = topic()
    count = 60_000
    table = pa.table(
        {
            "id": np.arange(count),
            "name": pa.array(["x" * 200] * count),
            "at": pa.array([AT] * count, pa.timestamp("us", "UTC")),
            "where": pa.array([""] * count),
        },
        schema=SCHEMA,
    )
    sink(topic=name).write(table)
    assert [value["id"] for value in values(cluster.read(name))] == list(range(count))
