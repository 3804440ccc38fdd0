"""`arroyo kafka lag`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

from arroyo_core.cli.exits import OK
from arroyo_core.cli.options import JSON
from arroyo_core.cli.tables import print_rows
from arroyo_kafka.cluster import Cluster
from arroyo_kafka.commands.pipelines import Pipeline, SourceNode, open_pipeline

COLUMNS = ("node", "topic", "partition", "epoch", "position", "end", "lag", "group", "committed")


def lag(args: argparse.Namespace) -> int:
    """Between the newest checkpoint and the ends of the partitions; `committed` is what the group was told."""
    pipeline = open_pipeline(args)
    rows = [row for source in pipeline.sources for row in _rows(pipeline, source)]
    if args.format == JSON:
        print(json.dumps([dict(zip(COLUMNS, row, strict=True)) for row in rows], indent=2))
    else:
        print_rows(COLUMNS, [["-" if value is None else value for value in row] for row in rows])
    return OK


def _rows(pipeline: Pipeline, source: SourceNode) -> Iterator[tuple[object, ...]]:
    epoch, states = pipeline.positions(source.id)
    cluster = Cluster(source.settings.client)
    there = {partition for topic in cluster.describe({part.topic for part in states}) for partition in topic.each()}
    known = [partition for partition in states if partition in there]
    ends = cluster.latest(known, is_committed=source.settings.is_read_committed)
    told = cluster.group_offsets(source.group, known)
    for partition, state in states.items():
        end = ends.get(partition)
        behind = max(0, end - state.offset) if end is not None else None
        place = (partition.topic, partition.number, epoch, state.offset)
        yield (source.id, *place, end, behind, source.group, told.get(partition))
