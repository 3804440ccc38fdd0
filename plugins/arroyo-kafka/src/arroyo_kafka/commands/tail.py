"""`arroyo kafka tail`: the last messages of a source's partitions, as its rows."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from arroyo_core.api.visible import visible
from arroyo_core.cli.exits import OK
from arroyo_core.cli.options import JSON
from arroyo_core.cli.tables import plain_value
from arroyo_kafka.bad_messages import describe_place
from arroyo_kafka.cluster import Cluster
from arroyo_kafka.commands.pipelines import SourceNode, open_pipeline
from arroyo_kafka.open_consumers import OpenConsumer
from arroyo_kafka.partitions import Partition
from arroyo_kafka.source import make_consumer

if TYPE_CHECKING:
    from confluent_kafka import Message

TAKEN = 1_000
SECONDS = 0.2


def tail(args: argparse.Namespace) -> int:
    source = open_pipeline(args).source(args.node)
    cluster = Cluster(source.settings.client)
    found = [part for topic in cluster.find_topics(source.settings.topics) for part in topic.each()]
    first = cluster.earliest(found)
    last = cluster.latest(found, is_committed=source.settings.is_read_committed)
    starts = {part: max(first[part], last[part] - args.rows) for part in found}
    consumer = OpenConsumer(make_consumer(source.settings, source.group))
    try:
        consumer.go_to(starts)
        ends = None if args.follow else {part: last[part] for part in found if last[part] > starts[part]}
        for messages in _batches(consumer, ends):
            _print(source, messages, args)
    except KeyboardInterrupt:
        return OK
    finally:
        consumer.close()
    return OK


def _batches(consumer: OpenConsumer, ends: dict[Partition, int] | None) -> Iterator[Sequence[Message]]:
    """Messages as they come, up to these offsets; for ever where there are none."""
    while ends is None or ends:
        messages = []
        for item in consumer.take(TAKEN, SECONDS):
            partition, offset = Partition(item.topic() or "", item.partition() or 0), item.offset() or 0
            error = item.error()
            if error is None:
                messages.append(item)
            # An end of a partition says where it is; a message is one before.
            reached = offset + (error is None)
            if ends is not None and reached >= ends.get(partition, reached + 1):
                del ends[partition]
        if messages:
            yield messages


def _print(source: SourceNode, messages: Sequence[Message], args: argparse.Namespace) -> None:
    """One line for each message: a message may be several rows, or none."""
    reader = source.settings.format.reader(source.settings.schema)
    for message in messages:
        value = message.value()
        decoded = reader.read([value]) if value is not None else None
        rows = [_json_value(row) for row in decoded.batch.to_pylist()] if decoded is not None else []
        error = decoded.bad[0].error if decoded is not None and decoded.bad else None
        if args.format == JSON:
            place = {"topic": message.topic(), "partition": message.partition(), "offset": message.offset()}
            print(json.dumps({**place, "key": _json_value(message.key()), "rows": rows, "error": error}), flush=True)
            continue
        shown = "tombstone" if decoded is None else f"BAD: {error}" if error else "  ".join(map(json.dumps, rows))
        print(visible(f"{describe_place(message)}  {shown}", is_one_line=True), flush=True)


def _json_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_json_value(item) for item in value]
    if isinstance(value, dict):
        return {name: _json_value(item) for name, item in value.items()}
    return plain_value(value)
