"""Plain values as values of a document, with the places in SQL that they come from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arroyo_core.errors import Location
from arroyo_core.pipeline.document import Entry, Scalar, YamlList, YamlMap, YamlValue


def _unchanged(text: str) -> str:
    return text


@dataclass(frozen=True, slots=True)
class Placed:
    """Makes document values of a config. A path without a place has that of the nearest one above it.

    `redact` replaces what came from the environment by `${NAME}`, wherever it is in a text.
    """

    at: Location
    places: Mapping[str, Location] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    redact: Callable[[str], str] = _unchanged

    def value(self, value: object, path: str = "", at: Location | None = None) -> YamlValue:
        at = self.places.get(path, at or self.at)
        if isinstance(value, Mapping):
            return mapping(at, [self._entry(str(key), item, path, at) for key, item in value.items()])
        if isinstance(value, Sequence) and not isinstance(value, str):
            return sequence(at, [self.value(item, f"{path}[{index}]", at) for index, item in enumerate(value)])
        return self._scalar(value, path, at)

    def _entry(self, key: str, value: object, path: str, at: Location) -> Entry:
        inner = f"{path}.{key}" if path else key
        return Entry(key=key, key_at=self.places.get(inner, at), value=self.value(value, inner, at))

    def _scalar(self, value: object, path: str, at: Location) -> Scalar:
        text, is_plain = scalar_text(value)
        written = self.secrets.get(path) or self.redact(text)
        is_secret = written != text
        return Scalar(at=at, text=text, written=written, is_plain=is_plain or is_secret, is_substituted=is_secret)


def scalar_text(value: object) -> tuple[str, bool]:
    """A value as a file has it, and whether it stands there without quotes."""
    if value is None:
        return "null", True
    if isinstance(value, bool):
        return ("true" if value else "false"), True
    if isinstance(value, float):
        if math.isnan(value):
            return ".nan", True
        return (repr(value) if math.isfinite(value) else ".inf" if value > 0 else "-.inf"), True
    if isinstance(value, int):
        return str(value), True
    return str(value), False


def mapping(at: Location, entries: Sequence[Entry]) -> YamlMap:
    return YamlMap(at=at, entries=tuple(entries), size=1 + sum(entry.value.size for entry in entries))


def sequence(at: Location, items: Sequence[YamlValue]) -> YamlList:
    return YamlList(at=at, items=tuple(items), size=1 + sum(item.size for item in items))


def scalar(at: Location, value: Any, written: str | None = None) -> Scalar:
    """A scalar; with `written` it came out of the environment."""
    text, is_plain = scalar_text(value)
    return Scalar(
        at=at,
        text=text,
        written=text if written is None else written,
        is_plain=is_plain or written is not None,
        is_substituted=written is not None,
    )
