"""Durations and sizes as people write them: `10s`, `500ms`, `64MiB`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

#: Microseconds in one of each unit.
DURATION_UNITS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}

#: Bytes in one of each unit.
SIZE_UNITS = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}

DURATION_FORM = "a number and one of us, ms, s, m, h, d, such as 10s, 500ms or 1.5h"
SIZE_FORM = "a number of bytes, or a number and one of B, KB, MB, GB, TB, KiB, MiB, GiB, TiB, such as 64MiB or 10MB"

_NUMBER_AND_UNIT = re.compile(r"([0-9]+(?:\.[0-9]+)?)[ ]?([A-Za-z]*)")
_INT64_MAX = 2**63 - 1


def parse_duration_us(text: str) -> int:
    """The microseconds of a duration such as `10s`; `0` needs no unit.

    Raises `ValueError`, saying what is allowed, for anything else: a bare number, a sign, an
    unknown unit, a fraction of a microsecond, more than 64 bits.
    """
    return _parse(text, units=DURATION_UNITS, what="duration", form=DURATION_FORM)


def parse_bytes(text: str) -> int:
    """The bytes of a size such as `64MiB`, `10MB` or `4096`.

    Raises `ValueError`, saying what is allowed, for anything else.
    """
    return _parse(text, units={**SIZE_UNITS, "": 1}, what="size", form=SIZE_FORM)


def format_duration_us(duration_us: int) -> str:
    """The shortest exact form in one unit: `90s`, `1500us`; read back by `parse_duration_us`."""
    if duration_us == 0:
        return "0s"
    unit, size = next((unit, size) for unit, size in reversed(DURATION_UNITS.items()) if duration_us % size == 0)
    return f"{duration_us // size}{unit}"


def format_bytes(size: int) -> str:
    """The shortest exact form in a binary unit: `64MiB`, `1500B`; read back by `parse_bytes`."""
    units = ("TiB", "GiB", "MiB", "KiB", "B")
    unit = next(unit for unit in units if size % SIZE_UNITS[unit] == 0) if size else "B"
    return f"{size // SIZE_UNITS[unit]}{unit}"


def _parse(text: str, *, units: Mapping[str, int], what: str, form: str) -> int:
    match = _NUMBER_AND_UNIT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a {what}: expected {form}")
    number, unit = match.groups()
    # Nothing is nothing in every unit.
    factor = 1 if Decimal(number) == 0 and not unit else units.get(unit)
    if factor is None:
        fault = f"has the unknown unit {unit!r}" if unit else "has no unit"
        raise ValueError(f"{what} {text!r} {fault}: expected {form}")
    # Decimal, because 0.1 of a unit must not gain or lose a microsecond.
    exact = Decimal(number) * factor
    if exact != int(exact):
        raise ValueError(f"{what} {text!r} is not a whole number of {next(iter(units))}: expected {form}")
    if exact > _INT64_MAX:
        raise ValueError(f"{what} {text!r} is too large: it must fit in 64 bits")
    return int(exact)
