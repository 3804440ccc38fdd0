"""`std.stdout`: a sink that prints the rows of every committed epoch, on the driver; or rows as they come."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    CheckpointBarrier,
    DisplayableOperator,
    Guarantee,
    OperatorContext,
)
from arroyo_core.api.visible import visible
from arroyo_core.state import global_table_config
from arroyo_std.rendering import Format, render_csv, render_json, render_table

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

COMMIT_TABLE = "out"

_TOTAL_ROWS = b"arroyo_std.total_rows"

#: The (job, operator) pairs whose CSV header this process has printed. An operator is rebuilt for every
#: epoch, and a header between the rows would spoil the file that they are piped into.
_headed: set[tuple[str, str]] = set()


class Stdout(ArrowOperator):
    """Stages the first rows of each epoch and prints them when the epoch is committed.

    Rows are printed once per committed epoch, subtask after subtask, in the order they came; again only if the
    driver dies between printing and the mark that the epoch is committed.

    With `is_at_once` rows are shown as they come where the context can do that, and again whenever their epoch is
    repeated.
    """

    def __init__(self, output_format: Format, *, limit: int, max_cell_width: int, is_at_once: bool = False) -> None:
        self._format = output_format
        self._is_at_once = is_at_once
        self._limit = limit
        self._max_cell_width = max_cell_width

    def name(self) -> str:
        return "std.stdout"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return inputs[0]

    def is_sink(self) -> bool:
        return True

    def is_committing(self) -> bool:
        return True

    def guarantee(self) -> Guarantee:
        return Guarantee.AT_LEAST_ONCE

    def guarantee_reason(self) -> str:
        if self._is_at_once:
            return "it prints rows before their epoch is committed, and again if the epoch is repeated"
        return "it prints an epoch again if the driver dies before the epoch is marked as committed"

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
        return global_table_config(COMMIT_TABLE, "rows to be printed", uses_two_phase_commit=True)

    def display(self) -> DisplayableOperator:
        settings = [("format", str(self._format)), ("limit", str(self._limit))]
        return DisplayableOperator(self.name(), [*settings, *([("at_once", "true")] if self._is_at_once else [])])

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: OperatorContext) -> None:
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        self._staged: list[pa.RecordBatch] = []
        #: Staged or shown.
        self._printed_rows = 0
        #: Those of which the commit tells: staged, or past the limit.
        self._total_rows = 0

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        self._total_rows += batch.num_rows
        printed = batch.slice(0, self._limit - self._printed_rows)
        self._printed_rows += printed.num_rows
        if printed.num_rows < batch.num_rows:
            ctx.count("unprinted_rows", batch.num_rows - printed.num_rows)
        if printed.num_rows and self._show(printed, ctx):
            self._total_rows -= printed.num_rows
        elif printed.num_rows:
            self._staged.append(printed)

    def _show(self, batch: pa.RecordBatch, ctx: OperatorContext) -> bool:
        """Whether the rows are printed already."""
        if not self._is_at_once:
            return False
        rows = pa.Table.from_batches([batch])
        heading = render_csv(rows.slice(0, 0), has_header=True) if self._format is Format.CSV else ""
        return ctx.show(self._render(rows, has_header=False), heading=heading)

    def handle_checkpoint(self, barrier: CheckpointBarrier, ctx: OperatorContext, collector: ArrowCollector) -> None:
        if self._total_rows:
            rows = pa.Table.from_batches(self._staged, ctx.input_schemas[0].schema)
            ctx.table_manager.insert_committing_data(COMMIT_TABLE, _encode(rows, self._total_rows))
        self._begin_epoch()

    def handle_commit(self, epoch: int, commit_data: Mapping[str, Mapping[int, bytes]], ctx: OperatorContext) -> None:
        staged = [_decode(data) for _, data in sorted(commit_data.get(COMMIT_TABLE, {}).items())]
        if not staged:
            return
        rows = pa.concat_tables([table for table, _ in staged])
        if rows.num_rows:
            key = (ctx.task_info.job_id, ctx.task_info.operator_id)
            text = self._render(rows, has_header=key not in _headed)
            # A pipe gets values as they are; CSV has no way to write characters out.
            sys.stdout.write(visible(text) if sys.stdout.isatty() else text)
            sys.stdout.flush()
            _headed.add(key)
        unprinted = sum(total for _, total in staged) - rows.num_rows
        if unprinted:
            # Not among the rows: whoever reads those from a pipe expects nothing else.
            sys.stderr.write(f"{ctx.task_info.operator_id}: {unprinted} more rows in epoch {epoch} were not printed\n")
            sys.stderr.flush()

    def _render(self, rows: pa.Table, *, has_header: bool) -> str:
        match self._format:
            case Format.JSON:
                return render_json(rows)
            case Format.CSV:
                return render_csv(rows, has_header=has_header)
            case Format.TABLE:
                return render_table(rows, max_cell_width=self._max_cell_width)


def _encode(rows: pa.Table, total_rows: int) -> bytes:
    """Arrow IPC, with the number of rows there were beside those that are kept."""
    rows = rows.replace_schema_metadata({_TOTAL_ROWS: str(total_rows)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def _decode(data: bytes) -> tuple[pa.Table, int]:
    rows = pa.ipc.open_stream(data).read_all()
    return rows.replace_schema_metadata(None), int(rows.schema.metadata[_TOTAL_ROWS])
