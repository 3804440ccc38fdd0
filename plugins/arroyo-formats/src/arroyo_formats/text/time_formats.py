"""Dates and times in formats of one's own, such as `%d/%m/%Y %H:%M`: checked once, read a column at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?|september|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_WEEKDAY = r"(?i:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?i:day)?"
#: What each directive stands for: the part of a time, and its pattern; numbers of two digits may also have one.
_PARTS = {
    "Y": ("year", r"\d{4}"),
    "y": ("short_year", r"\d{2}"),
    "m": ("month", r"\d{1,2}"),
    "b": ("month_name", _MONTH),
    "d": ("day", r"\d{1,2}"),
    "a": ("weekday", _WEEKDAY),
    "H": ("hour", r"\d{1,2}"),
    "I": ("half_hour", r"\d{1,2}"),
    "p": ("half", r"(?i:[ap]\.?m\.?)"),
    "M": ("minute", r"\d{1,2}"),
    "S": ("second", r"\d{1,2}"),
    "f": ("fraction", r"\d{1,9}"),
    "z": ("offset", r"(?:[zZ]|[+-]\d{2}(?::?\d{2})?)"),
}
_SAME = {"B": "%b", "A": "%a", "e": "%d", "F": "%Y-%m-%d", "D": "%m/%d/%y", "T": "%H:%M:%S", "R": "%H:%M"}
ALLOWED = ", ".join(f"%{letter}" for letter in [*_PARTS, *_SAME, "%"])
_DATE_PARTS = {"year", "short_year", "month", "month_name", "day", "weekday"}
#: Years of two digits below it are of this century.
_PIVOT = 69
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_TOKEN = re.compile(r"%(.)|(\s+)|([^%\s]+)|(%)", re.DOTALL)


class TimeFormatError(ValueError):
    """A format that cannot be read by, and why."""


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """A format, as a pattern with a group for each part."""

    text: str
    pattern: str
    parts: frozenset[str]

    @property
    def has_zone(self) -> bool:
        return "offset" in self.parts

    def read(self, column: pa.Array, unit: str) -> pa.Array:
        """Numbers of units since 1970 (UTC, where there is an offset), null for texts that are not in this format."""
        found = pc.extract_regex(column, self.pattern)
        parts = {name: pc.struct_field(found, name) for name in self.parts}
        is_good = found.is_valid().to_numpy(zero_copy_only=False)
        days, is_date = _days(parts, len(column))
        seconds, nanos, is_time = _seconds(parts, len(column))
        per_second = _PER_SECOND[unit]
        seconds = seconds + days * 86_400
        # No part of a time is lost silently, and none wraps around.
        least = 10**9 // per_second
        is_good = is_good & is_date & is_time & (nanos % least == 0) & (np.abs(seconds) < 2**63 // per_second - 1)
        values = np.where(is_good, seconds, 0) * per_second + nanos // least
        return pa.array(values, mask=~is_good)


def compile_format(text: str, *, is_date: bool = False) -> TimeFormat:
    """A format of timestamps, or of dates alone; raises `TimeFormatError`."""
    expanded = re.sub(r"%(.)", lambda match: _SAME.get(match[1], match[0]), text, flags=re.DOTALL)
    names: list[str] = []
    pieces: list[str] = []
    tokens = list(_TOKEN.finditer(expanded))
    for place, token in enumerate(tokens):
        letter, space, literal, stray = token.groups()
        if stray:
            raise TimeFormatError(f"'%' begins no directive; allowed are {ALLOWED}")
        if letter is None or letter == "%":
            pieces.append(r"\s+" if space else re.escape(literal or "%"))
            continue
        if letter not in _PARTS:
            raise TimeFormatError(f"there is no directive '%{letter}'; allowed are {ALLOWED}")
        name, pattern = _PARTS[letter]
        if name in names:
            raise TimeFormatError(f"'%{letter}' stands twice")
        beside = [tokens[each] for each in (place - 1, place + 1) if 0 <= each < len(tokens)]
        if pattern == r"\d{1,2}" and any(_is_digits(other) for other in beside):
            # Of digits without anything between, nobody could tell which belong together.
            pattern = r"\d{2}"
        names.append(name)
        pieces.append(f"(?P<{name}>{pattern})")
    _check_parts(set(names), is_date=is_date)
    return TimeFormat(text, f"^{''.join(pieces)}$", frozenset(names))


def _is_digits(token: re.Match[str]) -> bool:
    letter, literal = token[1], token[3]
    if letter is not None and letter in _PARTS:
        return _PARTS[letter][1].startswith(r"\d")
    return literal is not None and literal[0].isdigit()


def _check_parts(names: set[str], *, is_date: bool) -> None:
    for one, other, shown in (
        ("year", "short_year", "%Y and %y"),
        ("month", "month_name", "%m and %b"),
        ("hour", "half_hour", "%H and %I"),
    ):
        if {one, other} <= names:
            raise TimeFormatError(f"{shown} say the same: give one of them")
    for what, allowed in (("a year (%Y)", {"year", "short_year"}), ("a month (%m)", {"month", "month_name"})):
        if not names & allowed:
            raise TimeFormatError(f"it needs {what}")
    if "day" not in names:
        raise TimeFormatError("it needs a day (%d)")
    if ("half_hour" in names) != ("half" in names):
        raise TimeFormatError("%I and %p need each other")
    if is_date and names - _DATE_PARTS:
        raise TimeFormatError("it has a time of day, which a date has not")
    for part, needed, shown in (
        ("minute", {"hour", "half_hour"}, "%M needs %H or %I"),
        ("second", {"minute"}, "%S needs %M"),
        ("fraction", {"second"}, "%f needs %S"),
    ):
        if part in names and not names & needed:
            raise TimeFormatError(shown)


def _numbers(parts: dict[str, pa.Array], name: str, rows: int, default: int = 0) -> Numbers:
    if name not in parts:
        return np.full(rows, default, dtype=np.int64)
    found: Numbers = parts[name].cast(pa.int64()).fill_null(default).to_numpy()
    return found


def _days(parts: dict[str, pa.Array], rows: int) -> tuple[Numbers, Mask]:
    """Days since 1970, and which of them there are."""
    if "year" in parts:
        years = _numbers(parts, "year", rows, 1970)
    else:
        short = _numbers(parts, "short_year", rows, 70)
        years = short + np.where(short < _PIVOT, 2000, 1900)
    if "month_name" in parts:
        names = pc.utf8_lower(pc.utf8_slice_codeunits(parts["month_name"], 0, 3))
        months = pc.index_in(names, value_set=pa.array(_MONTHS)).fill_null(0).to_numpy().astype(np.int64) + 1
    else:
        months = _numbers(parts, "month", rows, 1)
    days = _numbers(parts, "day", rows, 1)
    is_month = (months >= 1) & (months <= 12)
    since = (years - 1970) * 12 + np.where(is_month, months, 1) - 1
    first = since.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    after = (since + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return first + days - 1, is_month & (days >= 1) & (days <= after - first)


def _seconds(parts: dict[str, pa.Array], rows: int) -> tuple[Numbers, Numbers, Mask]:
    """Seconds of the day in UTC, nanoseconds, and which of them there are."""
    hours, is_good = _numbers(parts, "hour", rows), np.ones(rows, dtype=np.bool_)
    if "half_hour" in parts:
        half_hours = _numbers(parts, "half_hour", rows, 12)
        is_good = (half_hours >= 1) & (half_hours <= 12)
        is_late = pc.match_substring_regex(parts["half"], "^(?i:p)").fill_null(False).to_numpy(zero_copy_only=False)
        hours = half_hours % 12 + 12 * is_late
    minutes, seconds = _numbers(parts, "minute", rows), _numbers(parts, "second", rows)
    is_good = is_good & (hours < 24) & (minutes < 60) & (seconds < 60)
    nanos = np.zeros(rows, dtype=np.int64)
    if "fraction" in parts:
        nanos = pc.utf8_rpad(parts["fraction"], 9, "0").cast(pa.int64()).fill_null(0).to_numpy()
    total = hours * 3600 + minutes * 60 + seconds
    return total - _offsets(parts) if "offset" in parts else total, nanos, is_good


def _offsets(parts: dict[str, pa.Array]) -> Numbers:
    """Seconds east of Greenwich."""
    texts = pc.replace_substring_regex(parts["offset"], "^[zZ]$", "+0000")
    texts = pc.utf8_rpad(pc.replace_substring(texts, ":", ""), 5, "0").fill_null("+0000")
    hours = pc.utf8_slice_codeunits(texts, 1, 3).cast(pa.int64()).to_numpy()
    minutes = pc.utf8_slice_codeunits(texts, 3, 5).cast(pa.int64()).to_numpy()
    signs = np.where(pc.starts_with(texts, "-").to_numpy(zero_copy_only=False), -1, 1)
    found: Numbers = signs * (hours * 3600 + minutes * 60)
    return found
