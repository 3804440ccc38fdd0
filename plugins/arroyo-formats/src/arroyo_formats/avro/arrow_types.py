"""Avro types as Arrow types, and the other way round.

`storage` is what decoders make and encoders take: the same bytes, without the meaning that logical types give them.
Numbers without a fraction are all `int64` there, so that a value that its type cannot hold is found, and not cut off.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from arroyo_core.errors import ConfigError
from arroyo_formats.avro.schema import Array, Enum, Fixed, Map, Node, Record, Scalar, Union, members

_STORED: dict[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: dict[str, pa.DataType] = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "timestamp-nanos": pa.timestamp("ns", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
    "uuid": pa.string(),
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
#: Types that Avro has none for are written as the next larger one, or the one next in kind.
_WRITTEN: dict[pa.DataType, Any] = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.uint8(): "int",
    pa.uint16(): "int",
    pa.uint32(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "bytes",
    pa.large_binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.time32("s"): {"type": "int", "logicalType": "time-millis"},
    pa.time32("ms"): {"type": "int", "logicalType": "time-millis"},
    pa.time64("us"): {"type": "long", "logicalType": "time-micros"},
}
_UNITS = {"s": "millis", "ms": "millis", "us": "micros", "ns": "nanos"}


def arrow_schema(record: Record) -> pa.Schema:
    """The columns of a record. None is promised to be without nulls: a schema of tomorrow may have them."""
    return pa.schema([(field.name, arrow_type(field.type)) for field in record.fields])


def arrow_type(node: Node) -> pa.DataType:
    """The type of a column; a union of several types is a struct of `member0`, `member1`, ..., of which one is set."""
    match node:
        case Scalar(kind="int", logical=None):
            return pa.int32()
        case Scalar(logical="decimal") | Fixed(logical="decimal"):
            width = pa.decimal128 if node.precision <= 38 else pa.decimal256
            return width(node.precision, node.scale)
        case Scalar():
            return _LOGICAL[node.logical] if node.logical else _STORED[node.kind]
        case _:
            return _nested(node, arrow_type)


def storage_type(node: Node) -> pa.DataType:
    """The type of what decoders make, and encoders take."""
    return _STORED[node.kind] if isinstance(node, Scalar) else _nested(node, storage_type)


def _nested(node: Node, inner: Any) -> pa.DataType:
    match node:
        case Fixed():
            return pa.binary()
        case Enum():
            return pa.string()
        case Array():
            return pa.list_(inner(node.items))
        case Map():
            return pa.map_(pa.string(), inner(node.values))
        case Record():
            return pa.struct([(field.name, inner(field.type)) for field in node.fields])
        case Union():
            values, _ = members(node)
            if len(values) == 1:
                found: pa.DataType = inner(values[0])
                return found
            return pa.struct([(f"member{i}", inner(value)) for i, value in enumerate(values)]) if values else pa.null()
    raise AssertionError(f"unreachable: {node!r} is no nested type")


def avro_schema(schema: pa.Schema, name: str = "row") -> dict[str, Any]:
    """The schema that rows of these columns are written with; raises `ConfigError` for a column that it cannot hold."""
    names = iter(range(1, 1 << 30))
    fields = [_written_field(field, f"{name}_{field.name}", names, field.name) for field in schema]
    return {"type": "record", "name": name, "fields": fields}


def _written_field(field: pa.Field, name: str, names: Any, at: str) -> dict[str, Any]:
    if not _NAME.match(field.name):
        raise ConfigError(
            f"column {at!r}: {field.name!r} is not a name in Avro, which has letters, digits and _",
            field="schema",
            value=at,
        )
    written = _written(field.type, name, names, at)
    # Null first: then null can be the default, and readers of older rows get it.
    return (
        {"name": field.name, "type": ["null", written], "default": None}
        if field.nullable
        else {
            "name": field.name,
            "type": written,
        }
    )


def _written(kind: pa.DataType, name: str, names: Any, at: str) -> Any:
    if kind in _WRITTEN:
        return _WRITTEN[kind]
    if pa.types.is_timestamp(kind):
        local = "" if kind.tz else "local-"
        return {"type": "long", "logicalType": f"{local}timestamp-{_UNITS[kind.unit]}"}
    if pa.types.is_decimal(kind) and kind.scale >= 0:
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pa.types.is_fixed_size_binary(kind):
        return {"type": "fixed", "name": f"fixed_{next(names)}", "size": kind.byte_width}
    if pa.types.is_dictionary(kind):
        return _written(kind.value_type, name, names, at)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return {"type": "array", "items": _written_inner(kind.value_field, name, names, f"{at}[]")}
    if pa.types.is_map(kind) and pa.types.is_string(kind.key_type):
        return {"type": "map", "values": _written_inner(kind.item_field, name, names, f"{at}{{}}")}
    if pa.types.is_struct(kind) and kind.num_fields:
        fields = [_written_field(field, f"{name}_{field.name}", names, f"{at}.{field.name}") for field in kind]
        return {"type": "record", "name": f"{name}_{next(names)}", "fields": fields}
    raise ConfigError(f"column {at!r}: Avro cannot hold {kind}", field="schema", value=at)


def _written_inner(field: pa.Field, name: str, names: Any, at: str) -> Any:
    written = _written(field.type, name, names, at)
    return ["null", written] if field.nullable else written
