"""The view of a partitioned table: a global keyed table of which each key belongs to one subtask.

A subtask reads and writes what it owns, so that an epoch costs it the same at any parallelism. When the parallelism
has changed since the checkpoint, keys change their owners: every subtask reads the whole table once, takes over what it
owns now, and its next checkpoint writes that. It is the same with a table that was not partitioned in the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from arroyo_core.api.views import PartitionedKeyedState
from arroyo_core.ids import TaskInfo
from arroyo_core.state.failures import StateValueError
from arroyo_core.state.global_keyed_view import GlobalKeyedView, StoredValues
from arroyo_core.state.messages import KeyedData

K = TypeVar("K")
V = TypeVar("V")


class PartitionedKeyedView(GlobalKeyedView[K, V], PartitionedKeyedState[K, V]):
    """The keys of a partitioned table that one subtask owns; described by `PartitionedKeyedState`."""

    def __init__(
        self,
        *,
        table: str,
        restored: StoredValues,
        is_handed_over: bool,
        owner: Callable[[K], int],
        task: TaskInfo,
        key_type: Any,
        value_type: Any,
        state_version: int,
    ) -> None:
        super().__init__(
            table=table,
            stored=StoredValues([]) if is_handed_over else restored,
            key_type=key_type,
            value_type=value_type,
            state_version=state_version,
        )
        self._task = task
        self._owner = owner
        #: None once a checkpoint has what the subtask took over.
        self._restored: StoredValues | None = restored
        if is_handed_over:
            for key, value in self._restored_items(restored):
                if owner(key) == self._task.task_index:
                    self.insert(key, value)

    def get_restored(self) -> dict[K, V]:
        return self.get_all() if self._restored is None else dict(self._restored_items(self._restored))

    def take_changes(self) -> KeyedData:
        self._restored = None
        return super().take_changes()

    def insert(self, key: K, value: V) -> None:
        self._check_owner(key)
        super().insert(key, value)

    def remove(self, key: K) -> V | None:
        self._check_owner(key)
        return super().remove(key)

    def get_all(self) -> dict[K, V]:
        return super().get_all()

    def _restored_items(self, restored: StoredValues) -> Iterator[tuple[K, V]]:
        for key, (value, version) in restored.items():
            yield self._decode_key(key), self._decoder(version)(value)

    def _check_owner(self, key: K) -> None:
        owner, task = self._owner(key), self._task
        if owner != task.task_index:
            raise StateValueError(
                f"table {self._table!r} of operator {task.operator_id!r} is partitioned: key {key!r:.200} belongs to "
                f"subtask {owner}, and subtask {task.task_index} of {task.parallelism} must not write it"
            )
