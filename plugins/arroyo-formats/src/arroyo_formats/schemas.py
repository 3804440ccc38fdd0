"""Columns as a pipeline declares them: `name: type`, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import pyarrow as pa

from arroyo_core.errors import ConfigError
from arroyo_formats.type_names import ALLOWED, TypeNameError, parse_type


class DeclaredColumn(Protocol):
    """One column of a config: the message of a field `schema`."""

    name: str
    type: str


def read_schema(columns: Iterable[DeclaredColumn], *, field: str = "schema") -> pa.Schema | None:
    """The columns of the config field `field`, None where there are none; raises `ConfigError` with the path of one."""
    fields: list[pa.Field] = []
    for column in columns:
        place = f"{field}.{column.name}"
        if any(known.name == column.name for known in fields):
            raise ConfigError(f"column {column.name!r} is declared twice", field=place, value=column.name)
        try:
            fields.append(pa.field(column.name, parse_type(column.type)))
        except TypeNameError as error:
            raise ConfigError(
                str(error), field=place, value=column.type, allowed=ALLOWED, suggestion=error.suggestion
            ) from error
    return pa.schema(fields) if fields else None


def check_columns(schema: pa.Schema | None, check: Callable[[str, pa.DataType], None]) -> None:
    """Have every column checked, if there are any."""
    for field in schema if schema is not None else ():
        check(field.name, field.type)
