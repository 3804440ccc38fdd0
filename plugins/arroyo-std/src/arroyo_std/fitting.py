"""User functions by name, and the columns that may be given to one: those whose every value its parameters take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import pyarrow as pa

from arroyo_core.api import Registry
from arroyo_core.errors import ConfigError
from arroyo_core.udf import UserFunction
from arroyo_std.columns import check_column, nearest, normal_type
from arroyo_std.sql_functions import wrong_call

FunctionT = TypeVar("FunctionT", bound=UserFunction)


def check_arguments(
    function: UserFunction, columns: Sequence[str], schema: pa.Schema, *, fields: Sequence[str]
) -> None:
    """Raise `ConfigError` unless the function takes these columns; `fields` are their places in the config."""
    for name, field in zip(columns, fields, strict=True):
        check_column(name, schema.names, field=field)
    kinds = [normal_type(schema.field(name).type) for name in columns]
    wanted = [parameter.type for parameter in function.parameters]
    shown = wrong_call(function.signature, ", ".join(str(kind) for kind in kinds))
    if len(kinds) != len(wanted):
        raise ConfigError(shown, field=fields[0] if fields else None, value=list(columns))
    for name, field, given, kind in zip(columns, fields, kinds, wanted, strict=True):
        if not is_fitting(given, kind):
            raise ConfigError(shown, field=field, value=name)


def is_fitting(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether every value of one type is one of the other."""
    types = pa.types
    if given == wanted or types.is_null(given):
        return True
    if types.is_integer(given) and types.is_integer(wanted):
        bits = given.bit_width + (types.is_unsigned_integer(given) and types.is_signed_integer(wanted))
        return bits <= wanted.bit_width and not (types.is_signed_integer(given) and types.is_unsigned_integer(wanted))
    if types.is_floating(wanted):
        return bool(types.is_integer(given) or (types.is_floating(given) and given.bit_width <= wanted.bit_width))
    if types.is_timestamp(wanted):
        return bool(types.is_timestamp(given) or types.is_date(given))
    if types.is_list(given) and types.is_list(wanted):
        return is_fitting(given.value_type, wanted.value_type)
    pairs = [(types.is_string, types.is_large_string), (types.is_binary, types.is_large_binary)]
    return any((small(given) or large(given)) and (small(wanted) or large(wanted)) for small, large in pairs)


def find_function(name: str, kind: type[FunctionT], registry: Registry, *, decorator: str) -> FunctionT:
    """The user function of this name; raises `ConfigError` at `function` unless it is of this kind.

    `PluginError` where two distributions claim it.
    """
    found = registry.find_udf(name)
    if isinstance(found, kind):
        return found
    names = sorted(each.name for each in registry.udfs.values() if isinstance(each, kind))
    if found is not None:
        raise ConfigError(
            f"function {name!r} is not declared with {decorator}", field="function", value=name, allowed=names
        )
    raise ConfigError(
        f"no user function {name!r}", field="function", value=name, allowed=names, suggestion=nearest(name, names)
    )
