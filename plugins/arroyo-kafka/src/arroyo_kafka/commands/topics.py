"""`arroyo kafka topics`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable

from arroyo_core.cli.exits import OK
from arroyo_core.cli.options import JSON
from arroyo_core.cli.tables import print_rows
from arroyo_kafka.client import Client
from arroyo_kafka.cluster import Cluster
from arroyo_kafka.commands.pipelines import open_pipeline

COLUMNS = ("brokers", "topic", "partitions", "messages")


def topics(args: argparse.Namespace) -> int:
    """Messages are offsets between the first and the last: compaction and transactions make them fewer."""
    rows = [row for client in _clients(args) for row in _rows(client)]
    if args.format == JSON:
        print(json.dumps([dict(zip(COLUMNS, row, strict=True)) for row in rows], indent=2))
    else:
        print_rows(COLUMNS, rows)
    return OK


def _clients(args: argparse.Namespace) -> Iterable[Client]:
    if args.bootstrap_servers:
        return [Client(args.bootstrap_servers)]
    found = [source.settings.client for source in open_pipeline(args).sources]
    return {(client.bootstrap_servers, frozenset(client.settings.items())): client for client in found}.values()


def _rows(client: Client) -> Iterable[tuple[str, str, int, int]]:
    cluster = Cluster(client)
    for topic in cluster.describe(cluster.topic_names(), has_internal=False):
        first, last = cluster.earliest(topic.each()), cluster.latest(topic.each(), is_committed=False)
        messages = sum(last[partition] - first[partition] for partition in first)
        yield client.bootstrap_servers, topic.name, len(topic.partitions), messages
