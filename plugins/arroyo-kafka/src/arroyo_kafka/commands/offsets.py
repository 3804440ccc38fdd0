"""`arroyo kafka offsets`: shows the positions of a job, and moves them by a new checkpoint."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from arroyo_core.api import StateTables, TaskInfo
from arroyo_core.cli.exits import FAILURE, OK
from arroyo_core.cli.options import JSON
from arroyo_core.cli.tables import print_rows
from arroyo_core.errors import ConfigError
from arroyo_core.state.offline import check_quiet
from arroyo_kafka.cluster import Cluster
from arroyo_kafka.commands.pipelines import open_pipeline
from arroyo_kafka.commands.rewriting import rewrite_state
from arroyo_kafka.partitions import Partition
from arroyo_kafka.progress import PartitionState, Progress

_PLACE = re.compile(r"(?P<topic>[^:=]+):(?P<partition>\d+|\*)=(?P<offset>\d+|earliest|latest)")
_SHOWN = ("node", "topic", "partition", "epoch", "offset", "until")
_MOVED = ("topic", "partition", "from", "to")


@dataclass(frozen=True, slots=True)
class Place:
    """One argument: where to go in one partition, or in all of a topic (None)."""

    topic: str
    partition: int | None
    offset: str

    def is_of(self, partition: Partition) -> bool:
        return partition.topic == self.topic and self.partition in (None, partition.number)


def show(args: argparse.Namespace) -> int:
    pipeline = open_pipeline(args)
    rows = []
    for source in pipeline.sources:
        epoch, states = pipeline.positions(source.id)
        for partition, state in states.items():
            rows.append((source.id, partition.topic, partition.number, epoch, state.offset, state.until))
    if args.format == JSON:
        print(json.dumps([dict(zip(_SHOWN, row, strict=True)) for row in rows], indent=2))
    else:
        print_rows(_SHOWN, [["-" if value is None else value for value in row] for row in rows])
    return OK


def move(args: argparse.Namespace) -> int:
    """Exit code 1 if there is something to move, and it is not moved."""
    places = [parse_place(text) for text in args.places]
    pipeline = open_pipeline(args)
    source = pipeline.source(args.node)
    _, states = pipeline.positions(source.id)
    targets = resolve_places(places, states, Cluster(source.settings.client))
    if not args.yes:
        _print(args, states, targets)
        print("nothing is changed: add --yes to do it")
        return FAILURE
    backend = pipeline.backend()
    if not args.force:
        check_quiet(backend, args.quiet_for)

    def change(tables: StateTables, task: TaskInfo) -> None:
        progress = Progress(tables, task)
        for partition, state in progress.partitions().items():
            if partition in targets:
                progress.save(partition, msgspec.structs.replace(state, offset=targets[partition], is_idle=False))

    epoch = rewrite_state(pipeline.plan, pipeline.plugins, backend, source.id, change)
    _print(args, states, targets, epoch=epoch)
    return OK


def parse_place(text: str) -> Place:
    """Raises `ConfigError` for what is not `TOPIC:PARTITION=OFFSET`."""
    found = _PLACE.fullmatch(text)
    if found is None:
        raise ConfigError(f"{text!r} is not a place: write TOPIC:PARTITION=OFFSET, such as orders:0=earliest")
    number = None if found["partition"] == "*" else int(found["partition"])
    return Place(found["topic"], number, found["offset"])


def resolve_places(
    places: Sequence[Place], states: Mapping[Partition, PartitionState], cluster: Cluster
) -> dict[Partition, int]:
    """The offset of each partition that is to be moved; raises `ConfigError` for one that is not there."""
    targets: dict[Partition, int] = {}
    earliest, latest = cluster.earliest(states), cluster.latest(states, is_committed=False)
    for place in places:
        moved = [partition for partition in states if place.is_of(partition)]
        if not moved:
            known = ", ".join(f"{part.topic}:{part.number}" for part in states) or "none"
            wanted = f"{place.topic}:{'*' if place.partition is None else place.partition}"
            raise ConfigError(f"the job does not read {wanted} (it reads: {known})")
        for partition in moved:
            ends = {"earliest": earliest[partition], "latest": latest[partition]}
            offset = ends[place.offset] if place.offset in ends else int(place.offset)
            if not earliest[partition] <= offset <= latest[partition]:
                raise ConfigError(
                    f"{partition} has no offset {offset}: its messages are at {earliest[partition]} to "
                    f"{latest[partition] - 1}, and {latest[partition]} is its end"
                )
            targets[partition] = offset
    return targets


def _print(
    args: argparse.Namespace,
    states: Mapping[Partition, PartitionState],
    targets: Mapping[Partition, int],
    *,
    epoch: int | None = None,
) -> None:
    rows = [(part.topic, part.number, states[part].offset, offset) for part, offset in targets.items()]
    if args.format == JSON:
        print(json.dumps({"epoch": epoch, "moved": [dict(zip(_MOVED, row, strict=True)) for row in rows]}, indent=2))
        return
    print_rows(_MOVED, rows)
    if epoch is not None:
        print(f"published as epoch {epoch}: the job goes on from there")
        if any(offset < states[part].offset for part, offset in targets.items()):
            print("event time does not go back: rows before the watermark are late; what sinks have comes again")
