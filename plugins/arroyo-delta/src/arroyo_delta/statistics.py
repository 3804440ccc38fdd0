"""Statistics of a data file, as the log of a table has them: readers leave files out by them.

A minimum may be less than any value, and a maximum greater; what is not known is left out.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Collection
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

#: As Delta Lake itself: the first columns, and so many characters of a text.
MAX_COLUMNS = 32
MAX_CHARACTERS = 32
#: Greater than every other character.
_GREATEST = "\U0010ffff"
_ENCODER = msgspec.json.Encoder(decimal_format="number")


def file_statistics(schema: pa.Schema, metadata: pq.FileMetaData, with_nan: Collection[str]) -> str:
    """The statistics of a closed file as JSON. Columns in `with_nan` have values that have no order."""
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    places = {metadata.schema.column(index).path: index for index in range(metadata.num_columns)}
    for field in [field for field in schema if not pa.types.is_nested(field.type)][:MAX_COLUMNS]:
        found = _column_statistics(metadata, places.get(field.name))
        if not found:
            continue
        if all(each.has_null_count for each in found):
            nulls[field.name] = sum(each.null_count for each in found)
        # A row group whose values are all null has no limits, and narrows none.
        limits = [each for each in found if each.has_min_max]
        is_whole = all(each.has_min_max or each.num_values == 0 for each in found)
        if not limits or not is_whole or field.name in with_nan or not _has_order(field.type):
            continue
        try:
            low, high = _low(min(each.min for each in limits)), _high(max(each.max for each in limits))
        except (ValueError, OverflowError):
            # A time that Python has not.
            continue
        if low is not None and high is not None:
            least[field.name], greatest[field.name] = low, high
    statistics = {
        "numRecords": metadata.num_rows,
        "minValues": least,
        "maxValues": greatest,
        "nullCount": nulls,
    }
    return _ENCODER.encode(statistics).decode()


def _column_statistics(metadata: pq.FileMetaData, place: int | None) -> list[pq.Statistics]:
    if place is None:
        return []
    groups = [metadata.row_group(index).column(place) for index in range(metadata.num_row_groups)]
    if not all(group.is_stats_set for group in groups):
        return []
    return [group.statistics for group in groups]


def _has_order(kind: pa.DataType) -> bool:
    return not (pa.types.is_boolean(kind) or pa.types.is_binary(kind))


def _low(value: Any) -> Any:
    if isinstance(value, str):
        return value[:MAX_CHARACTERS]
    return _plain(value)


def _high(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= MAX_CHARACTERS else value[:MAX_CHARACTERS] + _GREATEST
    return _plain(value)


def _plain(value: Any) -> Any:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case datetime.datetime():
            text = value.replace(tzinfo=None).isoformat(timespec="microseconds")
            return f"{text}Z" if value.tzinfo is not None else text
        case datetime.date():
            return value.isoformat()
        case int() | Decimal():
            return value
    return None
