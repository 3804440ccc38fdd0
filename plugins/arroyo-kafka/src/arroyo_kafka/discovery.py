"""Finds the partitions of a source: those of its first start, new ones, and those that are not what they were."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from arroyo_core.api import SourceContext, StopRequest
from arroyo_core.errors import ConfigError, DataError
from arroyo_kafka.assignment import Assignment
from arroyo_kafka.cluster import Cluster
from arroyo_kafka.offsets import derive_loss, first_positions, new_positions
from arroyo_kafka.partitions import Partition, Topic, owner_of
from arroyo_kafka.progress import Progress
from arroyo_kafka.source_settings import DataLoss, SourceSettings

LOST_COUNTER = "lost_messages"
#: How long the end of an epoch waits for a look.
PATIENCE_SECONDS = 2.0


class Discovery:
    """Looks at the topics for one subtask in one epoch."""

    def __init__(self, settings: SourceSettings, ctx: SourceContext, progress: Progress, *, group: str) -> None:
        self._settings = settings
        self._ctx = ctx
        self._progress = progress
        self._group = group
        self._looked_us = progress.looked_us
        self._is_needed = not progress.has_begun

    @property
    def is_due(self) -> bool:
        """Whether it is time for a look; also where there is an end: a topic that is deleted gives no sign."""
        if self._is_needed or self._looked_us is None:
            return True
        passed_us: int = self._ctx.clock.now_us() - self._looked_us
        return passed_us >= self._settings.discovery_interval_us

    def hurry(self) -> None:
        """An error says that a topic is not what it was: look as soon as possible."""
        self._is_needed = True

    def look(self, assignment: Assignment) -> None:
        """Ask the cluster for partitions that are new, or not what they were.

        Raises `InterruptedByControl`, and `ExternalError` where nobody answers: then nothing has changed, and the next
        look is due after another interval.
        """
        now_us = self._ctx.clock.now_us()
        is_first = not self._progress.has_begun
        self._looked_us, self._is_needed = now_us, is_first
        cluster = Cluster(self._settings.client, is_interrupted=self._interruption(is_first=is_first))
        topics = cluster.find_topics(self._settings.topics)
        if is_first:
            self._check_there(topics)
        self._add_new(cluster, topics, assignment, is_first=is_first)
        self._check_known(cluster, topics, assignment)
        self._progress.begin(now_us)
        self._is_needed = False

    def recover(self, partition: Partition, assignment: Assignment) -> None:
        """The broker says that the offset of a partition is not there; go on as `on_data_loss` says."""
        cluster = Cluster(self._settings.client, is_interrupted=self._interruption(is_first=False))
        topics = cluster.describe([partition.topic])
        if not topics:
            self._miss([partition], assignment)
            return
        self._check_offsets(cluster, {partition: topics[0].id}, assignment)

    def _interruption(self, *, is_first: bool) -> Callable[[], bool]:
        """What ends a look: a stop at once, the end of the epoch after a while, and the first look not at all.

        With epochs shorter than an answer of the brokers, a source would never begin, nor find new partitions.
        """
        patient_until = math.inf if is_first else time.monotonic() + PATIENCE_SECONDS

        def is_interrupted() -> bool:
            message = self._ctx.control()
            return isinstance(message, StopRequest) or (message is not None and time.monotonic() > patient_until)

        return is_interrupted

    def _check_there(self, topics: Sequence[Topic]) -> None:
        missing = sorted(set(self._settings.topics.names) - {topic.name for topic in topics})
        if missing:
            raise ConfigError(
                f"there is no topic {missing[0]!r} (brokers {self._settings.client.bootstrap_servers})",
                field="topic" if len(self._settings.topics.names) == 1 else "topics",
                value=missing[0],
            )

    def _add_new(self, cluster: Cluster, topics: Sequence[Topic], assignment: Assignment, *, is_first: bool) -> None:
        task = self._ctx.task_info
        found = {
            partition: topic.id
            for topic in topics
            for partition in topic.each()
            if owner_of(partition, task.parallelism) == task.task_index and partition not in assignment
        }
        if not found or (not is_first and self._settings.until is not None):
            # What was there at the first start is all of a source that has an end.
            return
        if is_first:
            states = first_positions(cluster, found, self._settings, group=self._group)
        else:
            states = new_positions(cluster, found)
        for partition, state in states.items():
            assignment.add(partition, state)
            self._progress.save(partition, state)

    def _check_known(self, cluster: Cluster, topics: Sequence[Topic], assignment: Assignment) -> None:
        """Topics that were deleted, or deleted and made again."""
        ids = {partition: topic.id for topic in topics for partition in topic.each()}
        open_partitions = [partition for partition in assignment if not assignment.is_partition_done(partition)]
        self._miss([partition for partition in open_partitions if partition not in ids], assignment)
        others = {
            partition: ids[partition]
            for partition in open_partitions
            if partition in ids and (assignment.is_absent(partition) or _is_another(assignment, partition, ids))
        }
        self._check_offsets(cluster, others, assignment)

    def _check_offsets(self, cluster: Cluster, found: dict[Partition, str], assignment: Assignment) -> None:
        earliest = cluster.earliest(found)
        latest = cluster.latest(found, is_committed=False)
        for partition, topic_id in found.items():
            state = assignment.state(partition)
            loss = derive_loss(
                partition,
                state,
                topic_id=topic_id,
                earliest=earliest[partition],
                latest=latest[partition],
                policy=self._settings.on_data_loss,
            )
            if loss is not None:
                self._ctx.warn(loss.text)
                if loss.messages is not None:
                    self._ctx.count(LOST_COUNTER, loss.messages)
            assignment.move(partition, state if loss is None else loss.state)

    def _miss(self, partitions: Sequence[Partition], assignment: Assignment) -> None:
        for partition in partitions:
            if self._settings.on_data_loss is DataLoss.FAIL:
                raise DataError(
                    f"{partition} is not there any more: its topic was deleted. on_data_loss: earliest or latest waits "
                    "until it is made again"
                )
            if not assignment.is_absent(partition):
                self._ctx.warn(f"{partition} is not there any more: waiting until its topic is made again")
            assignment.miss(partition)


def _is_another(assignment: Assignment, partition: Partition, ids: dict[Partition, str]) -> bool:
    return assignment.state(partition).topic_id != ids[partition]
