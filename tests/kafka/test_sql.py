"""A topic that is read in SQL, with what a broker knows of each message."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from arroyo_kafka.broker import Broker, running_broker
from arroyo_testing import run_in_process
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from arroyo_core.errors import SetupError

TOPIC = "sold"
PARTITIONS = 3
COUNT = 30
START = datetime(2026, 1, 31, 12, tzinfo=UTC)
WAIT_S = 60.0

SCRIPT = """
SET name = 'sold';
CREATE TABLE sold (
  id BIGINT,
  amount BIGINT,
  twice BIGINT GENERATED ALWAYS AS (amount * 2),
  place BIGINT METADATA FROM 'offset_id',
  part INT METADATA FROM 'partition',
  origin TEXT METADATA FROM 'topic',
  written TIMESTAMP METADATA FROM 'timestamp',
  customer BYTES METADATA FROM 'key'
) WITH (
  connector = 'kafka', type = 'source', bootstrap_servers = '{servers}', topic = 'sold', format = 'json',
  until = 'latest'
);
CREATE TABLE out WITH (connector = 'filesystem', type = 'sink', path = '{folder}', format = 'json');
INSERT INTO out
"""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A broker that has the messages."""
    with ExitStack() as stack:
        try:
            started = stack.enter_context(running_broker())
        except SetupError as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"no Kafka broker: {error}")
        _produce(started.bootstrap_servers)
        yield started


def _produce(servers: str) -> None:
    settings: dict[str, Any] = {"bootstrap.servers": servers, "log_level": 0, "error_cb": lambda error: None}
    admin = AdminClient(settings)
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(WAIT_S)
    producer = Producer(settings)
    for number in range(COUNT):
        value = json.dumps({"id": number, "amount": number * 10}).encode()
        at_ms = int(_written(number).timestamp() * 1000)
        producer.produce(TOPIC, value, _customer(number), number % PARTITIONS, timestamp=at_ms)
        # In their order in each partition, whatever is sent again.
        assert producer.flush(WAIT_S) == 0


def _customer(number: int) -> bytes | None:
    return None if number % 4 == 0 else f"customer {number % 4}".encode()


def _written(number: int) -> datetime:
    return START + timedelta(milliseconds=number * 1500)


def _answer(broker: Broker, folder: Path, query: str, *, script: str = SCRIPT) -> list[dict[str, Any]]:
    out = folder / "out"
    path = folder / "sold.sql"
    path.write_text(script.format(servers=broker.bootstrap_servers, folder=out) + query + ";")
    run_in_process(path)
    return [json.loads(line) for file in out.glob("*.jsonl") for line in file.read_text().splitlines()]


def test_columns_have_what_the_broker_knows_of_a_message(broker: Broker, tmp_path: Path) -> None:
    query = (
        "SELECT id, twice, place, part, origin, written, CAST(customer AS TEXT) AS customer FROM sold "
        "WHERE part <> 1 AND place < 8"
    )
    found = _answer(broker, tmp_path, query)
    wanted = [number for number in range(COUNT) if number % PARTITIONS != 1 and number // PARTITIONS < 8]
    assert sorted(row["id"] for row in found) == wanted
    for row in found:
        number, key = row["id"], _customer(row["id"])
        assert row["twice"] == number * 20
        assert (row["part"], row["place"], row["origin"]) == (number % PARTITIONS, number // PARTITIONS, TOPIC)
        assert datetime.fromisoformat(row["written"]) == _written(number)
        assert row["customer"] == (None if key is None else key.decode())


def test_the_time_of_a_message_is_event_time_and_its_partition_a_key(broker: Broker, tmp_path: Path) -> None:
    declared = "WATERMARK FOR written AS written - INTERVAL '1 minute'"
    query = "SELECT part, count(*) AS n, sum(amount) AS total FROM sold GROUP BY part, tumble(INTERVAL '15 seconds')"
    script = SCRIPT.replace("FROM 'key'\n", f"FROM 'key',\n  {declared}\n")
    rows = _answer(broker, tmp_path, query, script=script)
    expected: dict[tuple[int, int], list[int]] = {}
    for number in range(COUNT):
        expected.setdefault((number % PARTITIONS, number * 1500 // 15_000), []).append(number * 10)
    found = sorted((row["part"], row["n"], row["total"]) for row in rows)
    assert found == sorted((part, len(amounts), sum(amounts)) for (part, _), amounts in expected.items())
