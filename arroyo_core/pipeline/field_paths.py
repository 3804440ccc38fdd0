"""Finds the place of a config field that an operator complained about."""

from __future__ import annotations

import re

from arroyo_core.errors import Location
from arroyo_core.pipeline.document import Entry, Scalar, YamlList, YamlMap, YamlValue

_INDEX = re.compile(r"\[([0-9]+)\]\.?")


def locate_field(config: YamlValue, path: str) -> Location:
    """The place of `path` (`predicate`, `expressions.total`, `aggregates[0].column`) inside `config`.

    Where the path leads to nothing, the place of the deepest part that was written.
    """
    at = config.at
    value: YamlValue = config
    rest = path
    while rest:
        step = _index_step(value, rest) or _name_step(value, rest)
        if step is None:
            return at
        value, rest = step
        at = value.at
    return at


def find_text(config: YamlValue, text: str) -> Location | None:
    """The first place inside `config` where exactly this text is written as a value."""
    if isinstance(config, Scalar):
        return config.at if config.text == text else None
    children = config.items if isinstance(config, YamlList) else _entry_values(config)
    return next((at for child in children if (at := find_text(child, text)) is not None), None)


def _index_step(value: YamlValue, path: str) -> tuple[YamlValue, str] | None:
    match = _INDEX.match(path)
    if match is None:
        return None
    # An ordered map counts its entries as a list of messages does.
    items = value.items if isinstance(value, YamlList) else _entry_values(value)
    index = int(match[1])
    return (items[index], path[match.end() :]) if index < len(items) else None


def _name_step(value: YamlValue, path: str) -> tuple[YamlValue, str] | None:
    if not isinstance(value, YamlMap):
        return None
    # The longest key first: a key may itself contain dots and brackets.
    for entry in sorted(value.entries, key=lambda entry: len(entry.key), reverse=True):
        rest = _after(entry, path)
        if rest is not None:
            return entry.value, rest
    return None


def _after(entry: Entry, path: str) -> str | None:
    """What is left of `path` behind the entry's key, None where it does not begin with it."""
    for key in (entry.key, _snake(entry.key)):
        if path == key:
            return ""
        if path.startswith((f"{key}.", f"{key}[")):
            return path[len(key) :].removeprefix(".")
    return None


def _entry_values(value: YamlValue) -> list[YamlValue]:
    return [entry.value for entry in value.entries] if isinstance(value, YamlMap) else []


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", lambda match: f"_{match[1].lower()}", name)
