"""The columns that an operator groups by, and the names of its results."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa

from arroyo_core.api import ArroyoSchema
from arroyo_core.errors import ConfigError
from arroyo_std.aggregates.registry import AggregateSpec
from arroyo_std.columns import check_column, check_unique, normal_type


def key_fields(keys: Sequence[str], stream: ArroyoSchema) -> list[pa.Field]:
    """The fields of the key columns, in plain types; raises `ConfigError` at the key that is none."""
    for position, key in enumerate(keys):
        check_column(key, stream.names, field=f"keys[{position}]")
    check_unique(keys, field="keys")
    return [pa.field(key, normal_type(stream.schema.field(key).type)) for key in keys]


def check_names(specs: Sequence[AggregateSpec], taken: Sequence[str]) -> None:
    """Raise `ConfigError` at the first aggregate whose name another column has."""
    seen = set(taken)
    for spec in specs:
        if spec.name in seen:
            raise ConfigError(
                f"there is a column {spec.name!r} already: give another name", field=f"{spec.field}.as", value=spec.name
            )
        seen.add(spec.name)


def free_name(name: str, taken: Collection[str]) -> str:
    """A name for a column of the operator's own that no other column has: a person may give theirs any name."""
    while name in taken:
        name = f"_{name}"
    return name


def key_columns(batch: pa.RecordBatch, fields: Sequence[pa.Field]) -> list[pa.Array]:
    """The keys of a batch of the input, in plain types."""
    columns = [batch.column(field.name) for field in fields]
    return [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(columns, fields, strict=True)
    ]
