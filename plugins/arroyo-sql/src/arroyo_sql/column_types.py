"""Types of columns: as SQL declares them, as Arrow's, and as schemas of connectors name them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from arroyo_core.pipeline.mistakes import nearest
from arroyo_sql.cursor import Cursor, StatementError
from arroyo_sql.lexer import Kind

MAX_DEPTH = 32
_UNITS = ("s", "ms", "us", "ns")

_INT8, _INT16, _INT32, _INT64 = pa.int8(), pa.int16(), pa.int32(), pa.int64()
#: Types of one word. Those of the second column are unsigned where UNSIGNED follows.
SIMPLE: Mapping[str, pa.DataType] = {
    "bigint": _INT64,
    "int8": _INT64,
    "long": _INT64,
    "int": _INT32,
    "integer": _INT32,
    "int4": _INT32,
    "smallint": _INT16,
    "int2": _INT16,
    "tinyint": _INT8,
    "float": pa.float32(),
    "float4": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "float8": pa.float64(),
    "boolean": pa.bool_(),
    "bool": pa.bool_(),
    "text": pa.string(),
    "varchar": pa.string(),
    "char": pa.string(),
    "string": pa.string(),
    "json": pa.string(),
    "jsonb": pa.string(),
    "bytea": pa.binary(),
    "bytes": pa.binary(),
    "binary": pa.binary(),
    "varbinary": pa.binary(),
    "blob": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("us"),
}
UNSIGNED: Mapping[pa.DataType, pa.DataType] = {
    _INT64: pa.uint64(),
    _INT32: pa.uint32(),
    _INT16: pa.uint16(),
    _INT8: pa.uint8(),
}
_TIMES = ("timestamp", "timestamptz", "timestamp_ltz", "datetime")
_DECIMALS = ("decimal", "numeric", "dec")
_NESTED = ("struct", "row", "array", "map")
#: What is not a type here, and what to write instead.
_INSTEAD: Mapping[str, str] = {
    "interval": "a column cannot be an INTERVAL: write BIGINT for a number of units, or TEXT",
    "uuid": "there is no type UUID: write TEXT",
    "serial": "there is no type SERIAL: write BIGINT",
    "bigserial": "there is no type BIGSERIAL: write BIGINT",
    "enum": "there is no type ENUM: write TEXT",
    "variant": "there is no type VARIANT: write JSON",
    "object": "there is no type OBJECT: write STRUCT<name TYPE, ...> or JSON",
    "money": "there is no type MONEY: write DECIMAL(19, 2)",
    "xml": "there is no type XML: write TEXT",
    "multiset": "there is no type MULTISET: write ARRAY<TYPE>",
}
#: As messages list them.
ALLOWED = (
    "BIGINT",
    "INT",
    "SMALLINT",
    "TINYINT",
    "FLOAT",
    "DOUBLE",
    "REAL",
    "DECIMAL(p, s)",
    "BOOLEAN",
    "TEXT",
    "BYTEA",
    "TIMESTAMP",
    "DATE",
    "TIME",
    "JSON",
    "STRUCT<name TYPE, ...>",
    "ARRAY<TYPE>",
    "MAP<TYPE, TYPE>",
)


def read_type(cursor: Cursor, depth: int = 0) -> pa.DataType:
    """The type that the next tokens name, with `[]` behind it; raises `StatementError`."""
    if depth > MAX_DEPTH:
        raise StatementError(f"types are nested more than {MAX_DEPTH} deep", at=cursor.at())
    kind = _read_plain(cursor, depth)
    while cursor.accept("["):
        if not cursor.accept("]"):
            raise StatementError("an array has no fixed size here: write TYPE[]", at=cursor.at())
        depth += 1
        if depth > MAX_DEPTH:
            raise StatementError(f"types are nested more than {MAX_DEPTH} deep", at=cursor.at())
        kind = pa.list_(kind)
    if cursor.accept("ARRAY"):
        kind = pa.list_(kind)
    return kind


def _read_plain(cursor: Cursor, depth: int) -> pa.DataType:
    at = cursor.at()
    token = cursor.token
    if token is None or token.kind is not Kind.WORD:
        raise cursor.unexpected("a type", allowed=ALLOWED)
    cursor.index += 1
    name = token.value
    if name in _TIMES:
        return _read_timestamp(cursor, name)
    if name in _DECIMALS:
        return _read_decimal(cursor)
    if name in _NESTED and (cursor.is_at("<") or (name in ("struct", "row") and cursor.is_at("("))):
        return _READERS[name](cursor, depth)
    if name in SIMPLE:
        return _read_simple(cursor, name)
    if name in _NESTED:
        raise StatementError(f"{token.text} needs the types inside of it", at=at, value=token.text, allowed=ALLOWED)
    if name in _INSTEAD:
        raise StatementError(_INSTEAD[name], at=at, value=token.text)
    known = [*SIMPLE, *_TIMES, *_DECIMALS, *_NESTED]
    near = nearest(name, known)
    raise StatementError(
        f"there is no type {token.text!r}",
        at=at,
        value=token.text,
        allowed=ALLOWED,
        suggestion=near.upper() if near else None,
    )


def _read_simple(cursor: Cursor, name: str) -> pa.DataType:
    kind = SIMPLE[name]
    if name == "double":
        cursor.accept("PRECISION")
    if name in ("varchar", "char", "binary", "varbinary", "time") and cursor.is_at("("):
        # Lengths are not checked by anything: as in Postgres' TEXT, and in Spark.
        _read_numbers(cursor, least=1, most=1, upper=2**31 - 1)
    if name == "time":
        _read_zone(cursor, is_allowed=False)
    if cursor.is_at("UNSIGNED"):
        if kind not in UNSIGNED:
            raise StatementError("only whole numbers can be UNSIGNED", at=cursor.at(), value="UNSIGNED")
        cursor.index += 1
        return UNSIGNED[kind]
    return kind


def _read_timestamp(cursor: Cursor, name: str) -> pa.DataType:
    unit = "us"
    if cursor.is_at("("):
        (digits,) = _read_numbers(cursor, least=1, most=1, upper=9)
        unit = _UNITS[(digits + 2) // 3]
    _read_zone(cursor, is_allowed=True)
    return pa.timestamp(unit, tz="UTC")


def _read_zone(cursor: Cursor, *, is_allowed: bool) -> None:
    """All times are in UTC: with and without a zone they mean the same."""
    at = cursor.at()
    if cursor.accept("WITHOUT", "TIME", "ZONE"):
        return
    if (cursor.accept("WITH", "LOCAL", "TIME", "ZONE") or cursor.accept("WITH", "TIME", "ZONE")) and not is_allowed:
        raise StatementError("a TIME has no zone: write TIME, or TIMESTAMP", at=at)


def _read_decimal(cursor: Cursor) -> pa.DataType:
    at = cursor.at()
    numbers = _read_numbers(cursor, least=1, most=2, upper=38) if cursor.is_at("(") else [38, 10]
    precision, scale = numbers[0], numbers[1] if len(numbers) > 1 else 0
    if precision < 1 or scale > precision:
        raise StatementError("a DECIMAL has 1 to 38 digits, and no more of them behind the point", at=at)
    return pa.decimal128(precision, scale)


def _read_numbers(cursor: Cursor, *, least: int, most: int, upper: int) -> list[int]:
    cursor.expect("(")
    numbers: list[int] = []
    while len(numbers) < most:
        token = cursor.token
        if token is None or token.kind is not Kind.NUMBER or not token.text.isascii() or not token.text.isdigit():
            raise cursor.unexpected("a whole number")
        if len(token.text) > 10 or int(token.text) > upper:
            raise StatementError(f"{token.text[:20]} is too large here: at most {upper}", at=cursor.at())
        numbers.append(int(token.text))
        cursor.index += 1
        if len(numbers) >= least and not cursor.accept(","):
            break
    cursor.expect(")")
    return numbers


def _read_struct(cursor: Cursor, depth: int) -> pa.DataType:
    closing = ">" if cursor.accept("<") else ")"
    if closing == ")":
        cursor.expect("(")
    fields: dict[str, pa.Field] = {}
    while True:
        at = cursor.at()
        name = cursor.name("the name of a field").value
        cursor.accept(":")
        kind = read_type(cursor, depth + 1)
        is_required = cursor.accept("NOT", "NULL")
        if name in fields:
            raise StatementError(f"the struct has two fields {name!r}", at=at, value=name)
        fields[name] = pa.field(name, kind, nullable=not is_required)
        if not cursor.accept(","):
            break
    cursor.expect(closing)
    return pa.struct(list(fields.values()))


def _read_array(cursor: Cursor, depth: int) -> pa.DataType:
    cursor.expect("<")
    kind = read_type(cursor, depth + 1)
    cursor.accept("NOT", "NULL")
    cursor.expect(">")
    return pa.list_(kind)


def _read_map(cursor: Cursor, depth: int) -> pa.DataType:
    cursor.expect("<")
    at = cursor.at()
    key = read_type(cursor, depth + 1)
    if pa.types.is_nested(key):
        raise StatementError("the key of a MAP cannot be a STRUCT, an ARRAY or a MAP", at=at)
    cursor.expect(",")
    value = read_type(cursor, depth + 1)
    cursor.expect(">")
    return pa.map_(key, value)


_READERS: Mapping[str, Callable[[Cursor, int], pa.DataType]] = {
    "struct": _read_struct,
    "row": _read_struct,
    "array": _read_array,
    "map": _read_map,
}

_NAMES: Mapping[pa.DataType, str] = {
    pa.bool_(): "bool",
    pa.float32(): "float32",
    pa.float64(): "float64",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
}


def type_name(kind: pa.DataType) -> str:
    """The type as the schema of a connector has it: `int64`, `list<string>`, `struct<a: int64>`."""
    if kind in _NAMES:
        return _NAMES[kind]
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.unit == "us" else f"timestamp_{kind.unit}"
    if pa.types.is_time(kind):
        return "time"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"list<{type_name(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{type_name(kind.key_type)}, {type_name(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{each.name}: {type_name(each.type)}' for each in kind)}>"
    return str(kind)


_SQL_NAMES: Mapping[pa.DataType, str] = {
    pa.int64(): "BIGINT",
    pa.int32(): "INT",
    pa.int16(): "SMALLINT",
    pa.int8(): "TINYINT",
    pa.uint64(): "BIGINT UNSIGNED",
    pa.uint32(): "INT UNSIGNED",
    pa.uint16(): "SMALLINT UNSIGNED",
    pa.uint8(): "TINYINT UNSIGNED",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.string(): "TEXT",
    pa.large_string(): "TEXT",
    pa.string_view(): "TEXT",
    pa.binary(): "BYTEA",
    pa.date32(): "DATE",
    pa.time64("us"): "TIME",
}
_DIGITS = {"s": "(0)", "ms": "(3)", "us": "", "ns": "(9)"}


def sql_type(kind: pa.DataType) -> str:
    """The type as a script declares it."""
    if kind in _SQL_NAMES:
        return _SQL_NAMES[kind]
    if pa.types.is_timestamp(kind):
        return f"TIMESTAMP{_DIGITS[kind.unit]}"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"{sql_type(kind.value_type)}[]"
    if pa.types.is_map(kind):
        return f"MAP<{sql_type(kind.key_type)}, {sql_type(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{each.name} {sql_type(each.type)}' for each in kind)}>"
    return str(kind).upper()
