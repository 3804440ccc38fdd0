"""Words that the terminal and the pages share."""

from __future__ import annotations

from collections.abc import Sequence

from arroyo_devtools.reference.markdown import table
from arroyo_devtools.schema.field_docs import FieldDoc
from arroyo_devtools.schema.operator_docs import Kind, OperatorDoc

KIND_TITLES = {Kind.SOURCE: "Sources", Kind.OPERATOR: "Operators", Kind.SINK: "Sinks"}


def type_with_range(field: FieldDoc) -> str:
    """`integer, from 1 to 100`; `string, secret`."""
    return ", ".join(filter(None, [field.type, field.range, "secret" if field.is_secret else ""]))


def field_table(fields: Sequence[FieldDoc]) -> str:
    """The fields of a config, or of settings."""
    rows = [
        (
            f"`{field.name}`",
            type_with_range(field),
            "required" if field.is_required else field.default,
            field.description,
        )
        for field in fields
    ]
    return table(("Field", "Type", "Default", "Meaning"), rows)


def details(field: FieldDoc) -> str:
    """`duration, more than 0, required`."""
    parts = [type_with_range(field)]
    if field.is_required:
        parts.append("required")
    if field.default:
        parts.append(f"default: {field.default}")
    return ", ".join(parts)


def kind_words(doc: OperatorDoc) -> str:
    """`a sink with 1 input`."""
    article = "an" if doc.kind is Kind.OPERATOR else "a"
    return f"{article} {doc.kind}" if doc.kind is Kind.SOURCE else f"{article} {doc.kind}{_input_words(doc)}"


def config_words(doc: OperatorDoc) -> str:
    """What is said in place of a list of settings where there is none."""
    return "Any mapping; its author tells what it takes." if doc.takes_anything else "It has no settings."


def _input_words(doc: OperatorDoc) -> str:
    if doc.inputs is None:
        return ""
    least, greatest = doc.inputs
    if greatest is None:
        return f" with {least} or more inputs"
    count = str(least) if least == greatest else f"{least} to {greatest}"
    return f" with {count} input{'' if greatest == 1 else 's'}"
