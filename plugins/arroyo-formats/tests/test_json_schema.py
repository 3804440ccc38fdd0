from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from arroyo_formats.json_schema import JsonSchemaError, arrow_schema


def of(kind: Any, **more: Any) -> pa.DataType:
    """The type of a property with this schema."""
    return arrow_schema(json.dumps({"type": "object", "properties": {"a": kind}, **more})).field("a").type


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "string"}, pa.string()),
        ({"type": "string", "format": "date-time"}, pa.timestamp("us", "UTC")),
        ({"type": "string", "format": "date"}, pa.date32()),
        ({"type": "string", "format": "time"}, pa.time64("us")),
        ({"type": "string", "format": "email"}, pa.string()),
        ({"type": "integer"}, pa.int64()),
        ({"type": "integer", "format": "int32"}, pa.int32()),
        ({"type": "number"}, pa.float64()),
        ({"type": "boolean"}, pa.bool_()),
        ({"type": "null"}, pa.null()),
        ({"type": ["null", "integer"]}, pa.int64()),
        ({"oneOf": [{"type": "null"}, {"type": "integer"}]}, pa.int64()),
        ({"anyOf": [{"type": "string"}, {"type": "string", "maxLength": 3}]}, pa.string()),
        ({"type": "array", "items": {"type": "boolean"}}, pa.list_(pa.bool_())),
        ({"type": "object", "properties": {"x": {"type": "string"}}}, pa.struct({"x": pa.string()})),
        ({"properties": {"x": {"type": "string"}}}, pa.struct({"x": pa.string()})),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, pa.map_(pa.string(), pa.int64())),
        ({"enum": ["a", "b", None]}, pa.string()),
        ({"enum": [1, 2.5]}, pa.float64()),
        ({"const": True}, pa.bool_()),
        (
            {"allOf": [{"properties": {"x": {"type": "string"}}}], "properties": {"y": {"type": "integer"}}},
            pa.struct({"x": pa.string(), "y": pa.int64()}),
        ),
    ],
)
def test_a_property_is_a_column_of_its_type(schema: Any, kind: pa.DataType):
    assert of(schema) == kind


def test_references_are_followed():
    money = {
        "type": "object",
        "properties": {"cents": {"$ref": "#/$defs/amount"}},
        "$defs": {"amount": {"type": "integer"}},
    }
    found = arrow_schema(
        json.dumps({"properties": {"a": {"$ref": "money.json"}, "b": {"$ref": "#/definitions/x~1y"}},
                    "definitions": {"x/y": {"type": "string"}}}),
        {"money.json": json.dumps(money)},
    )  # fmt: skip
    assert found == pa.schema({"a": pa.struct({"cents": pa.int64()}), "b": pa.string()})


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({}, "a: there is no type"),
        (True, "a: any value is allowed here"),
        ({"type": "text"}, "a: there is no type 'text'"),
        ({"type": ["string", "integer"]}, "a: values of several types: string, integer"),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, "a: values of several types: int64, string"),
        ({"enum": [1, "x"]}, "a: values of several types: integer, string"),
        ({"type": "object"}, "a: an object needs properties"),
        ({"type": "array"}, r"a\[\]: any value"),
        ({"type": "object", "properties": {"b": {}}}, "a.b: there is no type"),
        ({"$ref": "#/definitions/none"}, "a: there is nothing at '#/definitions/none'"),
        ({"$ref": "other.json"}, "a: there is no schema 'other.json'"),
        ({"$ref": "#"}, "a.a: '#' contains itself"),
        ({"allOf": [{"properties": {"x": {"type": "string"}}}, {"properties": {"x": {"type": "integer"}}}]}, "'x' has"),
    ],
)
def test_what_has_no_type_is_refused_with_its_place(schema: Any, message: str):
    with pytest.raises(JsonSchemaError, match=message):
        of(schema)


@pytest.mark.parametrize("text", ["{", '{"type": "string"}', "[" * 100_000])
def test_what_is_no_object_has_no_columns(text: str):
    with pytest.raises(JsonSchemaError):
        arrow_schema(text)
