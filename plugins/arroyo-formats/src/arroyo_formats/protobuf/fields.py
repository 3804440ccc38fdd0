"""Columns as fields can hold them: what cannot be written is found before anything is."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.errors import DataError
from arroyo_formats.columns import compact, null_mask
from arroyo_formats.protobuf.shape import Field, Kind, Label, Value


def to_fields(fields: Sequence[Field], columns: Sequence[pa.Array]) -> list[pa.Array]:
    """Columns of the fields' types, with the numbers of enums, and of times; raises `DataError`.

    A null is refused where a field cannot tell that it has no value: it would come back as a zero, or as empty.
    """
    return _message(fields, columns, None, "")


def _message(fields: Sequence[Field], columns: Sequence[pa.Array], hidden: pa.Array | None, at: str) -> list[pa.Array]:
    """`hidden` are places under a null parent, which are not written."""
    _check_oneofs(fields, columns, at)
    return [
        _field(field, column, hidden, f"{at}.{field.name}" if at else field.name)
        for field, column in zip(fields, columns, strict=True)
    ]


def _check_oneofs(fields: Sequence[Field], columns: Sequence[pa.Array], at: str) -> None:
    for oneof in {field.oneof for field in fields if field.oneof}:
        members = [(f.name, column) for f, column in zip(fields, columns, strict=True) if f.oneof == oneof]
        count = pc.cast(members[0][1].is_valid(), pa.int32())
        for _, column in members[1:]:
            count = pc.add(count, pc.cast(column.is_valid(), pa.int32()))
        too_many = pc.greater(count, 1)
        if pc.any(too_many).as_py():
            names = ", ".join(f"{at}.{name}" if at else name for name, _ in members)
            raise DataError(f"only one of {names} can be set, and in row {_first(too_many)} several are")


def _field(field: Field, values: pa.Array, hidden: pa.Array | None, at: str) -> pa.Array:
    if not field.has_presence:
        _refuse_nulls(values, hidden, at)
    if field.label is Label.ONE:
        return _value(field.value, values, at, hidden)
    values = compact(values)
    if field.label is Label.REPEATED:
        _refuse_nulls(values.values, None, f"{at}[]")
        items = _value(field.value, values.values, f"{at}[]", None)
        return pa.ListArray.from_arrays(values.offsets, items, mask=null_mask(values))
    _refuse_nulls(values.items, None, f"{at}{{}}")
    items = _value(field.value, values.items, f"{at}{{}}", None)
    return pa.MapArray.from_arrays(values.offsets, values.keys, items, mask=null_mask(values))


def _value(value: Value, values: pa.Array, at: str, hidden: pa.Array | None) -> pa.Array:
    match value.kind:
        case Kind.ENUM:
            return _numbers(value, values, at)
        case Kind.TIMESTAMP | Kind.DURATION:
            return values.cast(pa.int64())
        case Kind.MESSAGE if value.fields:
            mask = null_mask(values)
            inner = _message(value.fields, values.flatten(), mask if mask is not None else hidden, at)
            return pa.StructArray.from_arrays(inner, [field.name for field in value.fields], mask=mask)
        case _:
            return values


def _refuse_nulls(values: pa.Array, hidden: pa.Array | None, at: str) -> None:
    if not values.null_count:
        return
    is_wrong = values.is_null() if hidden is None else pc.and_not(values.is_null(), hidden)
    if pc.any(is_wrong).as_py():
        raise DataError(
            f"column {at!r} is null in row {_first(is_wrong)}, and its field cannot be: declare it `optional`"
        )


def _numbers(value: Value, values: pa.Array, at: str) -> pa.Array:
    names = [name for name, _ in value.numbers]
    numbers = pa.array([number for _, number in value.numbers], pa.int32())
    found = numbers.take(pc.index_in(values, pa.array(names, pa.string())))
    if found.null_count == values.null_count:
        return found
    return pa.array([_number(dict(value.numbers), name, at) for name in values.to_pylist()], pa.int32())


def _number(numbers: dict[str, int], name: str | None, at: str) -> int | None:
    """A number that the enum does not name is written as one: it may have been read."""
    if name is None or name in numbers:
        return None if name is None else numbers[name]
    try:
        number = int(name)
    except ValueError:
        number = 1 << 32
    if not -(2**31) <= number < 2**31 or str(number) != name:
        raise DataError(f"column {at!r} is {name!r}, which its enum does not have: {', '.join(numbers)}")
    return number


def _first(is_wrong: pa.Array) -> int:
    found: list[bool] = is_wrong.to_pylist()
    return found.index(True)
