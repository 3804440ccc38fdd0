"""What a source remembers between epochs: where it began, and how far it is.

Files are dealt to a fixed number of slots, by the hash of their names, and slots to subtasks: at another parallelism a
slot has another subtask, which finds how far it is. So the state has the same size however many files and versions the
table has.

- table `s`, written by subtask 0 in the first epoch: `start`, a `Start`;
- table `p`, by slot: a `Position`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from arroyo_core.api import StateTables, TaskInfo
from arroyo_core.state import IncompatibleCheckpointError, hash_key
from arroyo_delta.log import Unit

START_TABLE, POSITIONS_TABLE = "s", "p"
#: No more subtasks than these read.
SLOTS = 256
_START = "start"


class Start(msgspec.Struct, frozen=True):
    """Where a source has begun, and where it ends."""

    #: The first version that is read.
    version: int
    #: Whether all rows of that version are read, and not what it has changed.
    is_snapshot: bool
    #: The last version that is read; None without an end.
    end: int | None
    table_id: str


class Position(msgspec.Struct, frozen=True, array_like=True):
    """How far a slot is: everything before is read."""

    version: int
    #: So many of the slot's files in that version are read.
    done: int = 0
    #: So many rows of the next one are read.
    row: int = 0


class Progress:
    """The state of one subtask's source in one epoch. With `is_ordered`, subtask 0 reads everything, in order."""

    def __init__(self, tables: StateTables, task: TaskInfo, planned: Start, *, is_ordered: bool) -> None:
        self._task = task
        self._slots = 1 if is_ordered else SLOTS
        self._stored: Any = tables.get_partitioned_keyed_state(
            POSITIONS_TABLE, self._owner, key_type=int, value_type=Position
        )
        starts: Any = tables.get_global_keyed_state(START_TABLE, key_type=str, value_type=Start)
        found: Start | None = starts.get(_START)
        if found is None:
            found = planned
            if task.task_index == 0:
                starts.insert(_START, planned)
        elif found.table_id != planned.table_id:
            raise IncompatibleCheckpointError(
                "the table is another one than the one that the job began with: it was made again. Give the node "
                "another id, and it reads from the beginning"
            )
        self.start: Start = found
        self._positions: dict[int, Position] = {
            slot: self._stored.get(slot) or Position(found.version)
            for slot in range(self._slots)
            if self._owner(slot) == task.task_index
        }

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing for this subtask to read, whatever comes."""
        return not self._positions

    @property
    def version(self) -> int:
        """The version to read next."""
        return min(position.version for position in self._positions.values())

    def slot(self, unit: Unit) -> int:
        return hash_key(unit.path) % self._slots

    def slots(self) -> list[int]:
        """The slots of this subtask."""
        return list(self._positions)

    def position(self, slot: int) -> Position:
        return self._positions[slot]

    def move(self, slot: int, position: Position) -> None:
        self._positions[slot] = position

    def finish(self, version: int) -> None:
        """Everything that this subtask has to read of a version is read."""
        for slot, position in self._positions.items():
            if position.version <= version:
                self._positions[slot] = Position(version + 1)

    def save(self) -> None:
        """Into the tables, at the end of the epoch."""
        for slot, position in self._positions.items():
            if self._stored.get(slot) != position:
                self._stored.insert(slot, position)

    def _owner(self, slot: int) -> int:
        return slot % self._task.parallelism
