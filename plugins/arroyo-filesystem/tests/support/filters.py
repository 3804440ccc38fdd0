"""What `std.filter` keeps, which is what a `predicate` is held against."""

from __future__ import annotations

import pyarrow as pa
from arroyo_std.sql import Expression, compile_expressions

from arroyo_core.api import Registry


def kept(rows: pa.Table, predicate: str) -> pa.Table:
    """The rows for which the predicate is true."""
    expression = Expression(name="predicate", sql=predicate, field="predicate")
    compiled = compile_expressions([expression], rows.schema, Registry())
    batch = rows.combine_chunks().to_batches()[0]
    return rows.filter(compiled.evaluate(batch).column(0))
