"""The settings for dates and times that formats of text have: `timestamp_formats`, `date_formats`, `time_zone`."""

from __future__ import annotations

import difflib
import zoneinfo
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.errors import ConfigError
from arroyo_formats.text.time_formats import TimeFormat, TimeFormatError, compile_format
from arroyo_formats.text.timestamps import UTC, TimeTexts


def time_texts(settings: Any) -> TimeTexts:
    """How dates and times are written, by the settings of a format; raises `ConfigError` naming one of them."""
    zone = settings.time_zone or UTC
    _check_zone(zone)
    return TimeTexts(
        timestamp_formats=_compiled("timestamp_formats", settings.timestamp_formats, is_date=False),
        date_formats=_compiled("date_formats", settings.date_formats, is_date=True),
        zone=zone,
    )


def _compiled(name: str, texts: Iterable[str], *, is_date: bool) -> tuple[TimeFormat, ...]:
    found = []
    for place, text in enumerate(texts):
        try:
            found.append(compile_format(text, is_date=is_date))
        except TimeFormatError as error:
            what = "dates" if is_date else "timestamps"
            raise ConfigError(
                f"{text!r} is not a format of {what}: {error}", field=f"{name}[{place}]", value=text
            ) from error
    return tuple(found)


@lru_cache(maxsize=64)
def _check_zone(zone: str) -> None:
    try:
        pc.assume_timezone(pa.array([0], pa.timestamp("s")), zone)
    except pa.ArrowInvalid as error:
        near = difflib.get_close_matches(zone, zoneinfo.available_timezones(), n=1)
        raise ConfigError(
            f"there is no time zone {zone!r}; give a name such as Europe/Amsterdam, or UTC",
            field="time_zone",
            value=zone,
            suggestion=near[0] if near else None,
        ) from error
