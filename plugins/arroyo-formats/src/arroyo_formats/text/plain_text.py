"""Values as the text formats write them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.errors import DataError


def utc_naive(column: pa.Array) -> pa.Array:
    """A timestamp as UTC without a zone, whatever its zone; one without a zone counts as UTC."""
    return column.cast(pa.int64()).cast(pa.timestamp(column.type.unit))


def iso_seconds(column: pa.Array) -> pa.Array:
    """Timestamps in UTC as `2026-01-31T23:59:59.123456`, without the `Z` that belongs behind it."""
    return pc.utf8_replace_slice(utc_naive(column).cast(pa.string()), start=10, stop=11, replacement="T")


def iso_timestamps(column: pa.Array) -> pa.Array:
    """Timestamps as `2026-01-31T23:59:59.123456Z`."""
    return pc.binary_join_element_wise(iso_seconds(column), "Z", "")


def to_plain_text(column: pa.Array, name: str) -> tuple[pa.Array, pa.Field]:
    """A column, and its field, as the CSV writer takes it: dictionaries decoded, timestamps in UTC and bytes as text.

    Raises `DataError` for bytes that are not UTF-8.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        return to_plain_text(column.dictionary_decode(), name)
    if pa.types.is_nested(kind):
        raise TypeError(f"no text for {kind}")
    if pa.types.is_timestamp(kind):
        # As the writer would, which takes twenty times as long where there is a zone.
        column = pc.binary_join_element_wise(utc_naive(column).cast(pa.string()), "Z", "")
    if pa.types.is_float16(kind):
        column = column.cast(pa.float32())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        try:
            column = column.cast(pa.large_string() if pa.types.is_large_binary(kind) else pa.string())
        except pa.ArrowInvalid as error:
            raise DataError(f"column {name!r}: csv cannot hold bytes that are not UTF-8") from error
    return column, pa.field(name, column.type)
