"""The `parameters` of a pipeline: what they are declared as, and the values they are given."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from arroyo_core.errors import Location
from arroyo_core.pipeline.document import Entry, Scalar, YamlMap, YamlValue, describe, is_unresolved, shown
from arroyo_core.pipeline.mistakes import Mistakes, nearest
from arroyo_core.pipeline.substitution import reference_names
from arroyo_core.pipeline.values import (
    read_bool,
    read_duration_us,
    read_float,
    read_int,
    read_size,
    read_string,
)

#: What a parameter may be set to. A text is read as the parameter's type.
Given: TypeAlias = str | int | float | bool

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEYS = ("type", "default", "description")
_INT64 = {"least": -(2**63), "greatest": 2**63 - 1}
_READERS: Mapping[str, Callable[[YamlValue, str, Mistakes], object]] = {
    "string": read_string,
    "int": lambda value, what, mistakes: read_int(value, what, mistakes, **_INT64),
    "float": read_float,
    "bool": read_bool,
    "duration": read_duration_us,
    "size": read_size,
}
_PLAIN_TYPES = ("int", "float", "bool")
_TYPES_OF_DEFAULTS: Mapping[type, str] = {bool: "bool", int: "int", float: "float"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A declared parameter. `value` is None where a mistake is recorded for it."""

    name: str
    at: Location
    type: str
    description: str
    value: Scalar | None


def read_parameters(section: YamlValue | None, given: Mapping[str, Given], mistakes: Mistakes) -> dict[str, Parameter]:
    """The parameters by name, each with the value that is `given` for it, else its default.

    Recorded are: what is wrong with a declaration, a value that does not have the declared type, a
    parameter without any value, and a name in `given` that is not declared.
    """
    if section is None or (isinstance(section, Scalar) and (section.is_null or section.is_unresolved)):
        entries: Mapping[str, Entry] = {}
    elif isinstance(section, YamlMap):
        entries = {entry.key: entry for entry in section.entries}
    else:
        mistakes.add(
            f"'parameters' must be a mapping from names to {{type, default, description}}, not {describe(section)}",
            at=section.at,
            value=shown(section),
        )
        entries = {}
    for name in given:
        if name not in entries and not is_unresolved(section):
            _add_undeclared(name, entries, mistakes)
    return {name: _read_parameter(entry, entries, given.get(name), mistakes) for name, entry in entries.items()}


def given_text(value: object) -> str | None:
    """A given value as it would be written in the file, None for what no parameter can be."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def _add_undeclared(name: str, declared: Mapping[str, Entry], mistakes: Mistakes) -> None:
    if declared:
        mistakes.add_unknown(f"the pipeline has no parameter {name!r}", at=None, name=name, choices=declared)
    else:
        mistakes.add(f"the pipeline has no parameter {name!r}: it declares none", at=None, value=name)


def _read_parameter(entry: Entry, declared: Mapping[str, Entry], given: Given | None, mistakes: Mistakes) -> Parameter:
    name, at = entry.key, entry.key_at
    what = f"parameter {name!r}"
    if not _NAME.fullmatch(name):
        mistakes.add(
            "the name of a parameter begins with a letter or '_' and may hold letters, digits and '_'",
            at=at,
            value=name,
        )
    fields = _declaration(entry, mistakes)
    if fields is None:
        return Parameter(name=name, at=at, type="string", description="", value=None)
    default = _written(fields, "default")
    type_name = _read_type(fields, default, mistakes)
    description = _written(fields, "description")
    text = read_string(description, f"the description of {what}", mistakes) if description else None
    value = None
    is_default_read = default is None
    if default is not None and type_name is not None:
        value = _read_default(default, type_name, what, declared, mistakes)
        is_default_read = value is not None
    if given is not None and type_name is not None:
        value = _read_given(given, type_name, at, what, mistakes)
    elif default is None and given is None:
        shown_text = f" ({text})" if text else ""
        mistakes.add(f"{what}{shown_text} has no default and needs a value: --set {name}=VALUE", at=at, value=name)
    return Parameter(
        name=name, at=at, type=type_name or "string", description=text or "", value=value if is_default_read else None
    )


def _declaration(entry: Entry, mistakes: Mistakes) -> dict[str, Entry] | None:
    value = entry.value
    if is_unresolved(value):
        return None
    if isinstance(value, Scalar) and value.is_null:
        return {}
    if not isinstance(value, YamlMap):
        mistakes.add(
            f"parameter {entry.key!r} must be a mapping with the keys {', '.join(_KEYS)}, not {describe(value)}",
            at=value.at,
            value=shown(value),
            suggestion=f"{{default: {value.written}}}" if isinstance(value, Scalar) else None,
        )
        return None
    for field in value.entries:
        if field.key not in _KEYS:
            message = f"parameter {entry.key!r} has no key {field.key!r}"
            mistakes.add_unknown(message, at=field.key_at, name=field.key, choices=_KEYS)
    meant = {nearest(field.key, _KEYS) for field in value.entries if field.key not in _KEYS}
    # A misspelled default is one mistake, not two.
    return None if "default" in meant else {field.key: field for field in value.entries if field.key in _KEYS}


def _written(fields: Mapping[str, Entry], key: str) -> YamlValue | None:
    entry = fields.get(key)
    if entry is None or (isinstance(entry.value, Scalar) and entry.value.is_null):
        return None
    return entry.value


def _read_type(fields: Mapping[str, Entry], default: YamlValue | None, mistakes: Mistakes) -> str | None:
    value = _written(fields, "type")
    if value is None:
        meaning = default.value if isinstance(default, Scalar) else None
        return _TYPES_OF_DEFAULTS.get(type(meaning), "string")
    name = read_string(value, "'type'", mistakes)
    if name is not None and name not in _READERS:
        message = f"a parameter's type is one of {', '.join(_READERS)}"
        mistakes.add_unknown(message, at=value.at, name=shown(value), choices=_READERS)
        return None
    return name


def _read_default(
    default: YamlValue, type_name: str, what: str, declared: Mapping[str, Entry], mistakes: Mistakes
) -> Scalar | None:
    if isinstance(default, Scalar):
        others = [name for name in reference_names(default.written) if name in declared]
        if others:
            mistakes.add(
                f"the default of {what} cannot depend on the parameter {others[0]!r}: it may read the environment only",
                at=default.at,
                value=shown(default),
            )
            return None
        # In quotes it had to be where it stands in braces.
        if default.is_substituted:
            default = replace(default, is_plain=True)
    return _typed(default, type_name, f"the default of {what}", mistakes)


def _read_given(given: Given, type_name: str, at: Location, what: str, mistakes: Mistakes) -> Scalar | None:
    text = given_text(given)
    if text is None:
        mistakes.add(
            f"the value given for {what} must be text, a number or a boolean, not {type(given).__name__}", at=at
        )
        return None
    scalar = Scalar(at=at, text=text, written=text, is_plain=type_name in _PLAIN_TYPES, is_given=True)
    return _typed(scalar, type_name, f"the value given for {what}", mistakes)


def _typed(value: YamlValue, type_name: str, what: str, mistakes: Mistakes) -> Scalar | None:
    read = _READERS[type_name](value, what, mistakes)
    if read is None or not isinstance(value, Scalar):
        return None
    is_plain = type_name in _PLAIN_TYPES
    if type_name == "int" and not value.is_substituted:
        # `1e6` is a whole number, and must be one wherever it is used.
        return replace(value, text=str(read), written=str(read), is_plain=is_plain)
    return replace(value, is_plain=is_plain)
