"""Columns of a stream: which there are, what becomes of event time and keys, and types that every operator accepts."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

import pyarrow as pa

from arroyo_core.api import ArroyoSchema
from arroyo_core.errors import ConfigError


def check_column(name: str, names: Sequence[str], *, field: str) -> None:
    """Raise `ConfigError` at `field`, with the nearest name there is, unless `name` is one of `names`."""
    if name not in names:
        raise ConfigError(
            f"no column {name!r}",
            field=field,
            value=name,
            allowed=names,
            suggestion=nearest(name, names),
        )


def check_unique(names: Sequence[str], *, field: str) -> None:
    """Raise `ConfigError` at the first element of the list `field` that repeats an earlier one."""
    seen: set[str] = set()
    for position, name in enumerate(names):
        if name in seen:
            raise ConfigError(f"column {name!r} is listed twice", field=f"{field}[{position}]", value=name)
        seen.add(name)


def nearest(name: str, names: Sequence[str]) -> str | None:
    """The name most like `name`, for "did you mean"; case alone does not make a difference."""
    by_folded = {candidate.casefold(): candidate for candidate in reversed(names)}
    found = difflib.get_close_matches(name.casefold(), list(by_folded), n=1)
    return by_folded[found[0]] if found else None


def derive_stream(stream: ArroyoSchema, schema: pa.Schema, copies: Mapping[str, str]) -> ArroyoSchema:
    """The type of a stream whose columns became `schema`.

    `copies` maps output columns to the input columns they are unchanged copies of. Event time and keys
    follow such copies, also to another name. A computed column is neither, whatever its name: watermarks
    and partitioning speak of the old values.
    """
    homes: dict[str, str] = {}
    for output, source in copies.items():
        if source not in homes or output == source:
            homes[source] = output
    timestamp = homes.get(stream.timestamp_column) if stream.timestamp_column else None
    keys = stream.key_columns
    if keys is not None:
        keys = tuple(homes[key] for key in keys) if all(key in homes for key in keys) else None
    return ArroyoSchema(schema, timestamp, keys)


def with_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The same rows under a schema that differs in nullability and metadata at most."""
    if batch.schema.equals(schema, check_metadata=True):
        return batch
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def normal_type(data_type: pa.DataType) -> pa.DataType:
    """The plain type for what SQL functions yield: no views, no dictionaries, also inside of nested types."""
    if pa.types.is_string_view(data_type):
        return pa.string()
    if pa.types.is_binary_view(data_type):
        return pa.binary()
    if pa.types.is_dictionary(data_type):
        return normal_type(data_type.value_type)
    if pa.types.is_list(data_type):
        return pa.list_(_normal_field(data_type.value_field))
    if pa.types.is_large_list(data_type):
        return pa.large_list(_normal_field(data_type.value_field))
    if pa.types.is_fixed_size_list(data_type):
        return pa.list_(_normal_field(data_type.value_field), data_type.list_size)
    if pa.types.is_struct(data_type):
        return pa.struct([_normal_field(field) for field in data_type])
    if pa.types.is_map(data_type):
        return pa.map_(normal_type(data_type.key_type), normal_type(data_type.item_type), data_type.keys_sorted)
    return data_type


def _normal_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, normal_type(field.type), nullable=True)
