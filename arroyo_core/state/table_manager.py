"""`TableManager`: the state tables of one operator in one subtask."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import Any

from arroyo_core.api.deprecated import warn_define_table
from arroyo_core.api.schema import ArroyoSchema
from arroyo_core.api.signals import Watermark
from arroyo_core.ids import TaskInfo
from arroyo_core.proto.state_pb2 import (
    OperatorCheckpointMetadata,
    StateFile,
    SubtaskCheckpointMetadata,
    TableConfig,
    TableSubtaskCheckpointMetadata,
    TableType,
)
from arroyo_core.state.cache import WarmCache
from arroyo_core.state.compaction import CompactionPolicy, choose_compaction
from arroyo_core.state.compatibility import derive_mismatch
from arroyo_core.state.config import is_partitioned
from arroyo_core.state.expiring_time_key_map import (
    ExpiringTimeKeyTable,
    ExpiringTimeKeyTableCheckpointer,
    ExpiringView,
)
from arroyo_core.state.failures import IncompatibleCheckpointError, NoRegisteredTableError, WrongTableKindError
from arroyo_core.state.file_access import FileAccess
from arroyo_core.state.files import ReadCounts
from arroyo_core.state.global_keyed_map import GlobalKeyedTable, GlobalKeyedTableCheckpointer, GlobalKeyedView
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
from arroyo_core.state.parquet import ParquetBackend
from arroyo_core.state.partitioned import PartitionedKeyedView
from arroyo_core.state.storage import StorageProvider
from arroyo_core.state.time_views import ExpiringTimeKeyView

Table = GlobalKeyedTable | ExpiringTimeKeyTable
TableCheckpointer = GlobalKeyedTableCheckpointer | ExpiringTimeKeyTableCheckpointer


class TableManager:
    """Opens an operator's tables from a checkpoint, hands out one view of each, and checkpoints them.

    A table is read when its view is first asked for; one that is never asked for is carried
    forward unread. Used by one thread.
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
    ) -> None:
        self.task_info = task_info
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
        self._views: dict[str, Any] = {}
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
        is_concurrent: bool = False,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1000,
        incarnation: str = "",
    ) -> TableManager:
        """The tables as of `checkpoint`, for the key range of `task_info`; empty without a checkpoint.

        Raises `IncompatibleCheckpointError` if the checkpoint has a table that is not declared, or
        declares one otherwise. A newly declared table starts empty. With a `cache` (see
        `default_warm_cache`) files that this host has written or read are not read again. `incarnation` is the job's.
        """
        files = _check_compatible(task_info, tables, checkpoint) if checkpoint is not None else {}
        shelf = cache.shelf(storage.url, task_info) if cache is not None else None
        if shelf is not None and checkpoint is not None:
            live = [file for table in files.values() for file in table]
            shelf.retain(live, epoch=checkpoint.operator_metadata.epoch)
        access = FileAccess(storage=storage, task_info=task_info, cache=shelf, is_concurrent=is_concurrent)
        return cls(
            task_info=task_info,
            tables=tables,
            access=access,
            files=files,
            compaction=compaction or CompactionPolicy(),
            now_us=now_us,
            written=dict(checkpoint.table_configs) if checkpoint is not None else {},
            incarnation=incarnation,
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
        if declared.table_type != TableType.EXPIRING_KEYED_TIME_TABLE:
            raise self._wrong_kind(name, "an expiring table")
        config = with_columns(declared, schema)
        if has_columns(declared):
            if config != declared:
                raise WrongTableKindError(
                    f"table {name!r} of operator {self.task_info.operator_id!r} is declared with other columns"
                )
            return
        mismatch = derive_mismatch(self._written[name], config) if name in self._files else None
        if mismatch is not None:
            raise IncompatibleCheckpointError(f"table {name!r} of operator {self.task_info.operator_id!r} {mismatch}")
        self._configs[name] = config
        self._tables[name] = self._make_table(name, config, list(self._files.get(name, [])))

    @property
    def state_id(self) -> str:
        """Tells jobs apart: the same in all runs of a job, another one in every other place and incarnation of it.

        Short, and made of letters and digits: for names of files and tables.
        """
        identity = f"{self._access.storage.url}\n{self.task_info.job_id}"
        if self._incarnation:
            # An epoch of before there were incarnations is committed under the name by which it was staged.
            identity += f"\n{self._incarnation}"
        return hashlib.sha256(identity.encode()).hexdigest()[:12]

    @property
    def read_counts(self) -> ReadCounts:
        """What opening views has read so far."""
        return self._access.counts

    def get_global_keyed_state(
        self, name: str, key_type: Any = None, value_type: Any = None
    ) -> GlobalKeyedView[Any, Any]:
        """The view of a global keyed table; types, where given, check and build what is decoded."""
        table = self._global(name)
        if table.is_partitioned:
            raise WrongTableKindError(
                f"table {name!r} of operator {self.task_info.operator_id!r} is partitioned: "
                "get_partitioned_keyed_state gives its view"
            )
        view: GlobalKeyedView[Any, Any] = self._view(
            name, GlobalKeyedView, lambda: table.view(key_type, value_type, self.handle_message)
        )
        return view

    def get_partitioned_keyed_state(
        self, name: str, owner: Callable[[Any], int], key_type: Any = None, value_type: Any = None
    ) -> PartitionedKeyedView[Any, Any]:
        """The view of a partitioned table: of the keys for which `owner` gives the index of this subtask.

        To be taken in every epoch, by all subtasks: see `PartitionedKeyedView`.
        """
        table = self._global(name)
        if not table.is_partitioned:
            raise WrongTableKindError(
                f"table {name!r} of operator {self.task_info.operator_id!r} is not declared with is_partitioned=True"
            )
        view: PartitionedKeyedView[Any, Any] = self._view(
            name,
            PartitionedKeyedView,
            lambda: PartitionedKeyedView(
                table=table, owner=owner, key_type=key_type, value_type=value_type, send=self.handle_message
            ),
        )
        return view

    def get_expiring_time_key_table(self, name: str, watermark: Watermark | None = None) -> ExpiringTimeKeyView:
        """The view of an expiring table by event time; rows past retention at `watermark` are left out."""
        table = self._expiring(name)
        view: ExpiringTimeKeyView = self._view(
            name, ExpiringTimeKeyView, lambda: table.time_view(watermark, self.handle_message)
        )
        return view

    def get_key_time_table(self, name: str, watermark: Watermark | None = None) -> KeyTimeView:
        """The view of an expiring table by key, with all rows of a key."""
        table = self._expiring(name)
        view: KeyTimeView = self._view(name, KeyTimeView, lambda: table.key_time_view(watermark, self.handle_message))
        return view

    def get_last_key_value_table(self, name: str) -> LastKeyValueView:
        """The view of a generational expiring table: the last row of each key."""
        table = self._expiring(name)
        view: LastKeyValueView = self._view(
            name, LastKeyValueView, lambda: table.last_key_value_view(self.handle_message)
        )
        return view

    def insert_committing_data(self, name: str, data: bytes) -> None:
        """Stage what `handle_commit` will be given for this subtask; once per epoch and table."""
        self.handle_message(TableMessage(name, CommitData(data)))

    def handle_message(self, message: StateMessage) -> None:
        """Take what a view, or a compaction, has to say to the next checkpoint."""
        if isinstance(message, TableMessage):
            self._checkpointer(message.table).insert_data(message.data)
        elif isinstance(message, CompactionMessage):
            for name, compacted in message.tables.items():
                self._table(name).swap_compacted(compacted)
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
        """Write this epoch's change of every table; returns what the subtask reports.

        Merges old files where there are too many, flushes the change to new files, collects the
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
        self._check_partitioned()
        written = self._compact(epoch)
        tables: dict[str, TableSubtaskCheckpointMetadata] = {}
        for name in self._tables:
            tables[name], size_bytes = self._finish(name, message)
            written += size_bytes
        self._access.finish_writes()
        if is_last and self._access.cache is not None:
            self._access.cache.clear()
        task = self.task_info
        metadata = SubtaskCheckpointMetadata(
            job_id=task.job_id,
            operator_id=task.operator_id,
            subtask_index=task.task_index,
            parallelism=task.parallelism,
            epoch=epoch,
            start_time_us=message.timestamp_us,
            finish_time_us=self._now_us(),
            watermark_us=watermark,
            bytes=written,
            table_metadata=tables,
            table_configs=self._configs,
            then_stop=then_stop,
        )
        if write_metadata and (then_stop or is_last):
            operator = join_subtasks([metadata])
            operator.subtask_index = task.task_index
            ParquetBackend(self._access.storage, task.job_id).write_operator_checkpoint_metadata(operator)
        return metadata

    def start_compaction(self, epoch: int) -> None:
        """Begin to merge old files in another thread, beside the epoch; the checkpoint takes what comes of it.

        Called at most once an epoch, after views were opened. Without it the checkpoint merges by itself.
        """
        for name, table in self._tables.items():
            compact = choose_compaction(table, epoch=epoch, policy=self._compaction)
            if compact is not None:
                self._compactions[name] = _compaction_pool(os.getpid()).submit(compact)

    def _check_partitioned(self) -> None:
        """A partitioned table must be dealt out again when the parallelism changes: nobody may leave it unread."""
        for name, table in self._tables.items():
            if name in self._views or not isinstance(table, GlobalKeyedTable):
                continue
            if table.is_partitioned and table.has_stored_keys:
                raise WrongTableKindError(
                    f"table {name!r} of operator {self.task_info.operator_id!r} is partitioned: every subtask must "
                    "take its view, with get_partitioned_keyed_state, in every epoch"
                )

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

    def _make_table(self, name: str, config: TableConfig, files: list[StateFile]) -> Table:
        if config.table_type == TableType.EXPIRING_KEYED_TIME_TABLE:
            return ExpiringTimeKeyTable(name=name, config=config, access=self._access, files=files)
        former = self._written.get(name)
        is_placed = former is not None and is_partitioned(former)
        is_same = is_placed and self._written_parallelism == self.task_info.parallelism
        return GlobalKeyedTable(
            name=name,
            config=config,
            access=self._access,
            files=files,
            is_handed_over=is_partitioned(config) and bool(files) and not is_same,
        )

    def _finish(self, name: str, message: CheckpointMessage) -> tuple[TableSubtaskCheckpointMetadata, int]:
        table, view = self._tables[name], self._views.get(name)
        if isinstance(table, GlobalKeyedTable):
            finished = self._global_checkpointer(name).finish(message)
        else:
            cutoff_us = table.cutoff_us(message.watermark_us)
            expiring: ExpiringView | None = view
            if expiring is not None:
                expiring.flush(cutoff_us)
            expired_us = expiring.expired_before_us if isinstance(expiring, ExpiringTimeKeyView) else None
            finished = self._expiring_checkpointer(name).finish(message, expired_before_us=expired_us)
            if expiring is not None:
                expiring.handle_checkpointed(cutoff_us)
        del self._checkpointers[name]
        return finished

    def _checkpointer(self, name: str) -> TableCheckpointer:
        checkpointer = self._checkpointers.get(name)
        if checkpointer is None:
            checkpointer = self._table(name).checkpointer()
            self._checkpointers[name] = checkpointer
        return checkpointer

    def _global_checkpointer(self, name: str) -> GlobalKeyedTableCheckpointer:
        checkpointer = self._checkpointer(name)
        assert isinstance(checkpointer, GlobalKeyedTableCheckpointer)
        return checkpointer

    def _expiring_checkpointer(self, name: str) -> ExpiringTimeKeyTableCheckpointer:
        checkpointer = self._checkpointer(name)
        assert isinstance(checkpointer, ExpiringTimeKeyTableCheckpointer)
        return checkpointer

    def _global(self, name: str) -> GlobalKeyedTable:
        table = self._table(name)
        if not isinstance(table, GlobalKeyedTable):
            raise self._wrong_kind(name, "a global keyed table")
        return table

    def _expiring(self, name: str) -> ExpiringTimeKeyTable:
        table = self._table(name)
        if not isinstance(table, ExpiringTimeKeyTable):
            raise self._wrong_kind(name, "an expiring table")
        return table

    def _table(self, name: str) -> Table:
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

    def _view(self, name: str, kind: type[Any], make: Callable[[], Any]) -> Any:
        view = self._views.get(name)
        if view is None:
            view = make()
            self._views[name] = view
        if type(view) is not kind:
            raise WrongTableKindError(
                f"table {name!r} of operator {self.task_info.operator_id!r} is in use as a {type(view).__name__}, "
                f"it cannot also be a {kind.__name__}"
            )
        return view

    def _wrong_kind(self, name: str, wanted: str) -> WrongTableKindError:
        kind = TableType.Name(self._configs[name].table_type)
        return WrongTableKindError(
            f"table {name!r} of operator {self.task_info.operator_id!r} is declared as {kind}, not as {wanted}"
        )


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
