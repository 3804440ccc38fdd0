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
from arroyo_core.graph import scalar_schemas as scalars
from arroyo_core.graph.plan import CheckpointSpec
from arroyo_core.graph.scalar_schemas import DIALECT, Schema, nullable
from arroyo_core.graph.sections import sections_of
from arroyo_core.graph.spec import ALIAS, ID, INT64_MAX, MAX_KEEP, MAX_PARALLELISM, NAME, SHA256
from arroyo_core.plugin import PluginSet
from arroyo_devtools.schema.config_schema import ConfigSchemas
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
    conditions = [_condition(doc, definitions) for doc in operators.values()]
    definitions = {_NODE: _node(operators, conditions), **definitions}
    sections: dict[str, Schema] = {
        "name": _described(
            scalars.matching(NAME, "A name may hold letters, digits, '_', '-' and '.', and not dots only."),
            "The job's id. It names the checkpoints, so a renamed pipeline starts anew.",
        ),
        "parameters": _described(
            nullable(_parameters()), "Values that `--set NAME=VALUE` may replace, read as `${NAME}`."
        ),
        "parallelism": _parallelism("How many subtasks every node has that does not say otherwise.", default=1),
        "checkpoint": _described(nullable(_checkpoint()), "When an epoch ends, and where its state goes."),
        "udfs": _described(
            nullable({"type": "array", "items": _udf()}), "Bundles of user functions, which expressions may call."
        ),
        "nodes": _described(
            {"type": "array", "minItems": 1, "items": {"$ref": f"#/definitions/{_NODE}"}},
            "The sources, operators and sinks of the pipeline. The order does not matter.",
        ),
    }
    for key, section in sections_of(plugins).items():
        sections[key] = _described(nullable(section.schema()), section.description)
    return {
        "$schema": DIALECT,
        "title": "arroyo pipeline",
        "description": f"A pipeline of the operators of {_origins(operators)}.",
        **_mapping(sections, required=("name", "nodes")),
        "definitions": definitions,
    }


def _node(operators: Mapping[str, OperatorDoc], conditions: Sequence[Schema]) -> Schema:
    descriptions = [_summary(doc) for doc in operators.values()]
    properties: dict[str, Schema] = {
        "id": _described(
            scalars.matching(ID, "An id begins with a letter or '_' and may hold letters, digits, '_' and '-'."),
            "The name of the node, unique in the file. State belongs to it: a renamed node starts empty.",
        ),
        "operator": _described(_operator_name(list(operators), descriptions), "What the node does: `plugin.operator`."),
        "inputs": _described(
            nullable({**_input(), "type": ["array", "string"], "items": _input()}),
            "The nodes that it reads, in order: `id`, or `id.output` for a side output such as `windows.late`.",
        ),
        # Type and description are left to the operator: editors show one description, and would tell a mistake twice.
        "config": {"$comment": "The operator's settings, as its page of the reference lists them."},
        "parallelism": _parallelism("How many subtasks this node has. Default: that of the pipeline."),
    }
    node = _mapping(properties, required=("id", "operator"))
    return {**node, "allOf": list(conditions)} if conditions else node


def _operator_name(names: Sequence[str], descriptions: Sequence[str]) -> Schema:
    message = "There is no such operator among the installed plugins; `arroyo docs` lists them."
    other: Schema = {"type": "string", "pattern": scalars.REFERENCE, "patternErrorMessage": message}
    proposed: Schema = {"enum": list(names), "markdownEnumDescriptions": list(descriptions)}
    return {"anyOf": [proposed, other]} if names else other


def _condition(doc: OperatorDoc, definitions: dict[str, Schema]) -> Schema:
    """What holds for the nodes of one operator."""
    schemas = ConfigSchemas(doc.comments, definitions)
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


def _checkpoint() -> Schema:
    default = CheckpointSpec()
    interval = {
        **nullable(scalars.duration(is_positive=True)),
        "default": format_duration_us(default.interval_ms * 1_000),
    }
    timeout = {
        **nullable(scalars.duration(is_positive=True)),
        "default": format_duration_us(default.timeout_ms * 1_000),
    }
    keep = {**nullable(scalars.whole_number(least=1, greatest=MAX_KEEP)), "default": default.keep}
    return _mapping(
        {
            "url": _described(
                nullable(scalars.text(is_required=True)),
                "A folder, or anything that fsspec opens: every epoch is published there. Default: state is kept "
                "for the run, and then removed.",
            ),
            "interval": _described(interval, "An epoch ends after so long, at least 1ms."),
            "rows": _described(
                nullable(scalars.whole_number(least=1, greatest=INT64_MAX)),
                "An epoch ends after so many rows of the sources. Default: no limit.",
            ),
            "bytes": _described(
                nullable(scalars.size(least=1)), "An epoch ends after so many bytes of the sources. Default: no limit."
            ),
            "keep": _described(keep, "How many epochs stay readable."),
            "timeout": _described(
                timeout,
                "An epoch that makes no progress for so long is cancelled, and the job restarts from its last "
                "checkpoint; at least 1s. No progress: no task begins or ends, no row moves, and no source asks "
                "whether to end.",
            ),
        }
    )


def _udf() -> Schema:
    return _mapping(
        {
            "url": _described(scalars.text(is_required=True), "A wheel, or a zip of one module, that fsspec opens."),
            "sha256": _described(
                nullable(scalars.matching(SHA256, "A sha256 has 64 hexadecimal digits.")),
                "Of the bundle; a remote one needs it. `arroyo udf push` prints it.",
            ),
            "as": _described(
                nullable(scalars.matching(ALIAS, "This begins with a letter or '_'; letters, digits and '_' follow.")),
                "Functions are called as `as.name`. Default: by their own names.",
            ),
        },
        required=("url",),
    )


def _parallelism(description: str, *, default: int | None = None) -> Schema:
    schema = nullable(scalars.whole_number(least=1, greatest=MAX_PARALLELISM))
    return _described(schema if default is None else {**schema, "default": default}, description)


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
