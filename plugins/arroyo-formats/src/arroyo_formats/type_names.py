"""Type names as people write them in a schema: `int64`, `decimal(10,2)`, `list<struct<a: int64>>`.

type   = name | "decimal" "(" digits "," digits ")" | "list" "<" type ">"
       | "map" "<" type "," type ">" | "struct" "<" field ("," field)* ">"
field  = name ":" type
"""

from __future__ import annotations

import difflib
import re

import pyarrow as pa

SIMPLE_TYPES: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_s": pa.timestamp("s", tz="UTC"),
    "timestamp_ms": pa.timestamp("ms", tz="UTC"),
    "timestamp_us": pa.timestamp("us", tz="UTC"),
    "timestamp_ns": pa.timestamp("ns", tz="UTC"),
}
#: What people from other systems write.
ALIASES = {
    "boolean": "bool",
    "int": "int32",
    "integer": "int32",
    "bigint": "int64",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "text": "string",
    "varchar": "string",
    "bytes": "binary",
}
ALLOWED = (*SIMPLE_TYPES, "decimal(p,s)", "list<...>", "map<key, value>", "struct<name: type, ...>")

_TOKEN = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[<>(),:])")


class TypeNameError(ValueError):
    """A type name that cannot be read; `suggestion` is the nearest known name."""

    def __init__(self, message: str, suggestion: str | None = None) -> None:
        super().__init__(message)
        self.suggestion = suggestion


def parse_type(text: str) -> pa.DataType:
    """The Arrow type of a name; raises `TypeNameError` saying where it stops being one."""
    parser = _Parser(text)
    kind = parser.type()
    parser.end()
    return kind


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, int]] = []
        self._next = 0
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None:
                raise self._error(f"unexpected {text[position:].strip()[0]!r}", position)
            self._tokens.append((match[1], match.start(1)))
            position = match.end()

    def type(self) -> pa.DataType:
        name, position = self._take("a type")
        lowered = name.lower()
        simple = SIMPLE_TYPES.get(ALIASES.get(lowered, lowered))
        if simple is not None:
            return simple
        if lowered == "decimal":
            return self._decimal(position)
        if lowered == "list":
            self._expect("<")
            item = self.type()
            self._expect(">")
            return pa.list_(item)
        if lowered == "map":
            self._expect("<")
            key = self.type()
            self._expect(",")
            value = self.type()
            self._expect(">")
            return pa.map_(key, value)
        if lowered == "struct":
            return pa.struct(self._fields())
        near = difflib.get_close_matches(lowered, [*SIMPLE_TYPES, *ALIASES, "decimal", "list", "map", "struct"], n=1)
        raise TypeNameError(f"unknown type {name!r} in {self._text!r}", near[0] if near else None)

    def end(self) -> None:
        if self._next < len(self._tokens):
            token, position = self._tokens[self._next]
            raise self._error(f"unexpected {token!r}", position)

    def _decimal(self, position: int) -> pa.DataType:
        self._expect("(")
        precision = self._number()
        self._expect(",")
        scale = self._number()
        self._expect(")")
        if not 1 <= precision <= 38 or scale > precision:
            raise self._error("a decimal has 1 to 38 digits, and no more of them after the point", position)
        return pa.decimal128(precision, scale)

    def _fields(self) -> list[pa.Field]:
        self._expect("<")
        fields: list[pa.Field] = []
        while True:
            name, position = self._take("a field name")
            if not (name[0].isalpha() or name[0] == "_"):
                raise self._error(f"expected a field name, got {name!r}", position)
            if any(field.name == name for field in fields):
                raise self._error(f"field {name!r} appears twice", position)
            self._expect(":")
            fields.append(pa.field(name, self.type()))
            token, position = self._take("',' or '>'")
            if token == ">":
                return fields
            if token != ",":
                raise self._error(f"expected ',' or '>', got {token!r}", position)

    def _number(self) -> int:
        token, position = self._take("a number")
        if not token.isdigit():
            raise self._error(f"expected a number, got {token!r}", position)
        return int(token)

    def _expect(self, wanted: str) -> None:
        token, position = self._take(repr(wanted))
        if token != wanted:
            raise self._error(f"expected {wanted!r}, got {token!r}", position)

    def _take(self, wanted: str) -> tuple[str, int]:
        if self._next == len(self._tokens):
            raise self._error(f"expected {wanted}", len(self._text))
        self._next += 1
        return self._tokens[self._next - 1]

    def _error(self, message: str, position: int) -> TypeNameError:
        return TypeNameError(f"{message} at character {position + 1} of type {self._text!r}")
