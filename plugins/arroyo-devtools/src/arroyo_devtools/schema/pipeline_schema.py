"""The JSON Schema of a pipeline file, for editors: its sections, and the config of every operator that is installed.

It accepts every file that the planner accepts, and refuses what can be refused without knowing columns and
other nodes. The operator of a node decides on the schema of its config by `if` and `then`: so a mistake in a config
is told as one of that operator, and not as one of all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from google.protobuf.descriptor import Descriptor

from arroyo_core.api.units import format_duration_us
from arroyo_core.pipeline import scalar_schemas as scalars
from arroyo_core.pipeline.expansions import expansions_of
from arroyo_core.pipeline.file_keys import (
    ID,
    NODE,
    Duration,
    Form,
    Key,
    Other,
    Part,
    Section,
    Size,
    Text,
    Whole,
)
from arroyo_core.pipeline.scalar_schemas import DIALECT, Schema, nullable
from arroyo_core.pipeline.sections import pipeline_keys, sections_of
from arroyo_core.plugin import PluginSet
from arroyo_devtools.schema.config_schema import ConfigSchemas
from arroyo_devtools.schema.offers import Offers
from arroyo_devtools.schema.operator_docs import OperatorDoc, describe_operators
from arroyo_devtools.schema.prose import first_sentence

_NODE = "node"
_PARAMETER_TYPES = {
    "string": "Text.",
    "int": "A whole number.",
    "float": "A number.",
    "bool": "true or false.",
    "duration": "Such as 10s.",
    "size": "Such as 64MiB.",
}


def pipeline_schema(plugins: PluginSet) -> Schema:
    """The schema for the operators of these plugins."""
    operators = describe_operators(plugins)
    definitions: dict[str, Schema] = {}
    offers = Offers(plugins)
    conditions = [_condition(doc, offers, definitions) for doc in operators.values()]
    definitions = {_NODE: _node(operators, conditions), **definitions}
    others: dict[str, Schema] = {
        "parameters": _parameters(),
        "nodes": {"type": "array", "minItems": 1, "items": _item(sorted(expansions_of(plugins)))},
    }
    sections = sections_of(plugins)
    others |= {key: section.schema() for key, section in sections.items()}
    return {
        "$schema": DIALECT,
        "title": "arroyo pipeline",
        "description": f"A pipeline of the operators of {_origins(operators)}.",
        **_section(pipeline_keys(sections), others),
        "definitions": definitions,
    }


def _item(expansions: Sequence[str]) -> Schema:
    """A node, or one that has one of these keys instead of an operator, and stands for others."""
    item: Schema = {"$ref": f"#/definitions/{_NODE}"}
    for key in expansions:
        properties = {"id": {"type": "string"}, key: {"type": "string"}}
        expanded = {"type": "object", "additionalProperties": False, "required": ["id"], "properties": properties}
        item = {"if": {"required": [key]}, "then": expanded, "else": item}
    return item


def _node(operators: Mapping[str, OperatorDoc], conditions: Sequence[Schema]) -> Schema:
    others: dict[str, Schema] = {
        "operator": _operator_name(list(operators), [_summary(doc) for doc in operators.values()]),
        "inputs": {**_input(), "type": ["array", "string"], "items": _input()},
    }
    node = _section(NODE, others)
    # Type and description are left to the operator: editors show one description, and would tell a mistake twice.
    node["properties"]["config"] = {"$comment": NODE.key("config").text}
    return {**node, "allOf": list(conditions)} if conditions else node


def _operator_name(names: Sequence[str], descriptions: Sequence[str]) -> Schema:
    message = "There is no such operator among the installed plugins; `arroyo docs` lists them."
    other: Schema = {"type": "string", "pattern": scalars.REFERENCE, "patternErrorMessage": message}
    proposed: Schema = {"enum": list(names), "markdownEnumDescriptions": list(descriptions)}
    return {"anyOf": [proposed, other]} if names else other


def _condition(doc: OperatorDoc, offers: Offers, definitions: dict[str, Schema]) -> Schema:
    """What holds for the nodes of one operator."""
    schemas = ConfigSchemas(doc.comments, offers, definitions)
    descriptor = cast(Descriptor, doc.config_type.DESCRIPTOR)
    config = schemas.config(descriptor)
    required = []
    if schemas.needs_config(descriptor):
        required.append("config")
    else:
        config = nullable(config)
    properties = {"config": _described(config, f"The settings of `{doc.name}`. {_summary(doc)}".strip())}
    if doc.inputs is not None:
        least, greatest = doc.inputs
        properties["inputs"] = _inputs(least, greatest)
        if least:
            required.append("inputs")
    then: Schema = {"properties": properties}
    if required:
        then["required"] = required
    return {"if": {"properties": {"operator": {"const": doc.name}}, "required": ["operator"]}, "then": then}


def _inputs(least: int, greatest: int | None) -> Schema:
    if greatest == 0:
        refused: Schema = {"type": "null", "errorMessage": "A source has no inputs."}
        return {**refused, "type": ["array", "null"], "if": {"type": "array", "minItems": 1}, "then": refused}
    limits = {"minItems": least} | ({} if greatest is None else {"maxItems": greatest})
    # One input need not be in a list.
    return {"type": ["array", "string"] if least == 1 else "array", **limits}


def _input() -> Schema:
    pattern = rf"^(?:{ID.pattern})(?:\..+)?$|{scalars.REFERENCE}"
    return {"type": "string", "pattern": pattern, "patternErrorMessage": "An input is the id of a node, or id.output."}


def _parameters() -> Schema:
    kinds, meanings = list(_PARAMETER_TYPES), list(_PARAMETER_TYPES.values())
    properties: dict[str, Schema] = {
        "type": _described(
            nullable(scalars.one_of(kinds, meanings)), "What it is. Default: as the default is written."
        ),
        "default": {
            "type": ["string", "number", "boolean", "null"],
            "description": "Its value where none is given; without, one must be given.",
        },
        "description": _described(nullable(scalars.text()), "What it is for; shown when a value is missing."),
    }
    named = {"^[A-Za-z_][A-Za-z0-9_]*$": nullable(_mapping(properties))}
    return {"type": "object", "patternProperties": named, "additionalProperties": False}


def _section(section: Section, others: Mapping[str, Schema]) -> Schema:
    """A mapping of the file; `others` has the schemas of the keys whose form is told elsewhere."""
    return _mapping({key.name: _key(key, others) for key in section.keys}, required=section.required)


def _key(key: Key, others: Mapping[str, Schema]) -> Schema:
    schema = _form(key.form) if not isinstance(key.form, Other) else others.get(key.name, {})
    if not key.is_required and schema:
        schema = nullable(schema)
    if key.default is not None:
        is_duration = isinstance(key.form, Duration)
        schema = {**schema, "default": format_duration_us(key.default) if is_duration else key.default}
    return _described(schema, f"{key.text} Default: {key.otherwise}." if key.otherwise else key.text)


def _form(form: Form) -> Schema:
    match form:
        case Text():
            matching = None if form.pattern is None else scalars.matching(form.pattern, form.form)
            return matching or scalars.text(is_required=form.is_filled)
        case Whole(least, greatest):
            return scalars.whole_number(least=least, greatest=greatest)
        case Duration(least_us):
            return scalars.duration(is_positive=least_us > 0)
        case Size(least):
            return scalars.size(least=least)
        case Part(section, is_list):
            inner = _section(section, {})
            return {"type": "array", "items": inner} if is_list else inner
        case Other():
            raise TypeError("its schema is made elsewhere")


def _mapping(properties: Mapping[str, Schema], *, required: Sequence[str] = ()) -> Schema:
    schema: Schema = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


def _described(schema: Schema, description: str) -> Schema:
    return {"description": description, "markdownDescription": description, **schema}


def _summary(doc: OperatorDoc) -> str:
    kind = "" if doc.kind == "operator" else f"A {doc.kind}. "
    return f"{kind}{first_sentence(doc.text.summary)}".strip()


def _origins(operators: Mapping[str, OperatorDoc]) -> str:
    return ", ".join(sorted({str(doc.origin) for doc in operators.values()})) or "no plugin at all"
