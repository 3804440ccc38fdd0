"""`StateTables`: what an operator finds in `ctx.table_manager`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, overload

from arroyo_core.api.signals import Watermark
from arroyo_core.api.views import (
    ExpiringTimeKeyState,
    GlobalKeyedState,
    KeyTimeState,
    LastKeyValueState,
    PartitionedKeyedState,
)

K = TypeVar("K")
V = TypeVar("V")
ViewT = TypeVar("ViewT")


class StateTables(Protocol):
    """An operator's state tables, opened before `on_start` and checkpointed at every barrier.

    A table is asked for by the name under which `tables(inputs)` declared it, and has one view.
    The implementation is `arroyo_core.state.TableManager`.
    """

    @property
    def state_id(self) -> str:
        """Tells jobs apart: the same in all runs of a job, another one in every other place and incarnation of it.

        Short, and made of letters and digits: for names of files and tables.
        """
        ...

    @overload
    def get_global_keyed_state(self, name: str, key_type: type[K], value_type: type[V]) -> GlobalKeyedState[K, V]: ...

    @overload
    def get_global_keyed_state(
        self, name: str, key_type: Any = ..., value_type: Any = ...
    ) -> GlobalKeyedState[Any, Any]: ...

    def get_global_keyed_state(self, name: str, key_type: Any = None, value_type: Any = None) -> Any:
        """The view of a global keyed table; types, where given, check and build what is decoded."""
        ...

    @overload
    def get_partitioned_keyed_state(
        self, name: str, owner: Callable[[K], int], key_type: type[K], value_type: type[V]
    ) -> PartitionedKeyedState[K, V]: ...

    @overload
    def get_partitioned_keyed_state(
        self, name: str, owner: Callable[[Any], int], key_type: Any = ..., value_type: Any = ...
    ) -> PartitionedKeyedState[Any, Any]: ...

    def get_partitioned_keyed_state(
        self, name: str, owner: Callable[[Any], int], key_type: Any = None, value_type: Any = None
    ) -> Any:
        """The view of a partitioned table: of the keys for which `owner` gives the index of this subtask.

        To be taken in every epoch, by all subtasks.
        """
        ...

    def get_expiring_time_key_table(self, name: str, watermark: Watermark | None = None) -> ExpiringTimeKeyState:
        """The view of an expiring table by event time; rows past retention at `watermark` are left out."""
        ...

    def get_key_time_table(self, name: str, watermark: Watermark | None = None) -> KeyTimeState:
        """The view of an expiring table by key, with all rows of a key."""
        ...

    def get_last_key_value_table(self, name: str) -> LastKeyValueState:
        """The view of a generational expiring table: the last row of each key."""
        ...

    def get_view(self, name: str, kind: type[Any], view_type: type[ViewT], open_view: Callable[[Any], ViewT]) -> ViewT:
        """The view of a table of a type that a plugin has added: `kind` is its `arroyo_core.state.Table`.

        `open_view` is given the table, once; later calls give the same view. Raises `WrongTableKindError` if the table
        is not of this kind, or its view is not of `view_type`.
        """
        ...

    def insert_committing_data(self, name: str, data: bytes) -> None:
        """Stage what `handle_commit` will be given for this subtask; once per epoch and table."""
        ...
