"""JSON lines: one object a line, typed by the schema; fields outside it are ignored."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.json as pj

from arroyo_core.errors import ConfigError
from arroyo_filesystem.formats.text_schema import SchemaParser
from arroyo_filesystem.formats.timestamps import Writing


class JsonParser(SchemaParser):
    """Parses blocks of JSON lines. Arrow reads zoned and naive timestamps alike (as UTC)."""

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__(schema, [Writing.ZONED, Writing.NUMBER])

    def _read(self, data: bytes, types: Mapping[str, pa.DataType]) -> pa.Table:
        # Arrow takes any bytes for a string, and would fail much later.
        data.decode("utf-8")
        return read_json(data, pa.schema(list(types.items())))

    def _physical(self, kind: pa.DataType) -> pa.DataType:
        return _as_written(kind)


def infer_schema(data: bytes) -> pa.Schema:
    """The columns and types of some lines; raises `ArrowInvalid`."""
    return read_json(data, None).schema


def check_type(name: str, kind: pa.DataType) -> None:
    """Raises `ConfigError` for a type that JSON lines cannot be read as."""
    if pa.types.is_map(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise ConfigError(
            f"column {name!r}: json files cannot be read as {kind}; declare it as a struct or a string",
            field=f"schema.{name}",
            value=str(kind),
        )
    for index in range(kind.num_fields):
        check_type(name, kind.field(index).type)


def read_json(data: bytes, schema: pa.Schema | None) -> pa.Table:
    """The lines as columns of the schema, or of the one they suggest; raises `ArrowInvalid`."""
    return pj.read_json(
        pa.BufferReader(data),
        # One block, so that a line of any length fits and nothing is split.
        read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=pj.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="infer" if schema is None else "ignore"
        ),
    )


def _as_written(kind: pa.DataType) -> pa.DataType:
    """Dates and times of day are strings in JSON, which Arrow does not know."""
    if pa.types.is_date(kind) or pa.types.is_time(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_as_written(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _as_written(field.type)) for field in kind])
    return kind
