"""`std.key_by`: partitions a stream by the values of some columns."""

from __future__ import annotations

from collections.abc import Sequence, Set

import pyarrow as pa

from arroyo_core.api import ArrowCollector, ArrowOperator, ArroyoSchema, DisplayableOperator, OperatorContext
from arroyo_std.columns import check_column, check_unique


class KeyBy(ArrowOperator):
    """Asks for rows partitioned by the keys, and passes them on: the exchange before it does the work."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self._keys = keys

    def name(self) -> str:
        return "std.key_by"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        for position, key in enumerate(self._keys):
            check_column(key, inputs[0].names, field=f"keys[{position}]")
        check_unique(self._keys, field="keys")
        return inputs[0].with_keys(self._keys)

    def needed_columns(self, inputs: Sequence[ArroyoSchema], needed: Set[str]) -> Sequence[Set[str] | None]:
        return [needed | set(self._keys)]

    def routing_keys(self, inputs: Sequence[ArroyoSchema]) -> Sequence[tuple[str, ...] | None]:
        return [self._keys]

    def display(self) -> DisplayableOperator:
        return DisplayableOperator(self.name(), [("keys", ", ".join(self._keys))])

    def lives_on(self) -> bool:
        return True

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        collector.collect(batch)
