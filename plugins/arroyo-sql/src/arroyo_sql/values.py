"""Values of options and settings: texts, numbers, booleans, intervals and lists of such."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from arroyo_core.api.units import format_duration_us
from arroyo_core.pipeline.document import resolve_plain
from arroyo_core.pipeline.mistakes import nearest
from arroyo_sql.cursor import Cursor, StatementError
from arroyo_sql.lexer import Kind
from arroyo_sql.references import Substitution
from arroyo_sql.script import Option, OptionValue

MAX_DEPTH = 16
_MAX_DIGITS = 100
_UNITS: Mapping[str, int] = {
    "microsecond": 1,
    "us": 1,
    "millisecond": 1_000,
    "ms": 1_000,
    "second": 1_000_000,
    "sec": 1_000_000,
    "s": 1_000_000,
    "minute": 60_000_000,
    "min": 60_000_000,
    "m": 60_000_000,
    "hour": 3_600_000_000,
    "hr": 3_600_000_000,
    "h": 3_600_000_000,
    "day": 86_400_000_000,
    "d": 86_400_000_000,
    "week": 604_800_000_000,
    "w": 604_800_000_000,
}
_PART = re.compile(r"\s*+([0-9]++)(?:\.([0-9]{1,6}))?\s*+([A-Za-z]++)\s*+")


@dataclass(frozen=True, slots=True)
class Value:
    """A value, and how it was written where it has references; what came from the environment is a secret."""

    value: OptionValue
    written: str | None = None
    is_secret: bool = False


def read_value(cursor: Cursor, substitution: Substitution, depth: int = 0) -> Value:
    """The value at the cursor; raises `StatementError`."""
    token = cursor.token
    if token is None or depth > MAX_DEPTH:
        raise cursor.unexpected("a value")
    at = cursor.at()
    cursor.index += 1
    if token.kind is Kind.STRING or token.kind is Kind.REFERENCE:
        if "$" not in token.value or token.escape.startswith("$"):
            return Value(token.value)
        resolved = substitution.resolve(token.value, token)
        meaning: OptionValue = resolved.text
        if token.kind is Kind.REFERENCE or resolved.is_plain:
            plain = resolve_plain(resolved.text)
            meaning = resolved.text if plain is None else plain
        return Value(meaning, resolved.written, resolved.is_substituted)
    if token.kind is Kind.NUMBER:
        return Value(_number(token.text, cursor, at_offset=token.start))
    if token.is_sign("-") or token.is_sign("+"):
        number = cursor.token
        if number is None or number.kind is not Kind.NUMBER or number.start != token.end:
            raise cursor.unexpected("a number")
        cursor.index += 1
        value = _number(number.text, cursor, at_offset=number.start)
        return Value(-value if token.text == "-" else value)
    if token.is_word("INTERVAL"):
        return Value(_interval(cursor))
    if token.is_word("ARRAY") and cursor.is_at("["):
        cursor.index += 1
        return _list(cursor, "]", substitution, depth)
    if token.is_sign("["):
        return _list(cursor, "]", substitution, depth)
    if token.is_word("TRUE") or token.is_word("FALSE"):
        return Value(token.value == "true")
    cursor.index -= 1
    if token.kind is Kind.WORD:
        message = f"a value that is a text stands in quotes: '{token.text}'"
        raise StatementError(message, at=at, value=token.text, suggestion=f"'{token.text}'")
    raise cursor.unexpected("a text in quotes, a number, TRUE, FALSE, an INTERVAL or a list in [ ]")


def read_options(cursor: Cursor, substitution: Substitution) -> dict[str, Option]:
    """`(key = value, ...)` behind WITH."""
    cursor.expect("(", where="behind WITH")
    options: dict[str, Option] = {}
    while not cursor.accept(")"):
        key_at = cursor.at()
        key = _key(cursor)
        if not cursor.accept("="):
            raise cursor.unexpected(f"= behind the option {key!r}")
        at = cursor.at()
        value = read_value(cursor, substitution)
        if key in options:
            first = options[key].key_at
            message = f"option {key!r} is written twice: first in line {first.line}, column {first.column}"
            raise StatementError(message, at=key_at, value=key)
        options[key] = Option(key, value.value, at, key_at, value.written, value.is_secret)
        if not cursor.is_at(")"):
            cursor.expect(",", where="or ) behind an option")
    return options


def _key(cursor: Cursor) -> str:
    token = cursor.take("the name of an option")
    if token.kind is Kind.STRING:
        if not token.value:
            raise StatementError("the name of an option must not be empty", at=cursor.source.at(token.start))
        return token.value
    cursor.index -= 1
    parts = [cursor.name("the name of an option").value]
    while cursor.accept("."):
        parts.append(cursor.name("a name behind the dot").value)
    return ".".join(parts)


def _list(cursor: Cursor, closing: str, substitution: Substitution, depth: int) -> Value:
    items: list[OptionValue] = []
    is_secret = False
    while not cursor.accept(closing):
        value = read_value(cursor, substitution, depth + 1)
        items.append(value.value)
        is_secret |= value.is_secret
        if not cursor.is_at(closing):
            cursor.expect(",", where=f"or {closing} behind a value")
    return Value(items, is_secret=is_secret)


def _number(text: str, cursor: Cursor, *, at_offset: int) -> int | float:
    if len(text) > _MAX_DIGITS:
        raise StatementError("the number has too many digits", at=cursor.at(at_offset), value=f"{text[:20]}…")
    return int(text) if text.isdigit() else float(text)


def _interval(cursor: Cursor) -> str:
    """`INTERVAL '10 seconds'`, `INTERVAL '10' SECOND` or `INTERVAL 10 SECOND`, as the text of a duration."""
    at = cursor.at()
    token = cursor.take("an interval")
    if token.kind not in (Kind.STRING, Kind.NUMBER):
        cursor.index -= 1
        raise cursor.unexpected("an interval such as INTERVAL '10 seconds'")
    text = token.value
    unit = cursor.token
    if unit is not None and unit.kind is Kind.WORD and _unit(unit.value) is not None:
        cursor.index += 1
        text = f"{text} {unit.value}"
    duration_us = parse_interval_us(text)
    if duration_us is None:
        words = [word for word in text.lower().split() if word.isalpha()]
        near = nearest(words[0], [f"{unit}s" for unit in _UNITS if len(unit) > 3]) if words else None
        message = f"{text[:40]!r} is not an interval: write a number and a unit from microseconds to weeks"
        raise StatementError(message, at=at, value=text[:40], suggestion=near)
    return format_duration_us(duration_us)


def parse_interval_us(text: str) -> int | None:
    """The length of an interval such as `1 hour 30 minutes` in microseconds; None where it is none."""
    total, at = 0, 0
    while at < len(text):
        match = _PART.match(text, at)
        unit = _unit(match[3]) if match else None
        if match is None or unit is None or len(match[1]) > 15:
            return None
        fraction = match[2] or ""
        total += (int(match[1] + fraction) * unit) // 10 ** len(fraction)
        at = match.end()
    return total if at else None


def _unit(word: str) -> int | None:
    lowered = word.lower()
    return _UNITS.get(lowered) or (_UNITS.get(lowered[:-1]) if lowered.endswith("s") else None)
