"""Up to where windows have fired: survives restarts, and tells keys apart when the parallelism changes.

Every subtask stores its watermark. Subtasks that share their inputs' watermarks agree, and a new set of subtasks
goes on from there. Where they disagree (each made its own watermarks), the new subtasks start from the
least, and remember for the keys of each old subtask how far that one had come, so that no window fires twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from arroyo_core.api import END_OF_TIME_US, OperatorContext, PartitionedKeyedState, TaskInfo
from arroyo_core.api.hashing import hash_batch, subtasks_of
from arroyo_std.windows.times import Times

#: Before all times.
NEVER_US = -(2**62)


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """How far each of some former subtasks had come."""

    parallelism: int
    fired_us: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredProgress:
    """What one subtask keeps between two epochs."""

    parallelism: int
    fired_us: int
    floors: tuple[Floor, ...] = ()


def progress_view(ctx: OperatorContext, table: str) -> PartitionedKeyedState[int, StoredProgress]:
    """What subtasks stored, by their index: each one's own, and after a change of the parallelism that of all.

    What subtasks of a higher parallelism left behind belongs to nobody, and goes.
    """
    return ctx.table_manager.get_partitioned_keyed_state(
        table, lambda subtask: subtask, key_type=int, value_type=StoredProgress
    )


def restore_progress(stored: Mapping[int, StoredProgress], *, task: TaskInfo) -> StoredProgress:
    """Where a subtask goes on, given what all subtasks stored."""
    own = stored.get(task.task_index)
    if own is not None and own.parallelism == task.parallelism:
        return own
    if not stored:
        return StoredProgress(parallelism=task.parallelism, fired_us=NEVER_US)
    former = max(each.parallelism for each in stored.values())
    fired = tuple(stored[place].fired_us if place in stored else NEVER_US for place in range(former))
    floors = {floor for each in stored.values() for floor in each.floors if max(floor.fired_us) > min(fired)}
    if min(fired) < max(fired):
        floors.add(Floor(parallelism=former, fired_us=fired))
    return StoredProgress(parallelism=task.parallelism, fired_us=min(fired), floors=tuple(floors))


class FiringProgress:
    """The watermark up to which this subtask has fired; never goes back."""

    def __init__(self, stored: StoredProgress, *, keys: Sequence[str]) -> None:
        self._keys = keys
        self._parallelism = stored.parallelism
        self._floors = stored.floors
        # Rows that come after an end come of a source that started over: the end was none.
        self.fired_us = stored.fired_us if stored.fired_us < END_OF_TIME_US else NEVER_US

    def advance(self, watermark_us: int) -> None:
        self.fired_us = max(self.fired_us, watermark_us)
        if self._floors:
            self._floors = tuple(floor for floor in self._floors if max(floor.fired_us) > self.fired_us)

    def fired_for(self, batch: pa.RecordBatch) -> Times | int:
        """How far windows have fired for the key of each row; one number where it is the same for all."""
        if not self._floors:
            return self.fired_us
        hashes = hash_batch(batch, self._keys)
        fired = np.full(batch.num_rows, self.fired_us, dtype=np.int64)
        for floor in self._floors:
            former = subtasks_of(hashes, floor.parallelism)
            np.maximum(fired, np.array(floor.fired_us, dtype=np.int64)[former], out=fired)
        return fired

    @property
    def is_uneven(self) -> bool:
        """Whether keys differ in how far their windows have fired."""
        return bool(self._floors)

    def store(self) -> StoredProgress:
        return StoredProgress(parallelism=self._parallelism, fired_us=self.fired_us, floors=self._floors)
