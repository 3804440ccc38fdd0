"""Times in text. Timestamps are with a zone, without one (then UTC), or as numbers in the unit of the type.

Readers of Arrow accept one of these per column. Which one a file uses is found out when a block
fails, and then kept.
"""

from __future__ import annotations

from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc


class Writing(StrEnum):
    """How the timestamps of a column are written."""

    ZONED = "zoned"
    NAIVE = "naive"
    NUMBER = "number"
    #: All of these in one column.
    MIXED = "mixed"


def physical_type(kind: pa.DataType, writing: Writing) -> pa.DataType:
    """The type to read a timestamp column as."""
    if writing is Writing.NAIVE:
        return pa.timestamp(kind.unit)
    if writing is Writing.NUMBER:
        return pa.int64()
    return pa.string() if writing is Writing.MIXED else kind


def to_timestamp(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column read as any physical type, as the timestamp it means; raises `ArrowInvalid`."""
    if not pa.types.is_string(column.type):
        return column.cast(kind)
    is_zoned = pc.match_substring_regex(column, r"([zZ]|[+-][0-9]{2}(:?[0-9]{2})?)$")
    # "2026-01-01" ends like an offset: only a time of day can have a zone.
    is_zoned = pc.and_(is_zoned, pc.match_substring(column, ":"))
    is_number = pc.match_substring_regex(column, r"^[-+]?[0-9]+$")
    nothing = pa.scalar(None, pa.string())
    zoned = pc.if_else(is_zoned, column, nothing).cast(kind)
    naive = pc.if_else(pc.or_(is_zoned, is_number), nothing, column).cast(pa.timestamp(kind.unit)).cast(kind)
    if not pc.any(is_number).as_py():
        return pc.coalesce(zoned, naive)
    return pc.coalesce(zoned, naive, pc.if_else(is_number, column, nothing).cast(pa.int64()).cast(kind))


def from_text(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values whose dates and times of day were read as text, also inside lists and structs; raises `ArrowInvalid`."""
    if values.type.equals(kind):
        return values
    if pa.types.is_time(kind):
        # Arrow makes no time of day from text, but a timestamp.
        moments = pc.binary_join_element_wise("1970-01-01T", values, "")
        return moments.cast(pa.timestamp(kind.unit)).cast(kind)
    if pa.types.is_struct(kind):
        children = [from_text(child, field.type) for child, field in zip(values.flatten(), kind, strict=True)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=values.is_null())
    if pa.types.is_list(kind):
        start, stop = values.offsets[0].as_py(), values.offsets[-1].as_py()
        items = from_text(values.values.slice(start, stop - start), kind.value_type)
        offsets = pc.subtract(values.offsets, start)
        return pa.ListArray.from_arrays(offsets, items, type=kind, mask=values.is_null())
    return pc.cast(values, kind)
