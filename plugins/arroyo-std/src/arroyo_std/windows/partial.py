"""What stands before the shuffle to a window: partial aggregates of each batch."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from arroyo_core.api import ArrowCollector, ArrowOperator, ArroyoSchema, OperatorContext
from arroyo_std.windows.layout import WindowLayout
from arroyo_std.windows.times import Times
from arroyo_std.windows.windowed import drop_untimed, first_arrival


class PartialWindow(ArrowOperator):
    """Of each batch partial aggregates go on: rows of `output`, whose last column counts the rows of the input."""

    def __init__(self, name: str, layout: WindowLayout, output: ArroyoSchema) -> None:
        self._name = name
        self._layout = layout
        self._output = output

    @abstractmethod
    def aggregate(
        self, batch: pa.RecordBatch, ctx: OperatorContext, *, times: Times, arrivals: Times
    ) -> list[pa.Array]:
        """The columns of the partial aggregates of some rows, of which there is one at least."""

    def name(self) -> str:
        return self._name

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return self._output

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: OperatorContext) -> None:
        self._layout.plan.start()
        self._time_column = ctx.input_schemas[0].timestamp_column
        self._arrivals = first_arrival(ctx)

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        batch, times = drop_untimed(batch, self._time_column, ctx)
        if batch.num_rows == 0:
            return
        arrivals = np.arange(self._arrivals, self._arrivals + batch.num_rows)
        self._arrivals += batch.num_rows
        columns = self.aggregate(batch, ctx, times=times, arrivals=arrivals)
        collector.collect(pa.RecordBatch.from_arrays(columns, schema=self._output.schema))
