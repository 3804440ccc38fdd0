"""Values that their type does not have: found before rows are staged, since a commit would refuse them for ever."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from arroyo_core.errors import DataError

#: What is shown of a text, at most.
_SHOWN_BYTES = 60


def check_values(rows: pa.RecordBatch) -> None:
    """Raise `DataError` for a value that its type does not have; it names the column, and the value.

    Arrow does not look at what a function makes: a sum of decimals may have more digits than their precision. `rows`
    share no memory with rows that are not staged: their values would be looked at too.
    """
    try:
        rows.validate(full=True)
    except pa.ArrowInvalid:
        for name, column in zip(rows.schema.names, rows.columns, strict=True):
            _check_column(column, name)


def _check_column(column: pa.Array, name: str) -> None:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        for inner, values in _parts(column, name):
            _check_column(values, inner)
        raise DataError(
            f"column {name!r} has a value that is not of its type {column.type}: {_problem(column, error)}; "
            "make it fit, or NULL, before the sink"
        ) from error


def _problem(column: pa.Array, error: pa.ArrowInvalid) -> str:
    """What is wrong with the first such value; Arrow says it of most types, but not with the value as it is."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        text: bytes = _first_bad(column).cast(pa.large_binary())[0].as_py()
        return f"the text {text[:_SHOWN_BYTES]!r} is not UTF-8"
    if pa.types.is_decimal(kind):
        return f"{_first_bad(column)[0].as_py():f} has more than {kind.precision} digits"
    return str(error)


def _parts(column: pa.Array, name: str) -> Iterator[tuple[str, pa.Array]]:
    """The columns within one, also the values of rows that are NULL: they are staged as well."""
    kind = column.type
    if pa.types.is_struct(kind):
        for place in range(kind.num_fields):
            yield f"{name}.{kind.field(place).name}", column.field(place)
    elif pa.types.is_map(kind):
        yield name, column.keys
        yield name, column.items
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        yield name, column.values


def _first_bad(column: pa.Array) -> pa.Array:
    """Half of the values, then half of those, up to the one."""
    while len(column) > 1:
        half = column.slice(0, len(column) // 2)
        try:
            half.validate(full=True)
        except pa.ArrowInvalid:
            column = half
        else:
            column = column.slice(len(half))
    return column
