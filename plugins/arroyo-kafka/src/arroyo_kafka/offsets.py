"""Where to begin and to end in partitions, and where to go on when messages are gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from arroyo_core.errors import DataError
from arroyo_kafka.cluster import Cluster
from arroyo_kafka.partitions import Partition
from arroyo_kafka.progress import PartitionState
from arroyo_kafka.source_settings import Bound, DataLoss, Place, SourceSettings

#: Partitions, each with the id of its topic.
TopicIds = Mapping[Partition, str]


def first_positions(
    cluster: Cluster, found: TopicIds, settings: SourceSettings, *, group: str
) -> dict[Partition, PartitionState]:
    """Start and end of every partition that there is when the job starts for the first time."""
    starts = _places(cluster, found, settings.start, settings, group=group)
    ends: Mapping[Partition, int] = {}
    if settings.until is not None:
        ends = _places(cluster, found, settings.until, settings, group=group)
    return {
        part: PartitionState(offset=starts[part], until=ends.get(part), topic_id=topic_id)
        for part, topic_id in found.items()
    }


def new_positions(cluster: Cluster, found: TopicIds) -> dict[Partition, PartitionState]:
    """The beginning of every partition that was made after the job had started: all of it is new."""
    starts = cluster.earliest(found)
    return {part: PartitionState(offset=starts[part], topic_id=topic_id) for part, topic_id in found.items()}


def _places(
    cluster: Cluster, found: TopicIds, bound: Bound, settings: SourceSettings, *, group: str
) -> dict[Partition, int]:
    is_committed = settings.is_read_committed
    if bound.place is Place.TIMESTAMP:
        return cluster.at_time(found, bound.time_ms, is_committed=is_committed)
    if bound.place is Place.LATEST:
        return cluster.latest(found, is_committed=is_committed)
    known = cluster.group_offsets(group, found) if bound.place is Place.GROUP else {}
    return {**cluster.earliest(part for part in found if part not in known), **known}


@dataclass(frozen=True, slots=True)
class Loss:
    """Messages of a partition that nobody can read any more: where the source goes on, and what to say about it."""

    state: PartitionState
    #: None where nobody knows.
    messages: int | None
    text: str


def derive_loss(
    partition: Partition, state: PartitionState, *, topic_id: str, earliest: int, latest: int, policy: DataLoss
) -> Loss | None:
    """What is lost of a partition that has these offsets now; None where nothing is.

    Raises `DataError` where the policy is to fail.
    """
    is_another = bool(state.topic_id and topic_id and state.topic_id != topic_id)
    if is_another:
        what, messages = "the topic was deleted and made again", None
    elif state.offset > latest:
        what, messages = f"offset {state.offset} is behind the end, {latest}: the topic was truncated", None
    elif state.offset < earliest:
        messages = earliest - state.offset
        what = f"offsets {state.offset} to {earliest - 1} are gone: retention, or a hand, has deleted them"
    else:
        return None
    if policy is DataLoss.FAIL:
        raise DataError(
            f"{partition}: {what}. on_data_loss: earliest or latest goes on without them; `arroyo kafka offsets` moves "
            "a job by hand"
        )
    offset = earliest if policy is DataLoss.EARLIEST else latest
    until = state.until if state.until is None or not is_another else latest
    text = f"{partition}: {what}; going on at offset {offset} (on_data_loss: {policy})"
    return Loss(msgspec.structs.replace(state, offset=offset, until=until, topic_id=topic_id), messages, text)
