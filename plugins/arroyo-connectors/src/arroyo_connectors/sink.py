"""`TransactionalSink`: the base of sinks into anything that takes rows and a token in one transaction."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from arroyo_connectors.changes import ChangeSettings, Mode, PendingChanges, plain_rows
from arroyo_connectors.commit import commit_epoch
from arroyo_connectors.staged_streams import Staged
from arroyo_connectors.staging import StagedEpoch, StagedWriter
from arroyo_connectors.target import Target
from arroyo_core.api import ArrowCollector, ArrowOperator, ArroyoSchema, CheckpointBarrier, OperatorContext
from arroyo_core.state import global_table_config

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

TABLE = "staged"


class TransactionalSink(ArrowOperator):
    """Stages rows with the checkpoint; the driver writes them with the token of their epoch when it is published.

    A subclass says its `name`, and makes its `target`. It may check the columns in `check_rows`, and shows itself in
    `display`. Mistakes name the fields `mode`, `keys` and `deleted_column` of its config.
    """

    def __init__(self, *, mode: Mode = Mode.APPEND, keys: Sequence[str] = (), deleted_column: str = "") -> None:
        self._changes = ChangeSettings(mode=mode, keys=tuple(keys), deleted_column=deleted_column)
        self._writer: StagedWriter | None = None
        self._pending: PendingChanges | None = None

    @abstractmethod
    def target(self, schema: pa.Schema) -> Target:
        """What to write rows of these columns to.

        Called on the driver, for each commit that has rows; connects to nothing by itself.
        """

    def check_rows(self, schema: pa.Schema) -> None:
        """Raise `ConfigError` where the target cannot take rows of these columns. Called on the driver to plan."""
        return

    def check_batch(self, rows: pa.RecordBatch) -> None:
        """Raise `DataError` for a row that the target would not take. Called in tasks, with each batch.

        What is only found in the commit is found too late: the checkpoint is there, and its commit fails again.
        """
        return

    def token_place(self) -> str:
        """Where the tokens are, for `state_settings`: elsewhere a commit that is repeated would not find its own."""
        return ""

    @property
    def mode(self) -> Mode:
        return self._changes.mode

    @property
    def keys(self) -> tuple[str, ...]:
        return self._changes.keys

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        self.check_rows(self._changes.row_schema(inputs[0]))
        return inputs[0]

    def is_sink(self) -> bool:
        return True

    def is_committing(self) -> bool:
        return True

    def lives_on(self) -> bool:
        return True

    def guarantee_reason(self) -> str:
        return "the rows of an epoch and its token are one transaction"

    def routing_keys(self, inputs: Sequence[ArroyoSchema]) -> Sequence[tuple[str, ...] | None]:
        # The changes of a key in their order, and so in one subtask.
        return [self._changes.keys or None]

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
        return dict(global_table_config(TABLE, "rows to commit", uses_two_phase_commit=True))

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str]:
        place = self.token_place()
        return {"tokens": place} if place else {}

    def on_start(self, ctx: OperatorContext) -> None:
        self._rows = self._changes.row_schema(ctx.input_schemas[0])
        self._writer = self._pending = None

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        rows = plain_rows(batch, self._rows)
        self.check_batch(rows)
        if self._changes.mode is Mode.UPSERT:
            if self._pending is None:
                self._pending = PendingChanges(self._changes, self._rows)
            self._pending.add(batch, rows)
            return
        if self._writer is None:
            self._writer = StagedWriter(self._rows, Staged(mode=Mode.APPEND))
        self._writer.write(rows)

    def handle_checkpoint(self, barrier: CheckpointBarrier, ctx: OperatorContext, collector: ArrowCollector) -> None:
        ctx.table_manager.insert_committing_data(TABLE, self._take())

    def handle_commit(self, epoch: int, commit_data: Mapping[str, Mapping[int, bytes]], ctx: OperatorContext) -> None:
        staged = StagedEpoch(commit_data.get(TABLE, {}))
        # An epoch without rows needs no token: the driver that comes next finishes this epoch before it begins another.
        if not staged.is_empty:
            commit_epoch(self.target(staged.rows), staged, ctx)

    def _take(self) -> bytes:
        """What was staged; the next epoch begins with nothing."""
        writer, pending = self._writer, self._pending
        self._writer = self._pending = None
        if pending is not None:
            writer = StagedWriter(pending.schema, Staged(mode=Mode.UPSERT, keys=self._changes.keys))
            writer.write(pending.take())
        return writer.close() if writer is not None else b""
