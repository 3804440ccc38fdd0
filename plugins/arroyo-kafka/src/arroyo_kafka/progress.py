"""What a source remembers between epochs: where it is in every partition.

The table `p` has a key for every partition, from the first epoch on, also for those without a message. The table `b`
has a key for every subtask, and says that it has begun: what it finds later is new, and read from its beginning.
Of both a subtask reads and writes what it owns.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from arroyo_core.api import StateTables, TaskInfo
from arroyo_kafka.partitions import Partition, partition_owner

POSITIONS_TABLE = "p"
BEGUN_TABLE = "b"


class PartitionState(msgspec.Struct, frozen=True, kw_only=True):
    """Where the source is in one partition."""

    #: The offset to read next.
    offset: int
    #: The offset to end before; None for no end.
    until: int | None = None
    #: Of the topic; empty where the cluster gives none.
    topic_id: str = ""
    #: The greatest event time so far, less the lateness; None before the first row.
    watermark_us: int | None = None
    is_idle: bool = False
    #: For how long no row had come. A length and not a moment: the time a job was down is nobody's idleness.
    quiet_us: int = 0

    @property
    def is_done(self) -> bool:
        return self.until is not None and self.offset >= self.until


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """A subtask has resolved where to start."""

    parallelism: int
    #: When it last looked for new partitions, by the job's clock.
    looked_us: int


class Progress:
    """The state of one subtask's source in one epoch."""

    def __init__(self, tables: StateTables, task: TaskInfo) -> None:
        self._task = task
        self._positions = tables.get_partitioned_keyed_state(
            POSITIONS_TABLE, partition_owner(task.parallelism), key_type=Partition, value_type=PartitionState
        )
        self._begun = tables.get_partitioned_keyed_state(
            BEGUN_TABLE, lambda subtask: subtask, key_type=int, value_type=Begun
        )
        own = self._begun.get(task.task_index)
        former = list(self._begun.get_restored().values())
        is_own = own is not None and own.parallelism == task.parallelism
        #: Where the parallelism has changed, all subtasks must have begun: one that has not may have had any partition.
        self.has_begun = is_own or bool(former and len(former) >= former[0].parallelism)
        #: None where this subtask, as it is now, has not looked yet.
        self.looked_us = own.looked_us if own is not None and is_own else None

    def partitions(self) -> Mapping[Partition, PartitionState]:
        """Every partition that this subtask knows and owns."""
        return self._positions.get_all()

    def save(self, partition: Partition, state: PartitionState) -> None:
        if self._positions.get(partition) != state:
            self._positions.insert(partition, state)

    def forget(self, partition: Partition) -> None:
        self._positions.remove(partition)

    def begin(self, looked_us: int) -> None:
        """All partitions that there are now are saved: what is found from here on is new."""
        self.has_begun = True
        self._begun.insert(self._task.task_index, Begun(parallelism=self._task.parallelism, looked_us=looked_us))
