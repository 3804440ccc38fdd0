"""`Table`: what every type of state tables implements.

A type is one class. The class itself answers for configs and for metadata, which needs no files; an instance is one
table of one subtask. `arroyo_core.state.table_types` finds the class of a config or of metadata.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar, cast

import pyarrow as pa

from arroyo_core.proto.state_pb2 import (
    ExpiringKeyedTimeTableCheckpointMetadata,
    ExpiringKeyedTimeTableSubtaskCheckpointMetadata,
    StagedFile,
    StateFile,
    TableCheckpointMetadata,
    TableConfig,
    TableSubtaskCheckpointMetadata,
)
from arroyo_core.state.file_access import FileAccess
from arroyo_core.state.live_files import carry_forward, file_order, merge_references
from arroyo_core.state.messages import CheckpointMessage, Compacted, TableData

if TYPE_CHECKING:
    from arroyo_core.proto.state_pb2 import TableType

ViewT = TypeVar("ViewT")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOpening:
    """What a table is made from: its config, and what the checkpoint has of it."""

    name: str
    config: TableConfig
    access: FileAccess
    files: Sequence[StateFile] = ()
    #: The config that the checkpoint was written with, and by how many subtasks; None for a table that is new.
    written: TableConfig | None = None
    written_parallelism: int = 0


@dataclass(frozen=True, slots=True)
class Staged:
    """The commit data of a table of a checkpoint, by subtask: in the metadata, or in files."""

    inline: Mapping[int, bytes] = field(default_factory=dict)
    files: Mapping[int, StagedFile] = field(default_factory=dict)


class TableCheckpointer(Protocol):
    """Collects one epoch's change of a table, and writes it; made for each epoch."""

    def insert_data(self, data: TableData) -> None:
        """Take data beside that of the view; raises `StateValueError` for what the table cannot hold."""
        ...

    def finish(self, message: CheckpointMessage) -> tuple[TableSubtaskCheckpointMetadata, int]:
        """Take the change from the table's view, if there is one, and write it.

        Returns the table's part of the checkpoint, and the bytes written or staged.
        """
        ...


class Table(ABC, Generic[ViewT]):
    """One state table of one subtask, opened from a checkpoint and checkpointed at every barrier.

    A subclass that keeps files, and no more, in the metadata of checkpoints has to say what its files hold, how they
    are merged, what its checkpointer is, and what views it has.
    """

    #: As in `TableConfig.table_type`. Types of plugins have numbers from 1000 on.
    table_type: ClassVar[int]
    #: The type, as people read it.
    type_name: ClassVar[str]

    #: Whether a row hides older rows of its key even when it is itself past retention.
    is_shadowing: bool = False
    #: The event-time column of the files, if there is one.
    timestamp_column: str | None = None

    def __init__(self, opening: TableOpening) -> None:
        """Open the table; reads no files."""
        self.name = opening.name
        self.access = opening.access
        #: The files that the next checkpoint refers to, oldest first, cut to this subtask's key range.
        self.carried = carry_forward(
            opening.files, key_range=opening.access.task_info.key_range, shadows=self.is_shadowing
        )
        #: The one view of the table; None while nobody has asked for it: then the table is carried forward unread.
        self.view: ViewT | None = None

    @classmethod
    def make_config(cls, settings: bytes, *, state_version: int = 0) -> TableConfig:
        """The config of a table of this type; only the type itself reads `settings`."""
        return TableConfig(table_type=cast("TableType", cls.table_type), config=settings, state_version=state_version)

    @classmethod
    @abstractmethod
    def file_schema(cls, config: TableConfig) -> pa.Schema:
        """The columns of the table's files."""

    @classmethod
    @abstractmethod
    def derive_mismatch(cls, written: TableConfig, declared: TableConfig) -> str | None:
        """Why a table declared so cannot take over what a checkpoint holds of it; None if it can.

        The end of a sentence about the table: `has columns ... in the checkpoint, and is declared with ...`.
        """

    @classmethod
    def describe_changes(cls, written: TableConfig, declared: TableConfig) -> tuple[str, ...]:
        """What becomes of rows of a checkpoint that a table declared so takes over, as clauses; none for no change."""
        return ()

    @classmethod
    def may_differ(cls, config: TableConfig) -> bool:
        """Whether files may have been written with other columns, which the table can do with."""
        return False

    @classmethod
    def uses_two_phase_commit(cls, config: TableConfig) -> bool:
        """Whether the table carries commit data."""
        return False

    @classmethod
    def files(cls, table: TableCheckpointMetadata) -> Sequence[StateFile]:
        """The data files of a table of a checkpoint, oldest first."""
        return table.expiring_keyed_time.files

    @classmethod
    def staged(cls, table: TableCheckpointMetadata) -> Staged:
        """The commit data of a table of a checkpoint."""
        return Staged()

    @classmethod
    def clear_staged(cls, table: TableCheckpointMetadata) -> None:
        """Forget the commit data of a table of a checkpoint."""
        return

    @classmethod
    def files_to_keep(cls, table: TableCheckpointMetadata) -> list[StateFile | StagedFile]:
        """Every file that a table of a checkpoint refers to."""
        return [*cls.files(table), *cls.staged(table).files.values()]

    @classmethod
    def merge_checkpoint_metadata(cls, parts: Sequence[TableSubtaskCheckpointMetadata]) -> TableCheckpointMetadata:
        """A table of a checkpoint, from the reports of the operator's subtasks."""
        files = merge_references(file for part in parts for file in part.expiring_keyed_time.files)
        return TableCheckpointMetadata(
            table_type=cast("TableType", cls.table_type),
            expiring_keyed_time=ExpiringKeyedTimeTableCheckpointMetadata(files=files),
        )

    def subtask_metadata(self) -> TableSubtaskCheckpointMetadata:
        """What this subtask reports of the table: the files in `carried`."""
        return TableSubtaskCheckpointMetadata(
            subtask_index=self.access.task_info.task_index,
            table_type=cast("TableType", self.table_type),
            expiring_keyed_time=ExpiringKeyedTimeTableSubtaskCheckpointMetadata(files=self.carried),
        )

    @abstractmethod
    def checkpointer(self) -> TableCheckpointer:
        """What takes the change of one epoch."""

    def go_on(self, files: Sequence[StateFile]) -> None:
        """Be open for one more epoch: `files` are those of the checkpoint that this table was just part of.

        Views stay as they are, but for what other subtasks have written into tables that all of them see.
        """
        return

    def begin_early(self) -> None:
        """Rows of the next epoch are going to be processed before `go_on`; called where nothing `waits_for_others`."""
        return

    @property
    def waits_for_others(self) -> bool:
        """Whether the view must not be used after a checkpoint before `go_on`, because other subtasks write, too.

        Where it says no, rows of the next epoch may be processed before `go_on`; never a checkpoint.
        """
        return type(self).go_on is not Table.go_on

    def read_before_they_go(self, files: Sequence[StateFile]) -> None:
        """Read what the view still has to read of these files, which it is going to outlive."""
        return

    def check_view(self) -> None:
        """Raise `WrongTableKindError`, before a checkpoint, if the table must not be left unread and was."""
        return

    @abstractmethod
    def merge_rows(self, files: Sequence[StateFile], parts: Sequence[pa.Table], *, is_oldest: bool) -> pa.Table:
        """What is live of some rows of each of neighbouring files, oldest first, sorted by key hash: for compaction.

        With `is_oldest` nothing older exists: deletes have done their work and are left out. May run in another
        thread, while the table is read and written to.
        """

    def swap_compacted(self, compacted: Compacted) -> None:
        """Let new files stand for those they were made of."""
        replaced = {(file.path, file.live_key_start) for file in compacted.replaced}
        kept = [file for file in self.carried if (file.path, file.live_key_start) not in replaced]
        self.carried = sorted([*kept, *compacted.files], key=file_order)

    @abstractmethod
    def to_people(self, rows: pa.Table) -> pa.Table:
        """Merged rows of files as people look at them, with `arroyo state cat`."""
