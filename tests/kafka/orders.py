"""A job from topic to topic: ten partitions, windows by key, exactly once; and its answer in plain Python."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

PARTITIONS = 10
KEYS = 40
WINDOW_MS = 1000
#: Event time between two orders: a window has some of each key.
STEP_MS = 4
START_MS = int(datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp() * 1000)
WAIT_S = 60.0
_QUIET: dict[str, Any] = {"log_level": 0, "error_cb": lambda error: None}

#: Its name is that of the job whose epochs `tests.integration.tally.published_epoch` finds.
PIPELINE = """
name: tally
parallelism: 2
checkpoint: {{url: {folder}/state, interval: 1h, rows: {rows}, keep: 4}}
nodes:
  - id: orders
    operator: kafka.source
    config:
      bootstrap_servers: {servers}
      topic: orders
      format: json
      schema: {{key: int64, amount: int64, at: timestamp}}
      event_time_field: at
      max_lateness: 100ms
      until: latest
  - id: windows
    operator: std.tumbling_window
    inputs: [orders]
    config:
      size: {window_ms}ms
      keys: [key]
      aggregates:
        - {{function: count, as: orders}}
        - {{function: sum, column: amount, as: total}}
  - id: out
    operator: kafka.sink
    inputs: [windows]
    config: {{bootstrap_servers: "{servers}", topic: windows, format: json, key_fields: [key]}}
"""

#: Key, start of the window in milliseconds, orders, and their total.
Window = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """So many orders, of which an epoch takes a part."""

    servers: str
    count: int
    rows_per_epoch: int = 400

    @classmethod
    def of_epochs(cls, servers: str, epochs: int) -> Orders:
        return cls(servers=servers, count=epochs * cls.__dataclass_fields__["rows_per_epoch"].default)

    def write(self, folder: Path) -> Path:
        """The pipeline's file, in `folder`, where its state is too."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "pipeline.yaml"
        values = {"folder": folder, "servers": self.servers, "rows": self.rows_per_epoch, "window_ms": WINDOW_MS}
        path.write_text(PIPELINE.format(**values), encoding="utf-8")
        return path

    def produce(self) -> None:
        """Make both topics, and put all orders into the first one."""
        admin = AdminClient({**_QUIET, "bootstrap.servers": self.servers})
        # The time of a message is the event time of its row: retention would remove what is that old.
        kept = {"retention.ms": "-1"}
        topics = [NewTopic(name, PARTITIONS, 1, config=kept) for name in ("orders", "windows")]
        for done in admin.create_topics(topics).values():
            done.result(WAIT_S)
        producer = Producer({**_QUIET, "bootstrap.servers": self.servers, "linger.ms": 5, "enable.idempotence": True})
        for number, order in enumerate(self.orders()):
            producer.produce("orders", json.dumps(order).encode(), partition=number * 7919 % PARTITIONS)
            if number % 10_000 == 0:
                producer.flush(WAIT_S)
        assert producer.flush(WAIT_S) == 0

    def orders(self) -> Iterator[dict[str, Any]]:
        for number in range(self.count):
            at = datetime.fromtimestamp((START_MS + number * STEP_MS) / 1000, UTC)
            yield {"key": number * 31 % KEYS, "amount": number, "at": at.isoformat(timespec="milliseconds")}

    def expected(self) -> Counter[Window]:
        """What must be in the second topic, by the definition of windows alone."""
        totals: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        for number in range(self.count):
            start = (START_MS + number * STEP_MS) // WINDOW_MS * WINDOW_MS
            totals[number * 31 % KEYS, start].append(number)
        return Counter({(key, start, len(found), sum(found)): 1 for (key, start), found in totals.items()})

    def found(self) -> Counter[Window]:
        """What a consumer of committed messages sees in the second topic."""
        return Counter(_window(value) for value in read_committed(self.servers, "windows"))

    def check(self) -> str:
        """Each result is in the second topic once, and is right; returns a sentence about it."""
        return self.compare(self.found())

    def compare(self, found: Counter[Window]) -> str:
        expected = self.expected()
        missing, extra = expected - found, found - expected
        assert (missing, extra) == (Counter(), Counter()), (
            f"{missing.total()} windows are missing, such as {_some(missing)}; "
            f"{extra.total()} are too many, such as {_some(extra)}"
        )
        return f"{found.total()} windows of {self.count} orders: exact"


def read_committed(servers: str, topic: str) -> Iterator[bytes]:
    """All committed values of a topic that is at rest."""
    settings = {**_QUIET, "bootstrap.servers": servers, "group.id": "reader", "enable.auto.commit": False}
    settings |= {"auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "isolation.level": "read_committed", "enable.partition.eof": True})
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        left = set(range(PARTITIONS))
        while left:
            for message in consumer.consume(1000, 1.0):
                error = message.error()
                if error is None:
                    yield message.value() or b""
                elif error.name() == "_PARTITION_EOF":
                    left.discard(message.partition())
    finally:
        consumer.close()


def _window(value: bytes) -> Window:
    row = json.loads(value)
    start = datetime.fromisoformat(row["window_start"].replace("Z", "+00:00"))
    if start.tzinfo is None:
        start = start.replace(tzinfo=UTC)
    return row["key"], round(start.timestamp() * 1000), row["orders"], row["total"]


def _some(windows: Counter[Window]) -> list[Window]:
    return sorted(windows)[:3]
