"""JSON Schema as columns, and columns as JSON Schema, for formats of JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from arroyo_formats.nesting import Bounds

_NUMBERS: dict[str, pa.DataType] = {
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
}
_TEXTS: dict[str, pa.DataType] = {
    "date-time": pa.timestamp("us", "UTC"),
    "date": pa.date32(),
    "time": pa.time64("us"),
}
_NULL = "null"
#: References that are being followed: the name of a document, and the place in it.
Within = tuple[tuple[str, str], ...]


class JsonSchemaError(ValueError):
    """A schema that has no columns; the message begins with the place."""


def arrow_schema(
    text: str, references: Mapping[str, str] | None = None, *, only: Collection[str] | None = None
) -> pa.Schema:
    """The columns of objects of a JSON Schema; raises `JsonSchemaError`.

    `references` are texts of other schemas, by the names that `$ref` uses for them. Objects with named properties are
    structs, those of other names (`additionalProperties`) are maps. Strings with the format `date-time`, `date` or
    `time` are times. All columns may be null: a property may always be absent. Where `only` names properties, others
    may be anything.
    """
    documents = {name: _load(each, name) for name, each in {**(references or {}), "": text}.items()}
    kind = _Reader(documents, only).type(documents[""], "", "", ())
    if not pa.types.is_struct(kind):
        raise JsonSchemaError(f"columns come from an object with properties, and this is {kind}")
    return pa.schema(list(kind))


_DRAFT = "http://json-schema.org/draft-07/schema#"


def json_schema(schema: pa.Schema) -> str:
    """The schema of objects that `json` writes of these columns; raises `TypeError` for a type that it cannot hold.

    No property is required, and there are no others, so that registries take a column more for a compatible change.
    """
    return json.dumps({"$schema": _DRAFT, **_object_of(schema)})


def _object_of(fields: Iterable[pa.Field]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {field.name: _property(field) for field in fields},
        "additionalProperties": False,
    }


def _property(field: pa.Field) -> dict[str, Any]:
    # Floats are null where they are not finite.
    may_be_null = field.nullable or pa.types.is_floating(field.type)
    made = _made(field.type)
    return {"oneOf": [{"type": _NULL}, made]} if may_be_null and made != {"type": _NULL} else made


def _made(kind: pa.DataType) -> dict[str, Any]:
    if pa.types.is_dictionary(kind):
        return _made(kind.value_type)
    if pa.types.is_struct(kind):
        return _object_of(kind)
    if pa.types.is_map(kind):
        return {"type": "object", "additionalProperties": _property(kind.item_field)}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return {"type": "array", "items": _property(kind.value_field)}
    return _made_of_value(kind)


def _made_of_value(kind: pa.DataType) -> dict[str, Any]:
    if pa.types.is_null(kind):
        return {"type": _NULL}
    if pa.types.is_boolean(kind):
        return {"type": "boolean"}
    if pa.types.is_integer(kind):
        is_narrow = kind.bit_width < 32 or kind == pa.int32()
        return {"type": "integer", "format": "int32"} if is_narrow else {"type": "integer"}
    if pa.types.is_floating(kind):
        return {"type": "number"} if kind == pa.float64() else {"type": "number", "format": "float"}
    if pa.types.is_timestamp(kind):
        return {"type": "string", "format": "date-time"}
    if pa.types.is_date(kind):
        return {"type": "string", "format": "date"}
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        raise TypeError(f"JSON has no way to write {kind}")
    # Also decimals, and times: the format `time` wants a zone, which they do not have.
    return {"type": "string"}


@dataclass(frozen=True, slots=True)
class _Reader:
    #: By name; the schema itself has none.
    documents: Mapping[str, Any]
    #: The properties of the whole that count; None for all.
    only: Collection[str] | None
    bounds: Bounds = field(default_factory=lambda: Bounds(_error))

    def type(self, schema: Any, document: str, at: str, within: Within) -> pa.DataType:
        with self.bounds.inside(at):
            return self._any(schema, document, at, within)

    def _any(self, schema: Any, document: str, at: str, within: Within) -> pa.DataType:
        if not isinstance(schema, dict):
            raise _error(at, "any value is allowed here, which has no type")
        if "$ref" in schema:
            return self._referred(str(schema["$ref"]), document, at, within)
        for choice in ("oneOf", "anyOf"):
            if choice in schema:
                return self._one_of(schema[choice], document, at, within)
        if "allOf" in schema:
            return self._all_of(schema, document, at, within)
        return self._typed(schema, document, at, within)

    def _typed(self, schema: dict[str, Any], document: str, at: str, within: Within) -> pa.DataType:
        match _type_name(schema, at):
            case "object":
                return self._object(schema, document, at, within)
            case "array":
                items = schema.get("items")
                return pa.list_(self.type(items, document, f"{at}[]", within))
            case "string":
                return _TEXTS.get(str(schema.get("format")), pa.string())
            case "integer":
                return _NUMBERS.get(str(schema.get("format")), pa.int64())
            case "number":
                return _NUMBERS.get(str(schema.get("format")), pa.float64())
            case "boolean":
                return pa.bool_()
            case "null":
                return pa.null()
            case other:
                raise _error(at, f"there is no type {other!r}")

    def _object(self, schema: dict[str, Any], document: str, at: str, within: Within) -> pa.DataType:
        properties = schema.get("properties")
        if isinstance(properties, dict) and properties:
            return pa.struct(
                [
                    (name, self.type(each, document, f"{at}.{name}" if at else name, within))
                    for name, each in properties.items()
                    if at or self.only is None or name in self.only
                ]
            )
        others = schema.get("additionalProperties")
        if isinstance(others, dict):
            return pa.map_(pa.string(), self.type(others, document, f"{at}{{}}", within))
        raise _error(at, "an object needs properties, or a schema of additionalProperties")

    def _one_of(self, choices: Any, document: str, at: str, within: Within) -> pa.DataType:
        kinds = {self.type(each, document, at, within) for each in choices} - {pa.null()}
        if len(kinds) > 1:
            raise _error(at, f"values of several types: {', '.join(sorted(map(str, kinds)))}")
        return kinds.pop() if kinds else pa.null()

    def _all_of(self, schema: dict[str, Any], document: str, at: str, within: Within) -> pa.DataType:
        rest = {key: value for key, value in schema.items() if key != "allOf"}
        parts = [*schema["allOf"], *([rest] if rest.keys() & {"properties", "type"} else [])]
        kinds = [self.type(each, document, at, within) for each in parts]
        if len(set(kinds)) == 1:
            return kinds[0]
        if not all(pa.types.is_struct(kind) for kind in kinds):
            raise _error(at, "allOf of several types")
        fields: dict[str, pa.Field] = {}
        for kind in kinds:
            for each in kind:
                if fields.setdefault(each.name, each).type != each.type:
                    raise _error(at, f"{each.name!r} has several types")
        return pa.struct(list(fields.values()))

    def _referred(self, reference: str, document: str, at: str, within: Within) -> pa.DataType:
        name, _, pointer = reference.partition("#")
        target = (name or document, pointer)
        if target in within:
            raise _error(at, f"{reference!r} contains itself, which columns cannot")
        if target[0] not in self.documents:
            raise _error(at, f"there is no schema {name!r}")
        found = self.documents[target[0]]
        for part in pointer.split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or part not in found:
                raise _error(at, f"there is nothing at {reference!r}")
            found = found[part]
        return self.type(found, target[0], at, (*within, target))


def _type_name(schema: dict[str, Any], at: str) -> str:
    """The one type that is not null; where none is written, what the other keywords mean."""
    written = schema.get("type")
    names = [name for name in (written if isinstance(written, list) else [written]) if name is not None]
    if names:
        kept = [str(name) for name in names if name != _NULL]
        if len(kept) > 1:
            raise _error(at, f"values of several types: {', '.join(kept)}")
        return kept[0] if kept else _NULL
    if "properties" in schema or "additionalProperties" in schema:
        return "object"
    if "items" in schema:
        return "array"
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list) and values:
        return _type_of_values(values, at)
    raise _error(at, "there is no type")


def _type_of_values(values: list[Any], at: str) -> str:
    names = {_value_name(value) for value in values} - {_NULL}
    if names == {"integer", "number"}:
        return "number"
    if len(names) > 1:
        raise _error(at, f"values of several types: {', '.join(sorted(names))}")
    return names.pop() if names else _NULL


def _value_name(value: Any) -> str:
    kinds: list[tuple[Any, str]] = [(bool, "boolean"), (int, "integer"), (float, "number"), (str, "string")]
    kinds += [(list, "array"), (dict, "object")]
    return next((name for kind, name in kinds if isinstance(value, kind)), _NULL)


def _load(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise JsonSchemaError(f"{name or 'the schema'} is not JSON: {error}") from error


def _error(at: str, message: str) -> JsonSchemaError:
    return JsonSchemaError(f"{at}: {message}" if at else message)
