"""`std.lookup_join`: adds the columns of a small table to the rows of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    DisplayableOperator,
    KeyedLookupTable,
    LookupTable,
    OperatorContext,
    Origin,
)
from arroyo_core.api.units import format_duration_us
from arroyo_core.api.updating import UPDATING_META
from arroyo_core.errors import ConfigError, DataError, ExternalError
from arroyo_std.aggregates.groups import Groups
from arroyo_std.joins.key_cache import PROCESS_KEYS
from arroyo_std.joins.layout import LEFT, RIGHT, JoinLayout, JoinSettings, JoinType
from arroyo_std.joins.lookup_table import PROCESS_CACHE, LookupIndex
from arroyo_std.joins.pairs import pairs_at_once, shared_codes
from arroyo_std.joins.timed import emit


@dataclass(frozen=True, slots=True)
class NamedLookup:
    """What reads a table, and the distribution that brought it."""

    name: str
    origin: Origin

    def __str__(self) -> str:
        return f"{self.name} of {self.origin}"


class LookupJoin(ArrowOperator):
    """Looks every row up in a table that is read as a whole, or asked for the keys of a batch, and again when too old.

    Keeps no state: what a row finds depends on when it is looked up.
    """

    def __init__(
        self,
        settings: JoinSettings,
        source: LookupTable | KeyedLookupTable,
        *,
        max_bytes: int,
        ttl_us: int,
        lookup: NamedLookup | None = None,
    ) -> None:
        """`lookup` is what reads a table that is not in files."""
        self._settings = settings
        self._lookup = lookup
        self._source = source
        self._max_bytes = max_bytes
        self._ttl_us = ttl_us

    def name(self) -> str:
        return "std.lookup_join"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        try:
            schema = self._source.schema()
        except ConfigError as error:
            if self._lookup is None:
                raise
            raise error.within("table.config") from error
        except ExternalError as error:
            field = "table.config" if self._lookup else "table.path"
            raise ConfigError(error.message, field=field, value=self._source.name()) from error
        layout = self._make_layout(inputs[0], schema)
        if self._settings.condition is not None:
            self._settings.condition.check(layout)
        if isinstance(self._source, KeyedLookupTable):
            try:
                self._source.check_keys(layout.sides[RIGHT].keys)
            except ConfigError as error:
                raise ConfigError(error.message, field="on", allowed=error.allowed) from error
        return self._stream(layout, inputs[0])

    def guarantee_reason(self) -> str:
        return "every row comes once; what it is joined with depends on when the table is read"

    def display(self) -> DisplayableOperator:
        on = ", ".join(f"{pair.left} = {pair.right}" for pair in self._settings.on)
        fields = [("type", str(self._settings.type)), ("on", on), ("table", self._source.name())]
        if self._settings.condition is not None:
            fields.append(("condition", self._settings.condition.sql))
        if self._lookup is not None:
            fields.append(("lookup", str(self._lookup)))
        return DisplayableOperator(self.name(), [*fields, ("ttl", format_duration_us(self._ttl_us))])

    def on_start(self, ctx: OperatorContext) -> None:
        schema = PROCESS_CACHE.schema(self._source, now_us=ctx.clock.now_us(), ttl_us=self._ttl_us)
        self._layout = self._make_layout(ctx.input_schemas[0], schema)
        condition = self._settings.condition
        self._condition = condition.start(self._layout) if condition is not None else None
        found = self._stream(self._layout, ctx.input_schemas[0])
        if not found.schema.equals(ctx.output_schema.schema):
            raise DataError(
                f"the columns of the table {self._source.name()!r} are not those that the pipeline was planned with: "
                "start it again to take them"
            )

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        emit(self._joined(batch, self._index(batch, ctx)), collector)

    def _index(self, batch: pa.RecordBatch, ctx: OperatorContext) -> LookupIndex:
        """The rows of the table, or those of them that this batch may find."""
        side, now_us = self._layout.sides[RIGHT], ctx.clock.now_us()
        if isinstance(self._source, KeyedLookupTable):
            found = PROCESS_KEYS.find(
                self._source,
                self._distinct_keys(batch),
                side.schema,
                now_us=now_us,
                ttl_us=self._ttl_us,
                max_bytes=self._max_bytes,
            )
            return LookupIndex(found, side.keys)
        return PROCESS_CACHE.get(
            self._source, side.schema, side.keys, now_us=now_us, ttl_us=self._ttl_us, max_bytes=self._max_bytes
        ).index

    def _distinct_keys(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The keys of the batch under the names of the table's columns, each once; a NULL equals nothing."""
        stream, table = self._layout.sides
        rows = stream.plain(batch)
        is_null = stream.null_keys(rows)
        if is_null is not None:
            rows = rows.filter(pa.array(~is_null))
        columns = [rows.column(name) for name in stream.keys]
        keys = pa.RecordBatch.from_arrays(columns, names=list(table.keys))
        return keys.take(pa.array(Groups.of_columns(columns, rows.num_rows).first_rows()))

    def _joined(self, batch: pa.RecordBatch, index: LookupIndex) -> Iterator[pa.RecordBatch]:
        side = self._layout.sides[LEFT]
        rows = side.plain(batch)
        meta = [batch.column(UPDATING_META)] if side.is_updating else []
        keys = [rows.column(name) for name in side.keys]
        table_keys = self._layout.sides[RIGHT].keys
        join_type = self._settings.type
        has_match = np.zeros(rows.num_rows, dtype=np.bool_)
        for mine, theirs in index.find(keys).chunks(pairs_at_once(rows, index.rows)):
            left = pa.array(mine)
            wanted, found = shared_codes([key.take(left) for key in keys], index.take(table_keys, theirs))
            # Rows of the table have no NULL keys, so no NULL is equal to any.
            is_same = wanted == found
            if not is_same.all():
                mine, theirs = mine[is_same], theirs[is_same]
            if self._condition is None and join_type.is_filter:
                has_match[mine] = True
                continue
            added = [each.take(pa.array(mine)) for each in meta]
            for pairs, found_rows, _ in self._layout.matching(rows, mine, index.rows, theirs, added, self._condition):
                has_match[found_rows] = True
                if not join_type.is_filter:
                    yield pairs
        is_sent = has_match if join_type is JoinType.SEMI else ~has_match
        if join_type.asks[LEFT] and is_sent.any():
            alone = pa.array(is_sent)
            yield self._layout.padded(LEFT, rows.filter(alone), [each.filter(alone) for each in meta])

    def _make_layout(self, stream: ArroyoSchema, table: pa.Schema) -> JoinLayout:
        meta = [stream.schema.field(UPDATING_META)] if UPDATING_META in stream.names else []
        return JoinLayout(self._settings, [stream, ArroyoSchema(table)], added=meta)

    def _stream(self, layout: JoinLayout, stream: ArroyoSchema) -> ArroyoSchema:
        """The input's event time and keys, under the names that their columns have now."""
        names = layout.columns[LEFT] if layout.type.is_filter else layout.names[LEFT]
        renamed = dict(zip(layout.columns[LEFT], names, strict=True))
        time = renamed[stream.timestamp_column] if stream.timestamp_column is not None else None
        keys = None if stream.key_columns is None else tuple(renamed[key] for key in stream.key_columns)
        return ArroyoSchema(layout.schema, time, keys)
