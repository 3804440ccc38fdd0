"""A YAML document as values that know their place and how they were written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from arroyo_core.errors import Location

#: What a scalar can mean. There are no dates, octal numbers, `yes` or `no`: they are strings.
ScalarValue: TypeAlias = bool | int | float | str | None

_NULL = {"", "~", "null", "Null", "NULL"}
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,99})")
_FLOAT = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_SPECIAL_FLOAT = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


def resolve_plain(text: str) -> ScalarValue:
    """The meaning of an unquoted scalar: null, true, false, a decimal number, else a string."""
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _SPECIAL_FLOAT.fullmatch(text):
        return float(text.replace(".", "", 1))
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenSpan:
    """A part of a text that was given for a parameter: `text[start:stop]`."""

    name: str
    start: int
    stop: int
    #: A number or a boolean, checked to be one.
    is_plain: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """One value. `text` may hold secrets of the environment; only `written` may be shown.

    A text that came from the environment is a string which also serves as a number or a
    boolean where one is wanted; a quoted text is always a string.
    """

    at: Location
    text: str = field(repr=False)
    written: str
    is_plain: bool
    is_substituted: bool = False
    #: Holds a parameter's value: text where text is wanted, whatever else it may mean.
    is_parameter: bool = False
    #: A mistake is recorded for it already (a variable that is not set): say nothing more about it.
    is_unresolved: bool = False
    #: It is a value that was given for a parameter, and not written in the file.
    is_given: bool = False
    #: Where such values are in `text`, among other text.
    given: tuple[GivenSpan, ...] = ()
    size: int = 1

    @property
    def value(self) -> ScalarValue:
        return resolve_plain(self.text) if self.is_plain and not self.is_substituted else self.text

    @property
    def typed_value(self) -> ScalarValue:
        """The value for a field that wants a number or a boolean."""
        return resolve_plain(self.text) if self.is_plain else self.text

    @property
    def is_null(self) -> bool:
        return self.is_plain and not self.is_substituted and self.text in _NULL


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlList:
    """`size` counts all values inside, aliases expanded."""

    at: Location
    items: Sequence[YamlValue]
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    key: str
    key_at: Location
    value: YamlValue


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlMap:
    """Entries in the order written, no key twice; `size` counts all values inside, aliases expanded."""

    at: Location
    entries: Sequence[Entry]
    size: int

    def entry(self, *keys: str) -> Entry | None:
        """The entry of the first of `keys` that was written."""
        return next((entry for entry in self.entries if entry.key in keys), None)


YamlValue: TypeAlias = Scalar | YamlList | YamlMap


def is_unresolved(value: YamlValue | None) -> bool:
    return isinstance(value, Scalar) and value.is_unresolved


def has_unresolved(value: YamlValue | None) -> bool:
    """Whether any value inside is unresolved."""
    if isinstance(value, YamlList):
        return any(has_unresolved(item) for item in value.items)
    if isinstance(value, YamlMap):
        return any(has_unresolved(entry.value) for entry in value.entries)
    return is_unresolved(value)


def describe(value: YamlValue) -> str:
    """A value as an error message names it, with secrets in their written form."""
    if isinstance(value, YamlList):
        return "a list"
    if isinstance(value, YamlMap):
        return "a mapping"
    if value.is_null:
        return "nothing"
    meaning = value.value
    if isinstance(meaning, bool):
        return value.written
    if isinstance(meaning, int | float):
        return f"the number {value.written}"
    return f"the string {shorten(value.written)!r}"


def shown(value: YamlValue) -> str:
    """The offending value of an error, as written."""
    return shorten(value.written) if isinstance(value, Scalar) else describe(value)


def shorten(text: str, limit: int = 80) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
