"""JSON Schema for single values, as `arroyo_core.pipeline.values` reads them.

Draft 7, because that is what all editors know. Keywords for one type do not touch the others, so that a value of
several types needs no `anyOf`, whose errors are hard to read: `{"type": ["integer", "string"], "minimum": 1}`.
A text with a reference (`${NAME}`) is accepted everywhere: what it stands for is not known before the file is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from arroyo_core.api.units import DURATION_FORM, DURATION_UNITS, SIZE_FORM, SIZE_UNITS

DIALECT = "http://json-schema.org/draft-07/schema#"

Schema: TypeAlias = dict[str, Any]

_NAME = r"\$\{[A-Za-z_][A-Za-z0-9_]*(?::-[^}]*)?\}"
#: Somewhere in a text.
REFERENCE = r"\$\{"
#: A whole text in which every `${` begins a reference.
TEXT = rf"^[^$]*(?:(?:\$\$|{_NAME}|\$(?![{{$]))[^$]*)*$"
_TEXT_FORM = "'${' begins no variable: write ${NAME} or ${NAME:-default}, or $$ for a dollar sign"
_WHOLE = r"^[-+]?(?:0|[1-9][0-9]*)(?:\.0*)?(?:[eE]\+?[0-9]+)?$"
_DECIMAL = (
    r"^[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$"
    r"|^(?:NaN|-?Infinity|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)
_MOMENT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:[Zz]|[-+][0-9]{2}:[0-9]{2})$"
_BASE64 = r"^[A-Za-z0-9+/_-]*={0,2}$"


def text(*, is_required: bool = False) -> Schema:
    """A string; one that is required has something in it."""
    schema: Schema = {"type": "string", "pattern": TEXT, "patternErrorMessage": _TEXT_FORM}
    filled = {"pattern": r"\S", "patternErrorMessage": "This must not be empty."}
    return {**schema, "allOf": [filled]} if is_required else schema


def matching(pattern: re.Pattern[str], form: str) -> Schema:
    """A string that has a form as a whole, or is made from references."""
    return _patterned(["string"], f"^(?:{pattern.pattern})$", form)


def whole_number(*, least: int | None = None, greatest: int | None = None) -> Schema:
    limits = {"minimum": least, "maximum": greatest}
    return _patterned(["integer", "string"], _WHOLE, "This must be a whole number.") | _given(limits)


def decimal_number(*, least: int | None = None, greatest: int | None = None) -> Schema:
    limits = {"minimum": least, "maximum": greatest}
    return _patterned(["number", "string"], _DECIMAL, "This must be a number.") | _given(limits)


def boolean() -> Schema:
    return _patterned(["boolean", "string"], None, "This must be true or false.")


def duration(*, is_positive: bool = False) -> Schema:
    """A number and a unit; 0 needs none. Limits that are not zero need arithmetic: the planner knows them."""
    form = f"A duration is {DURATION_FORM}."
    units = "|".join(DURATION_UNITS)
    if is_positive:
        return _patterned(["string"], rf"^\s*(?=.*[1-9])[0-9]+(?:\.[0-9]+)? ?(?:{units})\s*$", form)
    pattern = rf"^\s*(?:0+(?:\.0+)?|[0-9]+(?:\.[0-9]+)? ?(?:{units}))\s*$"
    zero = {"if": {"type": "number"}, "then": {"const": 0, "errorMessage": form}}
    return _patterned(["string", "number"], pattern, form) | zero


def size(*, least: int | None = None, greatest: int | None = None) -> Schema:
    """A number of bytes, with a unit or without; `greatest` holds for plain numbers."""
    form = f"A size is {SIZE_FORM}."
    units = "|".join(SIZE_UNITS)
    limits = {"minimum": least or 0, "maximum": greatest}
    pattern = rf"^\s*[0-9]+(?:\.[0-9]+)? ?(?:{units})?\s*$"
    return _patterned(["integer", "string"], pattern, form) | _given(limits)


def moment() -> Schema:
    return _patterned(["string"], _MOMENT, "This must be a time such as 2026-01-31T12:00:00Z.")


def base64() -> Schema:
    return _patterned(["string"], _BASE64, "This must be bytes in base64.")


def one_of(names: Sequence[str], descriptions: Sequence[str], *, others: Iterable[str | int] = ()) -> Schema:
    """One of some names, which editors propose, in any case; `others` are accepted, and not proposed."""
    spelled = [*names, *(other for other in others if isinstance(other, str))]
    pattern = "|".join(dict.fromkeys(_any_case(name) for name in spelled))
    proposed: list[str | None] = [None if name == "null" else name for name in names]
    accepted: list[Schema] = [{"type": "string", "pattern": f"^(?:{pattern})$|{REFERENCE}"}]
    numbers = [other for other in others if isinstance(other, int)]
    if numbers:
        # Not as an enum: editors would name the numbers among the names.
        accepted.append({"type": "integer", "minimum": min(numbers), "maximum": max(numbers)})
    return {"anyOf": [{"enum": proposed} | _enum_descriptions(descriptions), *accepted]}


def suggestions(names: Sequence[str], descriptions: Sequence[str], *, is_required: bool = False) -> Schema:
    """Any text; some are proposed."""
    return {"anyOf": [{"enum": list(names)} | _enum_descriptions(descriptions), text(is_required=is_required)]}


def nullable(schema: Schema) -> Schema:
    """The same, for what may be left empty: a key without a value counts as not written."""
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    if "anyOf" in schema:
        # Into the last choice, whatever it is: editors would propose a choice of its own.
        *others, last = schema["anyOf"]
        return {**schema, "anyOf": [*others, nullable(last)]}
    if "type" not in schema:
        return schema
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return {**schema, "type": [*types, "null"]}


def _patterned(types: list[str], pattern: str | None, form: str) -> Schema:
    return {
        "type": types[0] if len(types) == 1 else types,
        "pattern": f"{pattern}|{REFERENCE}" if pattern else REFERENCE,
        "patternErrorMessage": form,
        "errorMessage": form,
    }


def _enum_descriptions(descriptions: Sequence[str]) -> Schema:
    return {"markdownEnumDescriptions": list(descriptions)} if any(descriptions) else {}


def _given(keywords: Schema) -> Schema:
    return {key: value for key, value in keywords.items() if value is not None}


def _any_case(name: str) -> str:
    """A pattern for the name in any case; JSON Schema's have no flag for that."""
    return "".join(f"[{letter.lower()}{letter.upper()}]" if letter.isalpha() else re.escape(letter) for letter in name)
