"""Avro schemas as trees. Named types are put in where they are referred to; recursive ones are refused.

Arrow has no recursive types, and a reader of bytes that somebody else chose must not recurse as deep as they say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from arroyo_formats.nesting import Bounds

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
#: By logical type, the types that may carry it. On others it is ignored, as Avro wants.
_LOGICAL_CARRIERS: Mapping[str, tuple[str, ...]] = {
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-nanos": ("long",),
    "decimal": ("bytes", "fixed"),
    "uuid": ("string",),
}
MAX_DECIMAL_DIGITS = 76
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class SchemaError(ValueError):
    """A schema that is none, or cannot be held; the message begins with the place."""


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


#: The default of a field that has none.
MISSING: Any = _Missing()


@dataclass(frozen=True, slots=True)
class Scalar:
    """A primitive type."""

    kind: str
    logical: str | None = None
    precision: int = 0
    scale: int = 0


@dataclass(frozen=True, slots=True)
class Fixed:
    name: str
    size: int
    logical: str | None = None
    precision: int = 0
    scale: int = 0
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Enum:
    name: str
    symbols: tuple[str, ...]
    default: str | None = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Array:
    items: Node


@dataclass(frozen=True, slots=True)
class Map:
    values: Node


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: Node
    default: Any = MISSING
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    name: str
    fields: tuple[Field, ...]
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Union:
    branches: tuple[Node, ...]

    @property
    def values(self) -> tuple[tuple[int, Node], ...]:
        """The branches that are not null, with their numbers."""
        return tuple((i, branch) for i, branch in enumerate(self.branches) if branch != NULL)

    @property
    def is_nullable(self) -> bool:
        return NULL in self.branches


NamedT = TypeVar("NamedT", Fixed, Enum, Record)
Node = Scalar | Fixed | Enum | Array | Map | Record | Union
NULL = Scalar("null")
#: The column of a schema that is not a record.
VALUE = "value"


def parse(text: str, references: Sequence[str] = ()) -> Record:
    """The schema of a text, as a record: one that is none becomes a record of one field, `value`, with the same bytes.

    `references` are texts of schemas with types that it names, those first that others name. Raises `SchemaError`.
    """
    parser = _Parser()
    for reference in references:
        parser.type(_json(reference), "", "")
    node = parser.type(_json(text), "", "")
    if not isinstance(node, Record):
        node = Record(VALUE, (Field(VALUE, node),))
    return node


def members(node: Node) -> tuple[tuple[Node, ...], bool]:
    """The types that a value may have, null left out, and whether it may be null."""
    if isinstance(node, Union):
        return tuple(branch for _, branch in node.values), node.is_nullable
    return ((), True) if node == NULL else ((node,), False)


def describe(node: Node) -> str:
    """A short name of a type, for messages."""
    match node:
        case Scalar():
            return node.logical or node.kind
        case Fixed() | Enum() | Record():
            return f"{type(node).__name__.lower()} {node.name}"
        case Union():
            return f"[{', '.join(map(describe, node.branches))}]"
        case _:
            return type(node).__name__.lower()


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        bare = text.strip()
        if bare in PRIMITIVES:
            return bare
        raise SchemaError(f"not JSON: {error}") from error
    except RecursionError as error:
        raise SchemaError("nested too deep") from error


class _Parser:
    def __init__(self) -> None:
        self._named: dict[str, Node] = {}
        self._open: list[str] = []
        self._bounds = Bounds(_error)
        #: By identity: a node, how many types it is made of, and how deep it is. Named types are in many places.
        self._extents: dict[int, tuple[Node, int, int]] = {}

    def type(self, found: Any, namespace: str, at: str) -> Node:
        with self._bounds.inside(at):
            node = self._any(found, namespace, at)
        if id(node) not in self._extents:
            inner = [self._extents[id(each)] for each in _inner(node)]
            types, depth = 1 + sum(each[1] for each in inner), 1 + max((each[2] for each in inner), default=0)
            self._bounds.check(at, types=types, depth=depth)
            self._extents[id(node)] = (node, types, depth)
        return node

    def _any(self, found: Any, namespace: str, at: str) -> Node:
        if isinstance(found, str):
            return self._name_of_type(found, namespace, at)
        if isinstance(found, list):
            return self._union(found, namespace, at)
        if not isinstance(found, dict) or "type" not in found:
            raise _error(at, f"{found!r} is not a type")
        kind = found["type"]
        if isinstance(kind, dict | list):
            return self.type(kind, namespace, at)
        match kind:
            case "record" | "error":
                return self._record(found, namespace, at)
            case "enum":
                return self._enum(found, namespace, at)
            case "fixed":
                return self._fixed(found, namespace, at)
            case "array":
                return Array(self._item(found.get("items"), namespace, f"{at}[]"))
            case "map":
                return Map(self.type(found.get("values"), namespace, f"{at}{{}}"))
            case _ if kind in PRIMITIVES:
                return Scalar(kind, *_logical(found, kind))
            case _:
                return self._name_of_type(kind, namespace, at)

    def _name_of_type(self, name: Any, namespace: str, at: str) -> Node:
        if not isinstance(name, str):
            raise _error(at, f"{name!r} is not a type")
        if name in PRIMITIVES:
            return Scalar(name)
        for full in (_full(name, namespace), name):
            if full in self._open:
                raise _error(at, f"{name!r} contains itself, which columns cannot")
            if full in self._named:
                return self._named[full]
        raise _error(at, f"there is no type {name!r}")

    def _union(self, found: list[Any], namespace: str, at: str) -> Node:
        branches = tuple(self.type(each, namespace, at) for each in found)
        if any(isinstance(branch, Union) for branch in branches):
            raise _error(at, "a union directly in a union")
        if len({_branch_name(branch) for branch in branches}) < len(branches):
            raise _error(at, "a union with the same type twice")
        return Union(branches)

    def _item(self, found: Any, namespace: str, at: str) -> Node:
        item = self.type(found, namespace, at)
        if not least_bytes(item):
            # A few bytes could say that there are any number of them.
            raise _error(at, "an array of values without bytes")
        return item

    def _record(self, found: dict[str, Any], namespace: str, at: str) -> Record:
        name, namespace, aliases = self._declare(found, namespace, at)
        self._open.append(name)
        written = found.get("fields")
        if not isinstance(written, list):
            raise _error(at, f"record {name} has no list of fields")
        fields = tuple(self._field(each, namespace, at) for each in written)
        self._open.pop()
        if len({field.name for field in fields}) < len(fields):
            raise _error(at, f"record {name} has two fields of one name")
        return self._keep(name, Record(name, fields, aliases))

    def _field(self, found: Any, namespace: str, at: str) -> Field:
        if not isinstance(found, dict) or not isinstance(found.get("name"), str) or "type" not in found:
            raise _error(at, f"{found!r} is not a field with name and type")
        name = found["name"]
        if not _NAME.match(name):
            raise _error(at, f"{name!r} is not a name")
        node = self.type(found["type"], namespace, f"{at}.{name}" if at else name)
        return Field(name, node, found.get("default", MISSING), _texts(found.get("aliases")))

    def _enum(self, found: dict[str, Any], namespace: str, at: str) -> Enum:
        name, _, aliases = self._declare(found, namespace, at)
        symbols = _texts(found.get("symbols"))
        if not symbols or len(set(symbols)) < len(symbols) or not all(_NAME.match(symbol) for symbol in symbols):
            raise _error(at, f"enum {name} needs symbols, each a name and each once")
        default = found.get("default")
        if default is not None and default not in symbols:
            raise _error(at, f"enum {name} has the default {default!r}, which is none of its symbols")
        return self._keep(name, Enum(name, symbols, default, aliases))

    def _fixed(self, found: dict[str, Any], namespace: str, at: str) -> Fixed:
        name, _, aliases = self._declare(found, namespace, at)
        size = found.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise _error(at, f"fixed {name} needs a size")
        return self._keep(name, Fixed(name, size, *_logical(found, "fixed"), aliases=aliases))

    def _declare(self, found: dict[str, Any], namespace: str, at: str) -> tuple[str, str, tuple[str, ...]]:
        name = found.get("name")
        if not isinstance(name, str) or not all(_NAME.match(part) for part in name.split(".")):
            raise _error(at, f"{found['type']} without a name")
        full = _full(name, str(found.get("namespace", namespace)))
        if full in self._named or full in self._open:
            raise _error(at, f"type {full} is declared twice")
        inner = full.rpartition(".")[0]
        return full, inner, tuple(_full(alias, inner) for alias in _texts(found.get("aliases")))

    def _keep(self, name: str, node: NamedT) -> NamedT:
        self._named[name] = node
        return node


def _inner(node: Node) -> tuple[Node, ...]:
    match node:
        case Array():
            return (node.items,)
        case Map():
            return (node.values,)
        case Record():
            return tuple(field.type for field in node.fields)
        case Union():
            return node.branches
        case _:
            return ()


def _logical(found: Mapping[str, Any], kind: str) -> tuple[str | None, int, int]:
    """Logical type, precision and scale; nothing where they make no sense, as Avro wants."""
    logical = found.get("logicalType")
    if not isinstance(logical, str) or kind not in _LOGICAL_CARRIERS.get(logical, ()):
        return None, 0, 0
    if logical != "decimal":
        return logical, 0, 0
    precision, scale = found.get("precision"), found.get("scale", 0)
    if (
        not isinstance(precision, int)
        or not isinstance(scale, int)
        or not 0 <= scale <= precision <= MAX_DECIMAL_DIGITS
    ):
        return None, 0, 0
    return (logical, precision, scale) if precision else (None, 0, 0)


def least_bytes(node: Node) -> int:
    """How many bytes a value has at least."""
    match node:
        case Scalar():
            return int(node != NULL)
        case Fixed():
            return node.size
        case Record():
            return sum(least_bytes(field.type) for field in node.fields)
        case _:
            return 1


def _branch_name(node: Node) -> str:
    match node:
        case Scalar():
            return node.kind
        case Fixed() | Enum() | Record():
            return node.name
        case _:
            return type(node).__name__


def _full(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _texts(found: Any) -> tuple[str, ...]:
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()


def _error(at: str, message: str) -> SchemaError:
    return SchemaError(f"{at}: {message}" if at else message)
