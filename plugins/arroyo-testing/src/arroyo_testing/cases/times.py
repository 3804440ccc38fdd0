"""Points in time as people write them in YAML: ISO 8601, UTC unless a zone is given."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from arroyo_core.pipeline.document import YamlList, YamlMap, YamlValue, describe, shown
from arroyo_core.pipeline.mistakes import Mistakes

TIME_FORM = "a time such as 2026-03-01T09:15:00Z"

_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?)? ?(Z|z|[-+]\d\d:?\d\d)?",
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_time_ns(text: str) -> int:
    """Nanoseconds since 1970 of a date, or a date and a time; `ValueError` for anything else."""
    match = _ISO.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not {TIME_FORM}")
    day, clock, fraction, zone = match.groups()
    offset = "+00:00" if zone in (None, "Z", "z") else zone
    try:
        moment = datetime.fromisoformat(f"{day}T{clock or '00:00:00'}{offset}")
    except ValueError as error:
        raise ValueError(f"{text!r} is not {TIME_FORM}: {error}") from error
    seconds = (moment - _EPOCH) // timedelta(seconds=1)
    return seconds * 1_000_000_000 + int((fraction or "").ljust(9, "0"))


def format_time_ns(time_ns: int, *, has_zone: bool = True) -> str:
    """As `parse_time_ns` reads it, with as many digits as are needed."""
    seconds, nanoseconds = divmod(time_ns, 1_000_000_000)
    moment = _EPOCH + timedelta(seconds=seconds)
    fraction = f".{nanoseconds:09d}".rstrip("0") if nanoseconds else ""
    return moment.strftime("%Y-%m-%dT%H:%M:%S").zfill(19) + fraction + ("Z" if has_zone else "")


def read_time_us(value: YamlValue, what: str, mistakes: Mistakes) -> int | None:
    """Microseconds since 1970, None after recording a mistake."""
    if isinstance(value, YamlList | YamlMap) or not isinstance(value.value, str):
        mistakes.add(f"{what} must be {TIME_FORM}, not {describe(value)}", at=value.at, value=shown(value))
        return None
    if value.is_unresolved:
        return None
    try:
        return parse_time_ns(value.value) // 1_000
    except ValueError:
        mistakes.add(f"{what} must be {TIME_FORM}, not {describe(value)}", at=value.at, value=shown(value))
        return None
