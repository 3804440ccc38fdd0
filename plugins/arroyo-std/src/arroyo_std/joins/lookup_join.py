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
    LookupTable,
    OperatorContext,
    Origin,
)
from arroyo_core.api.units import format_duration_us
from arroyo_core.api.updating import UPDATING_META
from arroyo_core.errors import ConfigError, DataError, ExternalError
from arroyo_std.joins.layout import LEFT, RIGHT, JoinLayout, JoinSettings
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
    """Looks every row up in a table that is read as a whole, and read again when it is too old.

    Keeps no state: what a row finds depends on when it is looked up.
    """

    def __init__(
        self,
        settings: JoinSettings,
        source: LookupTable,
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
        return self._stream(self._make_layout(inputs[0], schema), inputs[0])

    def guarantee_reason(self) -> str:
        return "every row comes once; what it is joined with depends on when the table is read"

    def display(self) -> DisplayableOperator:
        on = ", ".join(f"{pair.left} = {pair.right}" for pair in self._settings.on)
        fields = [("type", str(self._settings.type)), ("on", on), ("table", self._source.name())]
        if self._lookup is not None:
            fields.append(("lookup", str(self._lookup)))
        return DisplayableOperator(self.name(), [*fields, ("ttl", format_duration_us(self._ttl_us))])

    def on_start(self, ctx: OperatorContext) -> None:
        schema = PROCESS_CACHE.schema(self._source, now_us=ctx.clock.now_us(), ttl_us=self._ttl_us)
        self._layout = self._make_layout(ctx.input_schemas[0], schema)
        found = self._stream(self._layout, ctx.input_schemas[0])
        if not found.schema.equals(ctx.output_schema.schema):
            raise DataError(
                f"the columns of the table {self._source.name()!r} are not those that the pipeline was planned with: "
                "start it again to take them"
            )

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        side = self._layout.sides[RIGHT]
        loaded = PROCESS_CACHE.get(
            self._source,
            side.schema,
            side.keys,
            now_us=ctx.clock.now_us(),
            ttl_us=self._ttl_us,
            max_bytes=self._max_bytes,
        )
        emit(self._joined(batch, loaded.index), collector)

    def _joined(self, batch: pa.RecordBatch, index: LookupIndex) -> Iterator[pa.RecordBatch]:
        side = self._layout.sides[LEFT]
        rows = side.plain(batch)
        meta = [batch.column(UPDATING_META)] if side.is_updating else []
        keys = [rows.column(name) for name in side.keys]
        table_keys = self._layout.sides[RIGHT].keys
        has_match = np.zeros(rows.num_rows, dtype=np.bool_)
        for mine, theirs in index.find(keys).chunks(pairs_at_once(rows, index.rows)):
            left = pa.array(mine)
            wanted, found = shared_codes([key.take(left) for key in keys], index.take(table_keys, theirs))
            # Rows of the table have no NULL keys, so no NULL is equal to any.
            is_same = wanted == found
            if not is_same.all():
                mine, theirs = mine[is_same], theirs[is_same]
            has_match[mine] = True
            yield from self._layout.matched(
                rows, mine, index.rows, theirs, [each.take(pa.array(mine)) for each in meta]
            )
        if self._settings.type.keeps[LEFT] and not has_match.all():
            alone = pa.array(~has_match)
            yield self._layout.padded(LEFT, rows.filter(alone), [each.filter(alone) for each in meta])

    def _make_layout(self, stream: ArroyoSchema, table: pa.Schema) -> JoinLayout:
        meta = [stream.schema.field(UPDATING_META)] if UPDATING_META in stream.names else []
        return JoinLayout(self._settings, [stream, ArroyoSchema(table)], added=meta)

    def _stream(self, layout: JoinLayout, stream: ArroyoSchema) -> ArroyoSchema:
        """The input's event time and keys, under the names that their columns have now."""
        renamed = dict(zip(layout.columns[LEFT], layout.names[LEFT], strict=True))
        time = renamed[stream.timestamp_column] if stream.timestamp_column is not None else None
        keys = None if stream.key_columns is None else tuple(renamed[key] for key in stream.key_columns)
        return ArroyoSchema(layout.schema, time, keys)
