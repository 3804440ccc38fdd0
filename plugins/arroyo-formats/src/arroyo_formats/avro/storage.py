"""What storage means: from what decoders make to columns, and back to what encoders take."""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.errors import DataError
from arroyo_formats.avro.arrow_types import arrow_type
from arroyo_formats.avro.schema import Array, Enum, Fixed, Map, Node, Record, Scalar, Union, members
from arroyo_formats.columns import Column, Step, attempt, cast, compact, flagged, null_mask

_DAY = {"time-millis": 86_400_000, "time-micros": 86_400_000_000}
_EXACT = decimal.Context(prec=100)


def from_storage(node: Scalar | Fixed) -> Step:
    """Takes storage of one type to its column."""
    kind = arrow_type(node)
    if node.logical == "decimal":
        return lambda values: attempt(
            values, lambda part: _decimals(part, kind), kind, f"a number of more than {node.precision} digits"
        )
    if isinstance(node, Fixed) or node.kind not in ("int", "long"):
        return Column
    if node.logical in _DAY:
        day = _DAY[node.logical]
        small = pa.int32() if node.kind == "int" else pa.int64()

        def time_of_day(values: pa.Array) -> Column:
            outside = pc.or_(pc.less(values, 0), pc.greater_equal(values, day))
            bad = flagged(outside, "a time that is in no day")
            if bad:
                values = pc.if_else(outside, pa.scalar(None, pa.int64()), values)
            return Column(values.cast(small).cast(kind), bad)

        return time_of_day
    if node.kind == "int":

        def narrow(values: pa.Array) -> Column:
            column = cast(values, pa.int32())
            return Column(column.values.cast(kind), column.bad)

        return narrow
    return lambda values: Column(values.cast(kind))


def _decimals(values: pa.Array, kind: pa.DataType) -> pa.Array:
    scale = -kind.scale
    numbers = (None if value is None else int.from_bytes(value, "big", signed=True) for value in values.to_pylist())
    return pa.array([None if number is None else _EXACT.scaleb(number, scale) for number in numbers], kind)


def default_value(node: Node, default: Any) -> Any:
    """The default of a field, given as JSON has it, as storage has it; raises `ValueError` where it is none."""
    match node:
        case Union():
            return _union_default(node, default)
        case Scalar(kind="null"):
            return _checked(default, default is None)
        case Scalar(kind="bytes") | Fixed():
            return _checked(default, isinstance(default, str)).encode("latin-1")
        case Scalar(kind="boolean"):
            return _checked(default, isinstance(default, bool))
        case Scalar(kind="int" | "long"):
            return _checked(default, isinstance(default, int) and not isinstance(default, bool))
        case Scalar(kind="float" | "double"):
            return float(_checked(default, isinstance(default, int | float) and not isinstance(default, bool)))
        case Scalar():
            return _checked(default, isinstance(default, str))
        case Enum():
            return _checked(default, default in node.symbols)
        case Array():
            return [default_value(node.items, each) for each in _checked(default, isinstance(default, list))]
        case Map():
            found = _checked(default, isinstance(default, dict))
            return [(key, default_value(node.values, value)) for key, value in found.items()]
        case Record():
            return _record_default(node, _checked(default, isinstance(default, dict)))


def _union_default(node: Union, default: Any) -> Any:
    values, _ = members(node)
    for branch in node.branches:
        try:
            found = default_value(branch, default)
        except (ValueError, TypeError):
            continue
        return {f"member{values.index(branch)}": found} if len(values) > 1 and default is not None else found
    raise ValueError(f"{default!r} is of none of its types")


def _record_default(node: Record, default: dict[str, Any]) -> dict[str, Any]:
    return {field.name: default_value(field.type, default.get(field.name, field.default)) for field in node.fields}


def _checked(default: Any, is_right: bool) -> Any:
    if not is_right:
        raise ValueError(f"{default!r} is none")
    return default


def to_storage(node: Node, values: pa.Array, at: str, hidden: pa.Array | None = None) -> pa.Array:
    """Values of the type's column as storage; raises `DataError` for one that the type cannot hold.

    `hidden` are places under a null parent, which are not written.
    """
    inner, takes_null = members(node)
    if values.null_count and not takes_null:
        is_wrong = values.is_null() if hidden is None else pc.and_not(values.is_null(), hidden)
        if pc.any(is_wrong).as_py():
            raise DataError(f"column {at!r} is null in row {_first(is_wrong)}, and the schema does not allow that")
    (only,) = inner or (Scalar("null"),)
    match only:
        case Scalar(logical="decimal") | Fixed(logical="decimal"):
            return _encoded_decimals(only, values, at)
        case Scalar(kind="int" | "long"):
            return _whole(values).cast(pa.int64())
        case Scalar():
            return values
        case Fixed():
            if pc.any(pc.not_equal(pc.binary_length(values), only.size)).as_py():
                raise DataError(f"column {at!r} has values that are not {only.size} bytes long")
            return values
        case Enum():
            return _symbols(only, values, at)
        case Array():
            values = compact(values)
            items = to_storage(only.items, values.values, f"{at}[]")
            return pa.ListArray.from_arrays(values.offsets, items, mask=null_mask(values))
        case Map():
            values = compact(values)
            items = to_storage(only.values, values.items, f"{at}{{}}")
            return pa.MapArray.from_arrays(values.offsets, values.keys, items, mask=null_mask(values))
        case Record():
            mask = null_mask(values)
            columns = zip(only.fields, values.flatten(), strict=True)
            arrays = [to_storage(field.type, column, f"{at}.{field.name}", mask) for field, column in columns]
            return pa.StructArray.from_arrays(arrays, [field.name for field in only.fields], mask=mask)
        case Union():
            raise AssertionError("unreachable: a union has no unions in it")


def _whole(values: pa.Array) -> pa.Array:
    """Dates and times as numbers."""
    kind = values.type
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return values.cast(pa.int32())
    return values


def _symbols(node: Enum, values: pa.Array, at: str) -> pa.Array:
    unknown = pc.invert(pc.is_in(values, pa.array([*node.symbols, None], pa.string())))
    if pc.any(unknown).as_py():
        row = _first(unknown)
        raise DataError(f"column {at!r} is {values[row].as_py()!r} in row {row}, which enum {node.name} does not have")
    return values


def _encoded_decimals(node: Scalar | Fixed, values: pa.Array, at: str) -> pa.Array:
    size = node.size if isinstance(node, Fixed) else None
    try:
        return pa.array([_decimal_bytes(value, node.scale, size) for value in values.to_pylist()], pa.binary())
    except OverflowError as error:
        raise DataError(f"column {at!r} has a number that does not fit {size} bytes") from error


def _decimal_bytes(value: decimal.Decimal | None, scale: int, size: int | None) -> bytes | None:
    if value is None:
        return None
    number = int(value.scaleb(scale, _EXACT))
    return number.to_bytes(size or (8 + (number + (number < 0)).bit_length()) // 8, "big", signed=True)


def _first(is_wrong: Any) -> int:
    found: Sequence[bool] = is_wrong.to_pylist()
    return found.index(True)
