"""Constants of a condition, as the values of a column are compared with them.

A filter may round before it compares, such as a time to the unit of the column. So a constant stands for a few values.
What holds for none of them does not hold in any filter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime

from arroyo_formats.conditions.bounds import EPOCH_DAY, Bounds, Kind
from arroyo_formats.conditions.numbers import Candidate, Number, number_candidates

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME = re.compile(r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(?:Z|\+00:00)?")
_SECOND = 10**9


@dataclass(frozen=True, slots=True)
class Day:
    """Days since 1970."""

    number: int


@dataclass(frozen=True, slots=True)
class Moment:
    """Nanoseconds since 1970, in UTC."""

    ns: int


Constant = bool | Number | str | Day | Moment


def read_day(text: str) -> Day | None:
    """A day as `2026-01-31`; None for anything else."""
    if not _DAY.fullmatch(text):
        return None
    try:
        return Day(date.fromisoformat(text).toordinal() - EPOCH_DAY)
    except ValueError:
        return None


def read_moment(text: str) -> Moment | None:
    """A time in UTC as `2026-01-31T12:00:00.5Z`, or a day for its beginning; None for anything else."""
    day = read_day(text)
    if day is not None:
        return Moment(day.number * 86_400 * _SECOND)
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    try:
        moment = datetime.fromisoformat(f"{found[1]}T{found[2]}")
    except ValueError:
        return None
    days = moment.toordinal() - EPOCH_DAY
    seconds = moment.hour * 3600 + moment.minute * 60 + moment.second
    return Moment((days * 86_400 + seconds) * _SECOND + int((found[3] or "").ljust(9, "0")))


def fits(constant: Constant, kind: Kind) -> bool:
    """Whether values of a kind are compared with a constant."""
    if isinstance(constant, Number):
        return kind is Kind.NUMBER
    return next(candidates(constant, Bounds(kind)), None) is not None


def candidates(constant: Constant, bounds: Bounds) -> Iterator[Candidate]:
    """The values that a constant stands for beside values with these bounds; none where nothing is known of that."""
    kind = bounds.kind
    if isinstance(constant, bool):
        if kind is Kind.BOOLEAN:
            yield Candidate(constant)
    elif isinstance(constant, Number):
        if kind is Kind.NUMBER:
            yield from number_candidates(constant, bounds)
    elif isinstance(constant, str) and kind is Kind.TEXT:
        yield Candidate(constant.encode())
    elif kind is Kind.DAY:
        day = read_day(constant) if isinstance(constant, str) else constant
        if isinstance(day, Day):
            yield Candidate(day.number)
    elif kind is Kind.TIME:
        yield from _times(constant)


def _times(constant: Constant) -> Iterator[Candidate]:
    if isinstance(constant, Day):
        yield Candidate(constant.number * 86_400 * _SECOND)
        return
    moment = read_moment(constant) if isinstance(constant, str) else constant
    if not isinstance(moment, Moment):
        return
    yield Candidate(moment.ns)
    for unit in (10**3, 10**6, 10**9):
        if moment.ns % unit:
            yield Candidate(moment.ns - moment.ns % unit)
            yield Candidate(moment.ns - moment.ns % unit + unit)
