"""Times in text. Timestamps are with a zone, without one, or as numbers in the unit of the type.

Readers of Arrow accept one of these per column. Which one a file uses is found out when a block
fails, and then kept. Formats that a person declares come before all of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_formats.text.time_formats import TimeFormat

UTC = "UTC"


class Writing(StrEnum):
    """How the timestamps of a column are written."""

    ZONED = "zoned"
    NAIVE = "naive"
    NUMBER = "number"
    #: As text, in any way; all of these in one column.
    MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class TimeTexts:
    """How dates and timestamps are written as text, beside ISO 8601."""

    timestamp_formats: tuple[TimeFormat, ...] = ()
    date_formats: tuple[TimeFormat, ...] = ()
    #: Of timestamps without a zone.
    zone: str = UTC

    def formats_of(self, kind: pa.DataType) -> tuple[TimeFormat, ...]:
        if pa.types.is_timestamp(kind):
            return self.timestamp_formats
        return self.date_formats if pa.types.is_date(kind) else ()

    def formatted(self, column: pa.Array, kind: pa.DataType) -> pa.Array:
        """Texts in one of the formats, the first that fits, as dates or timestamps; null where none fits."""
        found = pa.nulls(len(column), kind)
        for each in self.formats_of(kind):
            is_left = pc.and_(column.is_valid(), found.is_null())
            if not pc.any(is_left, min_count=0).as_py():
                break
            found = pc.replace_with_mask(found, is_left, self._read(each, column.filter(is_left), kind))
        return found

    def zoned(self, column: pa.Array, kind: pa.DataType) -> pa.Array:
        """Timestamps without a zone as those they are in the zone of the texts."""
        if self.zone == UTC:
            return column.cast(kind)
        # Of a time that the clock shows twice, or never, when it is changed: the earlier.
        return pc.assume_timezone(column, self.zone, ambiguous="earliest", nonexistent="earliest").cast(kind)

    def _read(self, form: TimeFormat, texts: pa.Array, kind: pa.DataType) -> pa.Array:
        if pa.types.is_date(kind):
            return form.read(texts, "s").cast(pa.timestamp("s")).cast(kind)
        numbers = form.read(texts, kind.unit)
        return numbers.cast(kind) if form.has_zone else self.zoned(numbers.cast(pa.timestamp(kind.unit)), kind)


ISO = TimeTexts()


def physical_type(kind: pa.DataType, writing: Writing) -> pa.DataType:
    """The type to read a timestamp column as."""
    if writing is Writing.NAIVE:
        return pa.timestamp(kind.unit)
    if writing is Writing.NUMBER:
        return pa.int64()
    return pa.string() if writing is Writing.MIXED else kind


def to_timestamp(column: pa.Array, kind: pa.DataType, times: TimeTexts = ISO) -> pa.Array:
    """A column read as any physical type, as the timestamp it means; raises `ArrowInvalid`."""
    if pa.types.is_timestamp(column.type) and column.type.tz is None:
        return times.zoned(column, kind)
    if not pa.types.is_string(column.type):
        return column.cast(kind)
    if not times.timestamp_formats:
        return _iso_or_number(column, kind, times)
    found = times.formatted(column, kind)
    if found.null_count == column.null_count:
        return found
    rest = pc.if_else(found.is_valid(), pa.scalar(None, pa.string()), column)
    return pc.coalesce(found, _iso_or_number(rest, kind, times))


def _iso_or_number(column: pa.Array, kind: pa.DataType, times: TimeTexts) -> pa.Array:
    nothing = pa.scalar(None, pa.string())
    # Most columns are all of one kind, but for numbers.
    is_number = pc.ascii_is_decimal(column)
    has_numbers = pc.any(is_number).as_py()
    texts = pc.if_else(is_number, nothing, column) if has_numbers else column
    try:
        moments = _alike(texts, kind, times)
    except pa.ArrowInvalid:
        return _each_for_itself(column, kind, times)
    if not has_numbers:
        return moments
    return pc.coalesce(moments, pc.if_else(is_number, column, nothing).cast(pa.int64()).cast(kind))


def _alike(texts: pa.Array, kind: pa.DataType, times: TimeTexts) -> pa.Array:
    """Texts that all have a zone, or all have none."""
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        return times.zoned(texts.cast(pa.timestamp(kind.unit)), kind)


def _each_for_itself(column: pa.Array, kind: pa.DataType, times: TimeTexts) -> pa.Array:
    is_zoned = pc.match_substring_regex(column, r"([zZ]|[+-][0-9]{2}(:?[0-9]{2})?)$")
    # "2026-01-01" ends like an offset: only a time of day can have a zone.
    is_zoned = pc.and_(is_zoned, pc.match_substring(column, ":"))
    is_number = pc.match_substring_regex(column, r"^[-+]?[0-9]+$")
    nothing = pa.scalar(None, pa.string())
    zoned = pc.if_else(is_zoned, column, nothing).cast(kind)
    naive = pc.if_else(pc.or_(is_zoned, is_number), nothing, column).cast(pa.timestamp(kind.unit))
    naive = times.zoned(naive, kind)
    if not pc.any(is_number).as_py():
        return pc.coalesce(zoned, naive)
    return pc.coalesce(zoned, naive, pc.if_else(is_number, column, nothing).cast(pa.int64()).cast(kind))


def from_text(values: pa.Array, kind: pa.DataType, times: TimeTexts = ISO) -> pa.Array:
    """Values whose dates and times were read as text, also inside lists and structs; raises `ArrowInvalid`."""
    if values.type.equals(kind):
        return values
    if pa.types.is_timestamp(kind):
        return to_timestamp(values, kind, times)
    if pa.types.is_date(kind) and times.date_formats:
        found = times.formatted(values, kind)
        return pc.coalesce(found, pc.if_else(found.is_valid(), pa.scalar(None, pa.string()), values).cast(kind))
    if pa.types.is_time(kind):
        # Arrow makes no time of day from text, but a timestamp.
        moments = pc.binary_join_element_wise("1970-01-01T", values, "")
        return moments.cast(pa.timestamp(kind.unit)).cast(kind)
    if pa.types.is_struct(kind):
        pairs = zip(values.flatten(), kind, strict=True)
        children = [from_text(child, field.type, times) for child, field in pairs]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=values.is_null())
    if pa.types.is_list(kind):
        start, stop = values.offsets[0].as_py(), values.offsets[-1].as_py()
        items = from_text(values.values.slice(start, stop - start), kind.value_type, times)
        offsets = pc.subtract(values.offsets, start)
        return pa.ListArray.from_arrays(offsets, items, type=kind, mask=values.is_null())
    return pc.cast(values, kind)


def as_times(table: pa.Table, times: TimeTexts) -> pa.Schema:
    """The schema of a sample; a column of texts that are all timestamps, or all in a format of dates, has that type."""
    fields = []
    for field, column in zip(table.schema, table.columns, strict=True):
        kind = field.type
        if pa.types.is_string(kind) and column.null_count < len(column):
            kind = _time_type(column.combine_chunks(), times) or kind
        elif pa.types.is_timestamp(kind) and kind.unit == "ns" and _fits_microseconds(column):
            kind = pa.timestamp("us", UTC)
        fields.append(pa.field(field.name, kind))
    return pa.schema(fields)


def _time_type(column: pa.Array, times: TimeTexts) -> pa.DataType | None:
    tried: Sequence[pa.DataType] = [pa.timestamp("us", UTC), pa.timestamp("ns", UTC), pa.date32()]
    for kind in tried:
        found = times.formatted(column, kind)
        rest = column.filter(found.is_null()).drop_null()
        if not len(rest):
            return kind
        if pa.types.is_timestamp(kind) and _are_moments(rest, kind, times):
            return kind
    return None


def _fits_microseconds(column: pa.ChunkedArray) -> bool:
    try:
        column.cast(pa.timestamp("us", column.type.tz))
    except pa.ArrowInvalid:
        return False
    return True


def _are_moments(texts: pa.Array, kind: pa.DataType, times: TimeTexts) -> bool:
    """Whether all are a date and a time of day in ISO 8601: a date alone may be meant as such."""
    if not pc.all(pc.match_substring_regex(texts, r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}")).as_py():
        return False
    try:
        _iso_or_number(texts, kind, times)
    except pa.ArrowInvalid:
        return False
    return True
