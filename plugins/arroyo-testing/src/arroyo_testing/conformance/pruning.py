"""Takes columns away, as the planner does where an operator says that it does not need them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from dataclasses import replace

from arroyo_testing.conformance.cases import Stream
from arroyo_testing.conformance.rows import Outcome, Row


def pruned(stream: Stream, columns: Set[str]) -> Stream:
    """The stream with these columns only; event time and keys stay, and at least one column."""
    wanted = {*columns, stream.timestamp_column, *(stream.key_columns or ())}
    names = [name for name in stream.rows.schema.names if name in wanted] or stream.rows.schema.names[:1]
    return replace(stream, rows=stream.batch.select(names))


def projected(outcome: Outcome, columns: Set[str]) -> Outcome:
    """The rows of the main output with these columns only."""
    counted: Counter[Row] = Counter()
    for row, count in outcome.rows.get(None, Counter()).items():
        counted[tuple(cell for cell in row if cell[0] in columns)] += count
    return Outcome({None: counted})
