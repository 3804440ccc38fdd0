"""The commit of an epoch: its files and a marker in one entry of the table's log, however often it is repeated.

The log is a chain of versions, and each is created once, by whoever is first. A commit opens the table, looks for the
marker in that version, and then makes the very next one or none: whoever was faster made another version, and it looks
again. So two drivers never add an epoch twice, and a driver that was replaced finds the marker of the newer one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from arroyo_core.api import OperatorContext
from arroyo_core.errors import DataError, ExternalError
from arroyo_delta.location import Files, describe
from arroyo_delta.log import check_inside
from arroyo_delta.markers import Marker
from arroyo_delta.shape import check_writable, new_shape, shape_of
from arroyo_delta.sink_settings import Mode, SinkSettings
from arroyo_delta.staging import DamagedCommitError, LostFileError, StagedEpoch, StagedFile, node_folder
from arroyo_delta.writes import append, merge, overwrite

if TYPE_CHECKING:
    from deltalake import DeltaTable

FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 2.0
#: How long a commit tries by itself, before the job restarts and tries again.
PATIENCE_S = 60.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit of one epoch of one sink."""

    settings: SinkSettings
    ctx: OperatorContext
    epochs: list[StagedEpoch]
    #: For tests: what waits.
    sleep: Callable[[float], None] = time.sleep

    def run(self) -> None:
        """Return when the epoch is committed. Raises `FencedError`, and `ExternalError` where a later try may help."""
        from deltalake.exceptions import CommitFailedError, TableNotFoundError

        if not self.epochs:
            return
        deadline, pause_s = time.monotonic() + PATIENCE_S, FIRST_PAUSE_S
        while True:
            problem: ExternalError
            try:
                self._attempt()
                break
            except ExternalError as error:
                problem = error
            except (CommitFailedError, TableNotFoundError) as error:
                epoch, place = self.ctx.token.epoch, self.settings.location.place
                problem = ExternalError(f"cannot commit epoch {epoch} to the table {place}: {describe(error)}")
            if time.monotonic() > deadline:
                raise problem
            logger.info("commit of epoch %d, once more: %s", self.ctx.token.epoch, problem)
            self.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        self._sweep()

    def _attempt(self) -> None:
        location = self.settings.location
        table = location.open()
        if table is None:
            table = self._create()
        if self._marker.is_there(table):
            return
        self._check_files(table)
        schema = self._evolve(table)
        now_ms = self.ctx.clock.now_us() // 1000
        properties = self._marker.properties(now_ms)
        with location.translating("cannot commit to"):
            match self.settings.mode:
                case Mode.APPEND:
                    append(table, self._staged, self._partition_by, properties)
                case Mode.OVERWRITE_PARTITIONS:
                    touched = {file.partition for file in self._staged}
                    replaced = {values for values in touched if not self._marker.has_replaced(table, values)}
                    properties = self._marker.properties(now_ms, sorted(replaced, key=repr))
                    overwrite(table, self._staged, self._partition_by, replaced, properties)
                case Mode.MERGE:
                    check_inside(table, location.place)
                    names = [file.path for file in self._staged]
                    merge(table, self._files, names, schema, self.settings.keys, properties)
        self.ctx.count("committed_rows", sum(file.rows for file in self._staged))

    def _create(self) -> DeltaTable:
        """An empty table, by whoever is first."""
        from deltalake import CommitProperties, DeltaTable
        from deltalake import Schema as DeltaSchema
        from deltalake.exceptions import CommitFailedError

        location = self.settings.location
        if not self.settings.creates:
            raise DataError(f"there is no table at {location.place}: it is gone, or choose if_missing: create")
        shape = new_shape(self._schema, self._partition_by)
        with location.translating("cannot create"):
            # Another driver may make it at the same time; then that one counts.
            try:
                DeltaTable.create(
                    location.url,
                    DeltaSchema.from_arrow(shape.schema),
                    mode="ignore",
                    partition_by=list(self._partition_by),
                    storage_options=dict(location.options) or None,
                    commit_properties=CommitProperties(max_commit_retries=0),
                )
            except CommitFailedError as error:
                logger.info("the table was made by somebody else: %s", describe(error))
        table = location.open()
        if table is None:
            raise ExternalError(f"the table {location.place} was made and is not there")
        return table

    def _evolve(self, table: DeltaTable) -> pa.Schema:
        """The columns that the rows are in; adds to the table those that are new.

        A crash behind it leaves columns that are null everywhere, which the next try finds.
        """
        from deltalake import CommitProperties
        from deltalake import Schema as DeltaSchema

        check_writable(table, removes=self.settings.mode is not Mode.APPEND)
        shape = shape_of(table)
        if shape.partition_by != self._partition_by:
            raise DataError(
                f"the table {self.settings.location.place} is partitioned by {list(shape.partition_by)}, and the rows "
                f"of epoch {self.ctx.token.epoch} are staged by {list(self._partition_by)}"
            )
        schema = self._schema
        for epoch in self.epochs:
            staged = _decode_schema(epoch)
            written = shape.written(staged, can_add=self.settings.can_add)
            if not _types(written) == _types(staged) == _types(schema):
                raise DataError(
                    f"the columns of the table {self.settings.location.place} have changed since the rows of epoch "
                    f"{self.ctx.token.epoch} were staged"
                )
        added = [field for field in schema if field.name not in shape.schema.names]
        if added:
            fields = DeltaSchema.from_arrow(pa.schema(added)).fields
            with self.settings.location.translating("cannot add columns to"):
                table.alter.add_columns(fields, commit_properties=CommitProperties(max_commit_retries=0))
        return schema

    def _check_files(self, table: DeltaTable) -> None:
        """An entry for a file that is not there would make the table unreadable."""
        present: dict[str, int] = {}
        for folder in sorted({file.path.rpartition("/")[0] for file in self._staged}):
            present |= self._files.sizes(folder)
        for file in self._staged:
            if present.get(file.path) == file.size:
                continue
            # Another driver may have committed it since, and swept.
            newer = self.settings.location.open()
            if newer is not None and newer.version() != table.version() and self._marker.is_there(newer):
                return
            raise LostFileError(
                f"cannot commit {file.path!r} to the table {self.settings.location.place}: its {file.rows} rows were "
                "staged there, and the file is gone or another one; has the table changed its place, or has vacuum run "
                "with a retention that is shorter than the job was down?"
            )

    def _sweep(self) -> None:
        """Delete what the epoch has staged and the table does not refer to: dead attempts, and merged changes.

        Nobody needs it, so a failure is nobody's problem: `vacuum` takes it later.
        """
        kept = {file.path for file in self._staged} if self.settings.mode is not Mode.MERGE else set()
        folder = f"{node_folder(self.ctx.task_info, self._state_id)}/{self.ctx.token.epoch}"
        try:
            for name in self._files.sizes(folder):
                if name not in kept:
                    self._files.remove(name)
        except (ExternalError, OSError) as error:
            logger.info("cannot delete what was staged in %s: %s", folder, error)

    @property
    def _files(self) -> Files:
        return self.settings.location.files()

    @property
    def _marker(self) -> Marker:
        return Marker.of(self.ctx.token, self.ctx.task_info.operator_id, self._state_id)

    @property
    def _state_id(self) -> str:
        return self.ctx.table_manager.state_id

    @property
    def _staged(self) -> list[StagedFile]:
        return [file for epoch in self.epochs for file in epoch.files]

    @property
    def _schema(self) -> pa.Schema:
        return _decode_schema(self.epochs[0])

    @property
    def _partition_by(self) -> tuple[str, ...]:
        return self.epochs[0].partition_by


def _decode_schema(epoch: StagedEpoch) -> pa.Schema:
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(epoch.schema))
        # Names are decoded here.
        str(schema.names)
        return schema
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DamagedCommitError(f"commit data have no schema: {error}") from error


def _types(schema: pa.Schema) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in schema}
