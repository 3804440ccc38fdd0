"""The page of the pipeline file, from its JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from arroyo_core.api.units import DURATION_FORM, SIZE_FORM
from arroyo_devtools.reference.markdown import table
from arroyo_devtools.schema.prose import read_field_text

_INTRODUCTION = f"""# The pipeline file

A pipeline is one YAML file; [Pipelines](../pipelines.md) explains it. `arroyo schema` prints what is said here as
a JSON Schema for [editors](../editors.md), with the settings of every operator that is installed.

A duration is {DURATION_FORM}. A size is {SIZE_FORM}. `${{NAME}}` and `${{NAME:-default}}` read a parameter or
the environment, `$$` is a dollar sign. A key without a value counts as not written."""


def file_page(schema: Mapping[str, Any]) -> str:
    """`schema` is that of `pipeline_schema`."""
    sections = schema["properties"]
    parts = [
        _INTRODUCTION,
        *_table("The file", schema),
        *_table("`nodes`", schema["definitions"]["node"], "A list. Each node has:"),
        *_table("`checkpoint`", sections["checkpoint"]),
        *_table("`parameters`", _only(sections["parameters"]["patternProperties"]), "By name. Each has:"),
        *_table("`udfs`", sections["udfs"]["items"], "A list. Each bundle has:"),
        *_table("`tests`", sections["tests"]["items"], "A list. Each test has:"),
        *_table(
            "Steps of a test",
            sections["tests"]["items"]["properties"]["steps"]["items"],
            "A list. Each step is one of:",
        ),
    ]
    return "\n\n".join(parts)


def _table(title: str, schema: Mapping[str, Any], introduction: str = "") -> Iterator[str]:
    yield f"## {title}"
    if introduction:
        yield introduction
    required = schema.get("required", ())
    rows = [_row(key, value, is_required=key in required) for key, value in schema["properties"].items()]
    yield table(("Key", "Allowed", "Default", "Meaning"), rows)


def _row(key: str, schema: Mapping[str, Any], *, is_required: bool) -> tuple[str, ...]:
    text = read_field_text(schema.get("description") or schema.get("$comment", ""))
    default = f"`{schema['default']}`" if "default" in schema else text.default_words
    return f"`{key}`", _range(schema), "required" if is_required else default, text.description


def _range(schema: Mapping[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None or high is None or high > 2**62:
        return "" if low is None else f"at least {low}"
    return f"{low} to {high}"


def _only(mapping: Mapping[str, Any]) -> Any:
    (value,) = mapping.values()
    return value
