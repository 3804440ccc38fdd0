"""Makes the topics `orders` and `sold` with four partitions, and puts a thousand orders of ten minutes into the first.

    python examples/kafka/fill.py

The variable KAFKA names the broker, if it is not 127.0.0.1:9092.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime, timedelta

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

TOPIC, RESULTS, PARTITIONS, ORDERS = "orders", "sold", 4, 1000
COUNTRIES = ("AT", "CH", "DE", "FR")


def main(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    # A message has the event time of its row: with the usual retention, old results would be deleted at once.
    forever = {"retention.ms": "-1"}
    made = admin.create_topics([NewTopic(topic, PARTITIONS, config=forever) for topic in (TOPIC, RESULTS)])
    for topic, result in made.items():
        try:
            result.result(30)
        except KafkaException as error:
            sys.exit(f"cannot make the topic {topic!r}: {error.args[0].str()}")
    producer = Producer({"bootstrap.servers": servers})
    first = datetime(2026, 1, 31, 12, tzinfo=UTC)
    for number in range(ORDERS):
        country = COUNTRIES[number % len(COUNTRIES)]
        order = {
            "id": number,
            "country": country,
            "total": f"{number % 90 + 10}.50",
            "placed_at": (first + timedelta(seconds=0.6 * number)).isoformat(),
        }
        producer.produce(TOPIC, json.dumps(order), key=country, partition=number % PARTITIONS)
    producer.flush(30)
    sys.stdout.write(f"{ORDERS} orders in {PARTITIONS} partitions of {TOPIC!r}\n")


if __name__ == "__main__":
    main(os.environ.get("KAFKA", "127.0.0.1:9092"))
