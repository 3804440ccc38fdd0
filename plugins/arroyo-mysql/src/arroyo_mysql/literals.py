"""Arrow columns as literals of SQL, in whole columns, and rows of them cut into statements.

All statements are UTF-8, and sessions take backslashes for what they are: see `connection.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from arroyo_connectors.texts import between, hex_texts, is_bytes, is_list, json_texts, large_text

from arroyo_core.errors import DataError
from arroyo_mysql.names import quoted

_YEARS = (pa.scalar(-62_135_596_800_000_000), pa.scalar(253_402_300_799_999_999))


def column_literals(column: pa.Array, name: str) -> pa.Array:
    """Each value as it stands in an INSERT; NULL where it is NULL."""
    kind = column.type
    if pa.types.is_null(kind):
        return column.cast(pa.large_string())
    if pa.types.is_boolean(kind):
        return column.cast(pa.int8()).cast(pa.large_string())
    if pa.types.is_integer(kind):
        return column.cast(pa.large_string())
    if is_bytes(kind):
        return hex_texts(column, "X'", "'")
    return between("'", _texts(column, name), "'")


def key_literals(column: pa.Array, name: str) -> pa.Array:
    """Each value as it is compared with a column: with a text a decimal is compared as a float."""
    found = column_literals(column, name)
    kind = column.type
    if not pa.types.is_decimal(kind):
        return found
    scale = max(kind.scale, 0)
    return between("cast(", found, f" as decimal({max(kind.precision - min(kind.scale, 0), scale)},{scale}))")


def row_literals(rows: pa.RecordBatch) -> pa.Array:
    """Each row as `(1,'a',NULL)`."""
    columns = [column_literals(column, name) for name, column in zip(rows.schema.names, rows.columns, strict=True)]
    return between("(", join_columns(columns, ","), ")")


@dataclass(frozen=True, slots=True)
class Condition:
    """Which rows have one of these keys: texts that stand between `before` and `after`."""

    texts: pa.Array
    before: str
    separator: str
    after: str


def key_condition(keys: pa.RecordBatch) -> Condition:
    """What is true for rows of any of these keys, in a form for which the server uses an index."""
    names = keys.schema.names
    columns = [key_literals(column, name) for name, column in zip(names, keys.columns, strict=True)]
    if len(names) == 1:
        return Condition(columns[0], f"{quoted(names[0])} in (", ",", ")")
    equal = [between(f"{quoted(name)}=", column, "") for name, column in zip(names, columns, strict=True)]
    return Condition(between("(", join_columns(equal, " and "), ")"), "(", " or ", ")")


def join_columns(columns: list[pa.Array], separator: str) -> pa.Array:
    """Row by row one text; NULL is written as such."""
    return pc.binary_join_element_wise(
        *columns, large_text(separator), null_handling="replace", null_replacement="NULL"
    )


def statements(texts: pa.Array, before: str, separator: str, after: str, limit: int, rows: int) -> Iterator[bytes]:
    """The texts in statements of at most `limit` bytes and so many rows.

    Raises `DataError` for one that is larger by itself: the server would end the connection.
    """
    frame = len(before.encode()) + len(after.encode())
    sizes = pc.binary_length(texts).to_numpy(zero_copy_only=False).astype(np.int64) + len(separator)
    if len(sizes) and int(sizes.max()) + frame > limit:
        raise DataError(
            f"a row is {int(sizes.max())} bytes in SQL, and the server takes statements of {limit}: raise its "
            "max_allowed_packet"
        )
    ends = np.cumsum(sizes)
    first = 0
    while first < len(texts):
        used = int(ends[first - 1]) if first else 0
        last = min(int(np.searchsorted(ends, used + limit - frame, side="right")), first + rows)
        part = pa.LargeListArray.from_arrays(pa.array([0, last - first], pa.int64()), texts.slice(first, last - first))
        yield b"".join((before.encode(), pc.binary_join(part, large_text(separator))[0].as_buffer(), after.encode()))
        first = last


def check_values(rows: pa.RecordBatch) -> None:
    """Raise `DataError` for values that no column holds: NaN and infinities, and times beyond the years 1 to 9999."""
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        _check_column(column, name)


def _check_column(column: pa.Array, name: str) -> None:
    kind = column.type
    if pa.types.is_floating(kind):
        wide = column if not pa.types.is_float16(kind) else column.cast(pa.float32())
        bad = pc.invert(pc.is_finite(wide)).fill_null(False)
        if bad.true_count:
            raise DataError(
                f"column {name!r} has the value {wide.filter(bad)[0].as_py()}, which MySQL has not: make it NULL with "
                "std.project, or leave the row out"
            )
    elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        _check_years(column, name)
    elif is_list(kind):
        _check_column(column.flatten(), name)
    elif pa.types.is_map(kind):
        _check_column(column.items, name)
    elif pa.types.is_struct(kind):
        for field, values in zip(kind, column.flatten(), strict=True):
            _check_column(values, f"{name}.{field.name}")


def _check_years(column: pa.Array, name: str) -> None:
    if column.null_count == len(column):
        return
    kind = column.type
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
    per_value = 86_400 if pa.types.is_date32(kind) else 1
    unit = "ms" if pa.types.is_date64(kind) else getattr(kind, "unit", "s") if pa.types.is_timestamp(kind) else "s"
    numbers = column.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date32(kind) else column.cast(pa.int64())
    ends = pc.min_max(numbers).as_py()
    least, greatest = (ends[end] * per_value // per_second[unit] for end in ("min", "max"))
    if least < _YEARS[0].as_py() // 10**6 or greatest > _YEARS[1].as_py() // 10**6:
        raise DataError(f"column {name!r} has a time that is not within the years 1 to 9999, which MySQL has not")


def _texts(column: pa.Array, name: str) -> pa.Array:
    """What stands between the quotes."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _escaped(column)
    if pa.types.is_floating(kind):
        # A float as a double has all its digits: the shortest text of it could be rounded twice.
        wide = column.cast(pa.float32()) if pa.types.is_float16(kind) else column
        return wide.cast(pa.float64()).cast(pa.large_string())
    if pa.types.is_decimal(kind):
        if kind.scale < 0:
            column = column.cast(pa.decimal256(kind.precision - kind.scale, 0))
        return column.cast(pa.string()).cast(pa.large_string())
    if pa.types.is_timestamp(kind):
        # Those with a zone count in UTC, which is what remains without it.
        return column.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.timestamp("us")).cast(pa.large_string())
    if pa.types.is_time(kind):
        return column.cast(pa.time64("us"), safe=False).cast(pa.large_string())
    if pa.types.is_date(kind):
        return column.cast(pa.date32()).cast(pa.large_string())
    if is_list(kind) or pa.types.is_struct(kind) or pa.types.is_map(kind):
        return _escaped(json_texts(column, name))
    raise DataError(f"column {name!r} is {kind}, which MySQL has no type for")


def _escaped(texts: pa.Array) -> pa.Array:
    large = texts.cast(pa.large_string())
    for what, written in (("\\", "\\\\"), ("'", "''")):
        large = pc.replace_substring(large, what, written)
    return large
