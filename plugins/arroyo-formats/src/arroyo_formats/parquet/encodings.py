"""Which encodings suit the columns of a Parquet file, judged by its first rows.

By default every column begins with a dictionary. Where values hardly come again, it is built, found too large and
thrown away, in every row group.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

#: Too few rows tell nothing, and cost nothing either.
MIN_ROWS = 1024
SAMPLE_ROWS = 16_384
#: Of the values, so many at most are different where a dictionary pays.
MAX_DISTINCT = 0.5
#: Numbers that differ little from one to the next need hardly more room without.
MAX_DISTINCT_NUMBERS = 0.0625

DELTA = "DELTA_BINARY_PACKED"


def encoding_options(rows: pa.Table) -> dict[str, Any]:
    """Arguments for `ParquetWriter`; none where its defaults are as good."""
    sample = rows.slice(0, SAMPLE_ROWS)
    if sample.num_rows < MIN_ROWS or any(pa.types.is_nested(field.type) for field in sample.schema):
        # A nested column is several, by names that only the file knows.
        return {}
    deltas = {
        field.name: DELTA
        for field in sample.schema
        if _is_whole(field.type) and _distinct(sample, field.name) > MAX_DISTINCT_NUMBERS
    }
    plain = {name for name in sample.schema.names if name not in deltas and _distinct(sample, name) > MAX_DISTINCT}
    dictionaries = [name for name in sample.schema.names if name not in deltas and name not in plain]
    return {"use_dictionary": dictionaries or False, "column_encoding": deltas or None}


def _is_whole(kind: pa.DataType) -> bool:
    """Whether Parquet keeps it as a whole number."""
    types = pa.types
    return any(test(kind) for test in (types.is_integer, types.is_timestamp, types.is_date, types.is_time))


def _distinct(sample: pa.Table, name: str) -> float:
    """The share of different values."""
    column = sample.column(name)
    if pa.types.is_dictionary(column.type) or pa.types.is_null(column.type):
        return 0.0
    count = int(pc.count_distinct(column, mode="all").as_py())
    return count / int(sample.num_rows)
