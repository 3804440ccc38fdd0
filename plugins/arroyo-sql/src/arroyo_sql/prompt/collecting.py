"""Rows of a query in this process: a sink that keeps them, in the place of `std.stdout`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    ConstructedOperator,
    OperatorConstructor,
    OperatorContext,
    Registry,
)
from arroyo_core.api.updating import IS_RETRACT, UPDATING_META

STDOUT = "std.stdout"


@dataclass(slots=True)
class Rows:
    """What a query has given so far. Beyond `limit` rows are counted only."""

    limit: int
    schema: pa.Schema | None = None
    batches: list[pa.RecordBatch] = field(default_factory=list)
    kept: int = 0
    dropped: int = 0
    is_enough: bool = False
    _stop: Callable[[], None] | None = None

    def stop_after(self, limit: int, stop: Callable[[], None]) -> None:
        """Call `stop` once there are so many rows; those that come until then are dropped."""
        self.limit = limit
        self._stop = stop

    def add(self, batch: pa.RecordBatch) -> None:
        if self._stop is not None and not self.is_enough and self.kept + batch.num_rows >= self.limit:
            self.is_enough = True
            self._stop()
        found = batch.slice(0, self.limit - self.kept)
        self.kept += found.num_rows
        self.dropped += batch.num_rows - found.num_rows
        if found.num_rows:
            self.batches.append(found)

    @property
    def is_updating(self) -> bool:
        return self.schema is not None and UPDATING_META in self.schema.names

    @property
    def columns(self) -> list[str]:
        names = self.schema.names if self.schema is not None else []
        return [name for name in names if name != UPDATING_META]

    def final(self) -> list[tuple[Any, ...]]:
        """The rows; of changing results those that were not taken back, in the order in which they first came."""
        if not self.is_updating:
            return list(self._rows())
        counts: dict[str, int] = {}
        rows: dict[str, tuple[Any, ...]] = {}
        for row, is_retract in self._changes():
            key = repr(row)
            rows.setdefault(key, row)
            counts[key] = counts.get(key, 0) + (-1 if is_retract else 1)
        return [rows[key] for key, count in counts.items() for _ in range(count)]

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        for batch in self.batches:
            yield from zip(*(batch.column(name).to_pylist() for name in self.columns), strict=True)

    def _changes(self) -> Iterator[tuple[tuple[Any, ...], bool]]:
        for batch in self.batches:
            flags = batch.column(UPDATING_META).field(IS_RETRACT).to_pylist()
            values = zip(*(batch.column(name).to_pylist() for name in self.columns), strict=True)
            yield from zip(values, map(bool, flags), strict=True)


class Collector(ArrowOperator):
    """Keeps every row. Only in the process that asks, and without restarts: a repeated epoch would come twice."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def name(self) -> str:
        return STDOUT

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        self._rows.schema = inputs[0].schema
        return inputs[0]

    def is_sink(self) -> bool:
        return True

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        self._rows.add(batch)


def collecting(registry: Registry, rows: Rows) -> Registry:
    """A copy of the registry in which `std.stdout` gives its rows to `rows`."""
    original = registry.constructors[STDOUT]

    class CollectorConstructor(OperatorConstructor[Any]):
        """Makes the sink that keeps rows; its config is that of the sink it stands for."""

        config_type = original.config_type
        inputs = (1, 1)
        is_sink = True

        def with_config(self, config: Any, registry: Registry) -> ConstructedOperator:
            return ConstructedOperator.from_operator(Collector(rows))

    return registry.with_constructor(STDOUT, CollectorConstructor())


def cell(value: Any) -> str:
    """A value as a table shows it."""
    return "NULL" if value is None else value if isinstance(value, str) else _text(value)


def _text(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.isoformat(sep=" ").removesuffix("+00:00")
        case date() | time():
            return value.isoformat()
        case bytes():
            return f"\\x{value.hex()}"
        case list() | tuple() | dict():
            return json.dumps(value, default=_text, ensure_ascii=False)
        case float() | Decimal():
            return str(value)
    return str(value)
