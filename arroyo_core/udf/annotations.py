"""From the annotations of a user function to Arrow types."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from arroyo_core.errors import UdfDeclarationError
from arroyo_core.udf.user_function import Parameter

_PLAIN: dict[object, pa.DataType] = {
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bool: pa.bool_(),
    bytes: pa.binary(),
    datetime: pa.timestamp("us", tz="UTC"),
    date: pa.date32(),
}

#: Classes of arrays that have but one type.
_ARRAYS: dict[object, pa.DataType] = {
    pa.BooleanArray: pa.bool_(),
    pa.Int8Array: pa.int8(),
    pa.Int16Array: pa.int16(),
    pa.Int32Array: pa.int32(),
    pa.Int64Array: pa.int64(),
    pa.UInt8Array: pa.uint8(),
    pa.UInt16Array: pa.uint16(),
    pa.UInt32Array: pa.uint32(),
    pa.UInt64Array: pa.uint64(),
    pa.FloatArray: pa.float32(),
    pa.DoubleArray: pa.float64(),
    pa.StringArray: pa.string(),
    pa.LargeStringArray: pa.large_string(),
    pa.BinaryArray: pa.binary(),
    pa.LargeBinaryArray: pa.large_binary(),
    pa.Date32Array: pa.date32(),
}

_ALLOWED = "int, float, str, bool, bytes, datetime, date, list[...] or one of these with | None"
_STATES = f"{_ALLOWED}, dict[...] or tuple[...]"

#: A type as Arrow has it, and whether it may be null.
Typed = tuple[pa.DataType, bool]


def read_hints(function: Callable[..., object], *, udf: str) -> dict[str, Any]:
    """The annotations as objects, also where they are texts; raises `UdfDeclarationError` where one has no meaning."""
    try:
        return typing.get_type_hints(function)
    except Exception as error:
        raise UdfDeclarationError(
            f"UDF {udf!r}: an annotation cannot be resolved: {error}; import it at the top of the module, or give "
            "'arguments' and 'returns' and leave the annotations out"
        ) from error


def is_array(annotation: object) -> bool:
    """Whether the annotation asks for whole columns: `pa.Array` or a subclass, perhaps with `| None`."""
    kind, _ = _without_none(annotation)
    return isinstance(kind, type) and issubclass(kind, pa.Array | pa.ChunkedArray)


def positional(function: Callable[..., object], *, udf: str, skip: int = 0) -> list[inspect.Parameter]:
    """The parameters that SQL fills, without the first `skip`; raises `UdfDeclarationError` for what it cannot fill."""
    found = list(inspect.signature(function).parameters.values())
    for each in found:
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            raise UdfDeclarationError(
                f"UDF {udf!r}, parameter {each.name!r}: a function has a fixed number of parameters; name each of them"
            )
        if each.kind is each.KEYWORD_ONLY and each.default is each.empty:
            raise UdfDeclarationError(f"UDF {udf!r}, parameter {each.name!r}: arguments are given by position only")
    return [each for each in found if each.kind is not each.KEYWORD_ONLY][skip:]


def read_parameters(
    function: Callable[..., object],
    *,
    udf: str,
    arguments: Sequence[pa.DataType] | None,
    skip: int = 0,
    has_arrays: bool = False,
) -> tuple[Parameter, ...]:
    """The parameters of a function, by its annotations, or by explicit Arrow types where there are such.

    `skip` leaves out the first ones (`self` is none of them). With `has_arrays` every parameter takes whole
    columns, with their nulls.
    """
    named = positional(function, udf=udf, skip=skip)
    if arguments is not None and len(arguments) != len(named):
        raise UdfDeclarationError(
            f"UDF {udf!r}: 'arguments' has {len(arguments)} types for {len(named)} parameters "
            f"({', '.join(each.name for each in named)})"
        )
    hints = read_hints(function, udf=udf)
    found = []
    for place, each in enumerate(named):
        where = f"UDF {udf!r}, parameter {each.name!r}"
        explicit = None if arguments is None else arguments[place]
        kind, is_nullable = resolve(hints.get(each.name), where=where, explicit=explicit, option="arguments")
        found.append(Parameter(name=each.name, type=kind, is_nullable=is_nullable or has_arrays))
    return tuple(found)


def resolve(
    annotation: object, *, where: str, explicit: pa.DataType | None, option: str, is_state: bool = False
) -> Typed:
    """The type that was given explicitly as `option`, or else the annotation's; nullable only by annotation."""
    if explicit is not None:
        if not isinstance(explicit, pa.DataType):
            raise UdfDeclarationError(f"{where}: {option!r} takes Arrow types such as pa.int64(), not {explicit!r}")
        return explicit, _without_none(annotation)[1]
    if annotation is None:
        raise UdfDeclarationError(f"{where}: has no annotation; annotate it, or give {option!r}")
    return arrow_type(annotation, where=where, option=option, is_state=is_state)


def arrow_type(annotation: object, *, where: str, option: str, is_state: bool = False) -> Typed:
    """The Arrow type for an annotation, and whether it allows None.

    Raises `UdfDeclarationError`, which begins with `where` and names `option` as the way out.
    """
    kind, is_nullable = _without_none(annotation)
    if isinstance(kind, pa.DataType):
        return kind, is_nullable
    found = _PLAIN.get(kind) or _ARRAYS.get(kind)
    if found is not None:
        return found, is_nullable
    return _nested_type(kind, where=where, option=option, is_state=is_state), is_nullable


def _nested_type(kind: object, *, where: str, option: str, is_state: bool) -> pa.DataType:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is list and len(inner) == 1:
        return pa.list_(arrow_type(inner[0], where=where, option=option)[0])
    if is_state and origin is dict and len(inner) == 2:
        key, value = (arrow_type(each, where=where, option=option)[0] for each in inner)
        return pa.map_(key, value)
    if is_state and origin is tuple and inner and ... not in inner:
        kinds = [arrow_type(each, where=where, option=option)[0] for each in inner]
        return pa.struct([pa.field(f"_{place}", each) for place, each in enumerate(kinds)])
    if is_array(kind):
        raise UdfDeclarationError(f"{where}: {_shown(kind)} does not tell the type of its values; give {option!r}")
    if kind is Decimal:
        raise UdfDeclarationError(
            f"{where}: Decimal does not tell precision and scale; give {option!r} with pa.decimal128(precision, scale)"
        )
    allowed = _STATES if is_state else _ALLOWED
    raise UdfDeclarationError(f"{where}: no Arrow type for {_shown(kind)}; use {allowed}, or give {option!r}")


def _without_none(annotation: object) -> tuple[Any, bool]:
    """The annotation without `| None`, and whether it had that. Other unions stay what they are."""
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return annotation, False
    inner = [each for each in typing.get_args(annotation) if each is not type(None)]
    is_nullable = len(inner) < len(typing.get_args(annotation))
    return (inner[0] if len(inner) == 1 and is_nullable else annotation), is_nullable


def _shown(kind: object) -> str:
    return kind.__name__ if isinstance(kind, type) and typing.get_origin(kind) is None else str(kind)
