"""`TableManager`: the state tables of one operator in one subtask."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

from arroyo_core.api.deprecated import warn_define_table
from arroyo_core.api.schema import ArroyoSchema
from arroyo_core.api.signals import Watermark
from arroyo_core.api.state_tables import StateTables
from arroyo_core.ids import TaskInfo
from arroyo_core.proto.state_pb2 import (
    OperatorCheckpointMetadata,
    StateFile,
    SubtaskCheckpointMetadata,
    TableConfig,
    TableSubtaskCheckpointMetadata,
)
from arroyo_core.state.backend import ParquetBackend
from arroyo_core.state.cache import WarmCache
from arroyo_core.state.compaction import LIVING_COMPACTION, CompactionPolicy, choose_compaction
from arroyo_core.state.expiring_time_key_map import ExpiringTimeKeyTable
from arroyo_core.state.failures import IncompatibleCheckpointError, NoRegisteredTableError, WrongTableKindError
from arroyo_core.state.file_access import FileAccess, default_file_pool
from arroyo_core.state.files import ReadCounts
from arroyo_core.state.global_keyed_map import GlobalKeyedTable
from arroyo_core.state.global_keyed_view import GlobalKeyedView
from arroyo_core.state.key_views import KeyTimeView, LastKeyValueView
from arroyo_core.state.late_columns import has_columns, with_columns
from arroyo_core.state.merge import join_subtasks, table_files
from arroyo_core.state.messages import (
    CheckpointMessage,
    CommitData,
    Compacted,
    CompactionMessage,
    StateMessage,
    TableMessage,
)
from arroyo_core.state.partitioned import PartitionedKeyedView
from arroyo_core.state.seals import Seals
from arroyo_core.state.storage import StorageProvider
from arroyo_core.state.table import Table, TableCheckpointer, TableOpening
from arroyo_core.state.table_types import derive_mismatch, table_class, type_name
from arroyo_core.state.time_views import ExpiringTimeKeyView

TableT = TypeVar("TableT", bound=Table[Any])
ViewT = TypeVar("ViewT")


class TableManager(StateTables):
    """Opens an operator's tables from a checkpoint, hands out one view of each, and checkpoints them.

    What operators call is described by `StateTables`. A table is read when its view is first asked for; one that is
    never asked for is carried forward unread. Used by one thread.
    """

    def __init__(
        self,
        *,
        task_info: TaskInfo,
        tables: Mapping[str, TableConfig],
        access: FileAccess,
        files: Mapping[str, list[StateFile]],
        compaction: CompactionPolicy,
        now_us: Callable[[], int],
        written: Mapping[str, TableConfig],
        written_parallelism: int,
        incarnation: str = "",
        lives_on: bool = False,
    ) -> None:
        self.task_info = task_info
        self._lives_on = lives_on
        self._incarnation = incarnation
        #: The configs of the tables in the checkpoint, and how many subtasks wrote them.
        self._written = written
        self._written_parallelism = written_parallelism
        self._files = files
        self._configs = dict(tables)
        self._access = access
        self._compaction = compaction
        self._now_us = now_us
        self._tables = {
            name: self._make_table(name, config, files.get(name, []))
            for name, config in tables.items()
            if has_columns(config)
        }
        self._checkpointers: dict[str, TableCheckpointer] = {}
        self._compactions: dict[str, Future[Compacted]] = {}

    @classmethod
    def open(
        cls,
        *,
        task_info: TaskInfo,
        tables: Mapping[str, TableConfig],
        storage: StorageProvider,
        checkpoint: OperatorCheckpointMetadata | None,
        compaction: CompactionPolicy | None = None,
        cache: WarmCache | None = None,
        pool: Executor | None = None,
        is_concurrent: bool = False,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1000,
        incarnation: str = "",
        reads_storage: bool = False,
        is_sealed: bool = False,
        lives_on: bool = False,
    ) -> TableManager:
        """The tables as of `checkpoint`, for the key range of `task_info`; empty without a checkpoint.

        Raises `IncompatibleCheckpointError` if the checkpoint has a table that is not declared, or declares one
        otherwise. A newly declared table starts empty. With a `cache` files that this host has written or read are not
        read again, unless `reads_storage`: then only what is written now is taken from there. The `pool` reads and
        writes several files at once; without one, the threads of the process. `is_sealed` is for a job that has seals,
        `lives_on` for tables that may `go_on` after a checkpoint.
        """
        files = _check_compatible(task_info, tables, checkpoint) if checkpoint is not None else {}
        shelf = (
            cache.shelf(storage.url, task_info, gives_own=reads_storage, lives_on=lives_on)
            if cache is not None
            else None
        )
        if shelf is not None and checkpoint is not None:
            live = [file for table in files.values() for file in table]
            shelf.retain(live, epoch=checkpoint.operator_metadata.epoch)
        access = FileAccess(
            storage=storage,
            task_info=task_info,
            pool=pool or default_file_pool(),
            cache=shelf,
            is_sealed=is_sealed,
            is_concurrent=is_concurrent,
        )
        return cls(
            task_info=task_info,
            tables=tables,
            access=access,
            files=files,
            compaction=compaction or (LIVING_COMPACTION if lives_on else CompactionPolicy()),
            now_us=now_us,
            written=dict(checkpoint.table_configs) if checkpoint is not None else {},
            incarnation=incarnation,
            lives_on=lives_on,
            written_parallelism=checkpoint.operator_metadata.parallelism if checkpoint is not None else 0,
        )

    def define_table(self, name: str, schema: ArroyoSchema) -> None:
        """Deprecated: give the columns of an expiring table that was declared without, in `on_start`.

        Raises `IncompatibleCheckpointError` if the checkpoint has other columns, and
        `WrongTableKindError` if the table was declared with other columns, or has none to give.
        """
        warn_define_table(name, self.task_info.operator_id)
        declared = self._configs.get(name)
        if declared is None:
            raise self._not_declared(name)
        if declared.table_type != ExpiringTimeKeyTable.table_type:
            raise WrongTableKindError(f"{self._described(name)} is declared as {type_name(declared.table_type)}")
        config = with_columns(declared, schema)
        if has_columns(declared):
            if config != declared:
                raise WrongTableKindError(f"{self._described(name)} is declared with other columns")
            return
        if name in self._files and (mismatch := derive_mismatch(self._written[name], config)) is not None:
            raise IncompatibleCheckpointError(f"{self._described(name)} {mismatch}")
        self._configs[name] = config
        self._tables[name] = self._make_table(name, config, list(self._files.get(name, [])))

    @property
    def state_id(self) -> str:
        url, identity = self._access.storage.url, f"{self._access.storage.url}\n{self.task_info.job_id}"
        if self._incarnation:
            # An epoch of before there were incarnations is committed under the name by which it was staged.
            identity = f"{url.removeprefix('file://')}\n{self.task_info.job_id}\n{self._incarnation}"
        return hashlib.sha256(identity.encode()).hexdigest()[:12]

    @property
    def read_counts(self) -> ReadCounts:
        """What opening views has read so far."""
        return self._access.counts

    def get_view(
        self, name: str, kind: type[TableT], view_type: type[ViewT], open_view: Callable[[TableT], ViewT]
    ) -> ViewT:
        table = self._table_of(name, kind)
        view = table.view
        if view is None:
            view = table.view = open_view(table)
        if type(view) is not view_type:
            raise WrongTableKindError(
                f"{self._described(name)} is in use as a {type(view).__name__}, "
                f"it cannot also be a {view_type.__name__}"
            )
        return view

    def get_global_keyed_state(
        self, name: str, key_type: Any = None, value_type: Any = None
    ) -> GlobalKeyedView[Any, Any]:
        self._table_of(name, GlobalKeyedTable).check_partitioned(False)
        return self.get_view(
            name, GlobalKeyedTable, GlobalKeyedView, lambda table: table.keyed_view(key_type, value_type)
        )

    def get_partitioned_keyed_state(
        self, name: str, owner: Callable[[Any], int], key_type: Any = None, value_type: Any = None
    ) -> PartitionedKeyedView[Any, Any]:
        self._table_of(name, GlobalKeyedTable).check_partitioned(True)
        return self.get_view(
            name,
            GlobalKeyedTable,
            PartitionedKeyedView,
            lambda table: table.partitioned_view(owner, key_type, value_type),
        )

    def get_expiring_time_key_table(self, name: str, watermark: Watermark | None = None) -> ExpiringTimeKeyView:
        return self.get_view(name, ExpiringTimeKeyTable, ExpiringTimeKeyView, lambda table: table.time_view(watermark))

    def get_key_time_table(self, name: str, watermark: Watermark | None = None) -> KeyTimeView:
        return self.get_view(name, ExpiringTimeKeyTable, KeyTimeView, lambda table: table.key_time_view(watermark))

    def get_last_key_value_table(self, name: str) -> LastKeyValueView:
        return self.get_view(name, ExpiringTimeKeyTable, LastKeyValueView, ExpiringTimeKeyTable.last_key_value_view)

    def insert_committing_data(self, name: str, data: bytes) -> None:
        self.handle_message(TableMessage(name, CommitData(data)))

    def handle_message(self, message: StateMessage) -> None:
        """Take what is for the next checkpoint and does not come from views: commit data, and compacted files."""
        if isinstance(message, TableMessage):
            self._checkpointer(message.table).insert_data(message.data)
        elif isinstance(message, CompactionMessage):
            for name, compacted in message.tables.items():
                table = self._table(name)
                if self._lives_on:
                    table.read_before_they_go(compacted.replaced)
                table.swap_compacted(compacted)
        else:
            raise WrongTableKindError("a checkpoint is taken with checkpoint(), not by a message")

    def checkpoint(
        self,
        epoch: int,
        min_epoch: int,
        watermark: int | None,
        then_stop: bool = False,
        *,
        is_last: bool = False,
        write_metadata: bool = True,
    ) -> SubtaskCheckpointMetadata:
        """Write this epoch's change of every table; returns what the subtask reports, when all of it is stored.

        The arguments are those of `begin_checkpoint`.
        """
        return self.begin_checkpoint(
            epoch, min_epoch, watermark, then_stop, is_last=is_last, write_metadata=write_metadata
        )()

    def begin_checkpoint(
        self,
        epoch: int,
        min_epoch: int,
        watermark: int | None,
        then_stop: bool = False,
        *,
        is_last: bool = False,
        write_metadata: bool = True,
    ) -> Callable[[], SubtaskCheckpointMetadata]:
        """Take this epoch's change of every table, and begin to store it; the tables may go on at once.

        What it returns is called once, from any thread: it waits until all is stored, and gives what the subtask
        reports. Merges old files where there are too many, flushes the change to new files, collects the
        metadata, then drops what is past retention. Called once per epoch, after every input delivered
        the barrier; another process may run the same epoch. With `is_last` the input has ended:
        nothing is kept warm. Reports carry the metadata, and the checkpoint embeds it: a file of the
        subtask's own is written only where the job ends here (and not with `write_metadata` off).
        """
        message = CheckpointMessage(
            epoch=epoch,
            min_epoch=min_epoch,
            timestamp_us=self._now_us(),
            watermark_us=watermark,
            then_stop=then_stop,
            is_last=is_last,
        )
        undefined = sorted(self._configs.keys() - self._tables.keys())
        if undefined:
            raise NoRegisteredTableError(
                f"operator {self.task_info.operator_id!r} never gave the columns of {', '.join(undefined)}: "
                "declare them in tables(self, inputs)"
            )
        for table in self._tables.values():
            table.check_view()
        written = self._compact(epoch)
        tables: dict[str, TableSubtaskCheckpointMetadata] = {}
        for name in self._tables:
            tables[name], size_bytes = self._finish(name, message)
            written += size_bytes
        wait_for_files = self._access.take_writes()
        task = self.task_info
        metadata = SubtaskCheckpointMetadata(
            job_id=task.job_id,
            operator_id=task.operator_id,
            subtask_index=task.task_index,
            parallelism=task.parallelism,
            epoch=epoch,
            start_time_us=message.timestamp_us,
            watermark_us=watermark,
            bytes=written,
            table_metadata=tables,
            table_configs=self._configs,
            then_stop=then_stop,
        )

        def complete() -> SubtaskCheckpointMetadata:
            wait_for_files()
            if is_last and self._access.cache is not None:
                self._access.cache.clear()
            metadata.finish_time_us = self._now_us()
            if write_metadata and (then_stop or is_last):
                self._write_metadata(metadata)
            return metadata

        return complete

    def _write_metadata(self, metadata: SubtaskCheckpointMetadata) -> None:
        task = self.task_info
        operator = join_subtasks([metadata])
        operator.subtask_index = task.task_index
        backend = ParquetBackend(self._access.storage, task.job_id, seals=Seals())
        backend.write_operator_checkpoint_metadata(operator)

    def go_on(self, checkpoint: OperatorCheckpointMetadata) -> None:
        """Be open for one more epoch; `checkpoint` is the one that the tables have just been part of."""
        files = {name: list(table_files(table)) for name, table in checkpoint.table_checkpoint_metadata.items()}
        if self._access.cache is not None:
            live = [file for table in files.values() for file in table]
            self._access.cache.retain(live, epoch=checkpoint.operator_metadata.epoch)
        for name, table in self._tables.items():
            table.go_on(files.get(name, []))

    @property
    def waits_for_others(self) -> bool:
        """Whether a view may show something else once it is known what other subtasks have written in this epoch."""
        return any(table.waits_for_others for table in self._tables.values())

    def begin_early(self) -> None:
        """Rows of the next epoch are processed from now on; `go_on` comes before its checkpoint."""
        for table in self._tables.values():
            table.begin_early()

    def cache_bytes(self) -> int:
        """What this host keeps of the tables."""
        return self._access.cache.size_bytes() if self._access.cache is not None else 0

    def start_compaction(self, epoch: int) -> None:
        """Begin to merge old files in another thread, beside the epoch; the checkpoint takes what comes of it.

        Called at most once an epoch, after views were opened. Without it the checkpoint merges by itself.
        """
        for name, table in self._tables.items():
            compact = choose_compaction(table, epoch=epoch, policy=self._compaction)
            if compact is not None:
                self._compactions[name] = _compaction_pool(os.getpid()).submit(compact)

    def _compact(self, epoch: int) -> int:
        """Merge files of earlier epochs where there are too many; returns the bytes written."""
        compacted: dict[str, Compacted] = {}
        for name, table in self._tables.items():
            started = self._compactions.pop(name, None)
            compact = started.result if started else choose_compaction(table, epoch=epoch, policy=self._compaction)
            if compact is not None:
                compacted[name] = compact()
        if compacted:
            self.handle_message(CompactionMessage(compacted))
        return sum(file.size_bytes for found in compacted.values() for file in found.files)

    def _make_table(self, name: str, config: TableConfig, files: list[StateFile]) -> Table[Any]:
        return table_class(config.table_type)(
            TableOpening(
                name=name,
                config=config,
                access=self._access,
                files=files,
                written=self._written.get(name),
                written_parallelism=self._written_parallelism,
            )
        )

    def _finish(self, name: str, message: CheckpointMessage) -> tuple[TableSubtaskCheckpointMetadata, int]:
        finished = self._checkpointer(name).finish(message)
        del self._checkpointers[name]
        return finished

    def _checkpointer(self, name: str) -> TableCheckpointer:
        checkpointer = self._checkpointers.get(name)
        if checkpointer is None:
            checkpointer = self._checkpointers[name] = self._table(name).checkpointer()
        return checkpointer

    def _table_of(self, name: str, kind: type[TableT]) -> TableT:
        table = self._table(name)
        if not isinstance(table, kind):
            declared = type_name(table.table_type)
            raise WrongTableKindError(f"{self._described(name)} is declared as {declared}, not as {kind.type_name}")
        return table

    def _table(self, name: str) -> Table[Any]:
        table = self._tables.get(name)
        if table is None:
            raise self._not_declared(name)
        return table

    def _not_declared(self, name: str) -> NoRegisteredTableError:
        operator = f"operator {self.task_info.operator_id!r}"
        if name in self._configs:
            return NoRegisteredTableError(
                f"{operator} declares table {name!r} without columns: give them in tables(self, inputs)"
            )
        declared = ", ".join(sorted(self._configs)) or "none"
        return NoRegisteredTableError(f"{operator} declares no table {name!r} (declared: {declared})")

    def _described(self, name: str) -> str:
        return f"table {name!r} of operator {self.task_info.operator_id!r}"


def _check_compatible(
    task_info: TaskInfo, tables: Mapping[str, TableConfig], checkpoint: OperatorCheckpointMetadata
) -> dict[str, list[StateFile]]:
    identity = checkpoint.operator_metadata
    if (identity.job_id, identity.operator_id) != (task_info.job_id, task_info.operator_id):
        raise IncompatibleCheckpointError(
            f"the checkpoint is of operator {identity.operator_id!r} of job {identity.job_id!r}, "
            f"not of operator {task_info.operator_id!r} of job {task_info.job_id!r}"
        )
    files: dict[str, list[StateFile]] = {}
    for name, table in checkpoint.table_checkpoint_metadata.items():
        config = tables.get(name)
        if config is None:
            raise IncompatibleCheckpointError(
                f"the checkpoint at epoch {identity.epoch} has a table {name!r} that operator "
                f"{task_info.operator_id!r} no longer declares (declared: {', '.join(sorted(tables)) or 'none'})"
            )
        mismatch = derive_mismatch(checkpoint.table_configs[name], config)
        if mismatch is not None:
            raise IncompatibleCheckpointError(
                f"table {name!r} of operator {task_info.operator_id!r} {mismatch} (epoch {identity.epoch})"
            )
        files[name] = list(table_files(table))
    return files


@lru_cache(maxsize=1)
def _compaction_pool(_pid: int) -> ThreadPoolExecutor:
    # One thread: merging must not take the cores from the rows that come in.
    return ThreadPoolExecutor(1, thread_name_prefix="state-compaction")
