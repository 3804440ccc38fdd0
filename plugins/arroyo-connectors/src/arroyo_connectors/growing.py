"""`GrowingSource`: the base of sources that read rows by a column that grows, batch after batch."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from arroyo_connectors.columns import check_column, check_event_time
from arroyo_core.api import (
    OUTAGES,
    ArroyoSchema,
    ControlMessage,
    DisplayableOperator,
    OperatorContext,
    Outages,
    RetryPolicy,
    SourceCollector,
    SourceContext,
    SourceFinishType,
    SourceOperator,
    Watermark,
)
from arroyo_core.errors import ConfigError, DataError, ExternalError
from arroyo_core.state import global_table_config

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

TABLE = "p"
#: The keys of the table: the last value that was read, and the last there is to read, as texts.
POSITION, END = "position", "end"
#: What stands for "there was no row" in the place of a value.
_NOTHING = "-"
STAND_BY_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowingSettings:
    """What is read, whatever the database; `name` is for people."""

    name: str
    column: str
    #: Where to begin, as the database writes values; empty for the first row.
    after: str
    poll_s: float
    has_end: bool
    batch_rows: int
    #: The column with the event time; empty for none.
    event_time: str


class GrowingFields(Protocol):
    """The fields that the config of such a source has. Durations are in microseconds; 0 and "" are none."""

    growing_column: str
    after: str
    until: str
    poll_interval: int
    batch_rows: int
    event_time_field: str


def read_growing(config: GrowingFields, *, name: str) -> GrowingSettings:
    """The settings of a config; raises `ConfigError`."""
    # The planner checks this for YAML; configs that are made in code come here unchecked.
    if not config.growing_column:
        raise ConfigError("growing_column is needed", field="growing_column")
    if config.until not in ("", "latest"):
        raise ConfigError(f"unknown end {config.until!r}", field="until", value=config.until, allowed=["latest"])
    for field in ("poll_interval", "batch_rows"):
        if getattr(config, field) <= 0:
            raise ConfigError(f"{field} must be more than zero", field=field, value=getattr(config, field))
    return GrowingSettings(
        name=name,
        column=config.growing_column,
        after=config.after,
        poll_s=config.poll_interval / 1e6,
        has_end=bool(config.until),
        batch_rows=config.batch_rows,
        event_time=config.event_time_field,
    )


def choose_columns(growing: GrowingSettings, columns: Sequence[str], known: Sequence[str]) -> Sequence[str]:
    """The names of the columns to read, of those that there are; raises `ConfigError`."""
    for place, name in enumerate(columns):
        check_column(name, known, f"columns[{place}]")
    check_column(growing.column, known, "growing_column")
    return columns or known


def check_growing_time(growing: GrowingSettings, schema: pa.Schema) -> None:
    """Raise `ConfigError` where the column with the event time has none."""
    if growing.event_time:
        check_event_time(growing.event_time, schema)


class GrowingSource(SourceOperator):
    """Subtask 0 reads; the others are idle. Each value of the column is read once, in the order of the database."""

    def __init__(self, growing: GrowingSettings) -> None:
        self._growing = growing

    @abstractmethod
    def find_schema(self) -> pa.Schema:
        """The columns, asked for while the pipeline is planned; raises `ConfigError`, `ExternalError`."""

    @abstractmethod
    def open_schema(self) -> pa.Schema:
        """The columns as they are now, in the connection that rows are read by, which is made where there is none.

        Called before the first page of each epoch, and of each new connection.
        """

    @abstractmethod
    def read_page(self, after: str | None, end: str | None, limit: int) -> pa.Table:
        """About so many rows whose value is greater than `after` and not greater than `end`, in order.

        All rows of one value, or none. The last column is the text of the value.
        """

    @abstractmethod
    def read_end(self) -> str | None:
        """The greatest value that is there now; None without rows."""

    @abstractmethod
    def translating(self) -> AbstractContextManager[None]:
        """Errors of the client library as ours."""

    @abstractmethod
    def disconnect(self) -> None:
        """Close the connection, if there is one; raises nothing."""

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        try:
            found = self.find_schema()
        except ExternalError as error:
            raise ConfigError(error.message, field="connection") from error
        return ArroyoSchema(found, self._growing.event_time or None)

    def tables(self) -> dict[str, TableConfig]:
        tables = dict(global_table_config(TABLE, "the last value that was read", is_partitioned=True))
        return tables | global_table_config(OUTAGES, "since when the database fails", is_partitioned=True)

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str]:
        # The position is a value of this column.
        return {"growing_column": self._growing.column}

    def display(self) -> DisplayableOperator:
        growing = self._growing
        fields = [("rows of", growing.name), ("growing_column", growing.column)]
        return DisplayableOperator(self.name(), [*fields, *([("until", "latest")] if growing.has_end else [])])

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: SourceContext) -> None:
        self._state = ctx.table_manager.get_partitioned_keyed_state(TABLE, lambda key: 0, str, str)
        self._outages = Outages(ctx, RetryPolicy(first_wait_s=1, longest_wait_s=60))

    def run(self, ctx: SourceContext, collector: SourceCollector) -> SourceFinishType:
        if ctx.task_info.task_index:
            return self._stand_by(ctx, collector)
        # The connection may serve many epochs; somebody may have changed the table since the last one.
        self._is_checked = False
        while (message := self._outages.wait()) is None:
            try:
                has_more = self._read(ctx, collector)
            except ExternalError as error:
                self.disconnect()
                self._is_checked = False
                self._outages.failed(error)
                continue
            self._outages.succeeded()
            if not has_more and self._growing.has_end:
                return SourceFinishType.FINAL
            message = ctx.control() if has_more else self._wait(ctx, collector)
            if message is not None:
                break
        return message.finish_type

    def on_close(self, ctx: SourceContext) -> None:
        self.disconnect()

    def _stand_by(self, ctx: SourceContext, collector: SourceCollector) -> SourceFinishType:
        if self._growing.has_end:
            return SourceFinishType.FINAL
        collector.broadcast_watermark(Watermark.idle())
        while (message := ctx.wait(STAND_BY_SECONDS)) is None:
            pass
        return message.finish_type

    def _wait(self, ctx: SourceContext, collector: SourceCollector) -> ControlMessage | None:
        collector.broadcast_watermark(Watermark.idle())
        return ctx.wait(self._growing.poll_s)

    def _read(self, ctx: SourceContext, collector: SourceCollector) -> bool:
        """Read a batch; returns whether there may be more at once."""
        growing = self._growing
        with self.translating():
            self._check_columns(ctx)
            end = self._end() if growing.has_end else None
            if end == _NOTHING:
                return False
            position = self._state.get(POSITION)
            after = position[1:] if position is not None else growing.after or None
            limit = max(1, min(growing.batch_rows, ctx.rows_left() or 1 << 62))
            rows = self.read_page(after, end[1:] if end is not None else None, limit)
        if not rows.num_rows:
            return False
        last: str = rows.column(rows.num_columns - 1)[-1].as_py()
        for batch in rows.select(range(rows.num_columns - 1)).to_batches():
            collector.collect(pa.RecordBatch.from_arrays(batch.columns, schema=ctx.output_schema.schema))
        self._state.insert(POSITION, f"={last}")
        return True

    def _end(self) -> str:
        """The last value to read, found once: at the first start."""
        known = self._state.get(END)
        if known is None:
            last = self.read_end()
            known = f"={last}" if last is not None else _NOTHING
            self._state.insert(END, known)
        return known

    def _check_columns(self, ctx: OperatorContext) -> None:
        """Raises `DataError` where the columns are not those that were planned with."""
        if self._is_checked:
            return
        if not self.open_schema().equals(ctx.output_schema.schema):
            raise DataError(
                f"the columns of {self._growing.name} are not those that the pipeline was planned with: "
                "start it again to take them"
            )
        self._is_checked = True
