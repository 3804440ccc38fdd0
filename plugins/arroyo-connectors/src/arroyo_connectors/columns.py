"""Columns that people name: whether they are there, once, and of the type that they need."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import pyarrow as pa

from arroyo_core.errors import ConfigError


def check_column(name: str, known: Sequence[str], field: str) -> None:
    """Raise `ConfigError` where there is no such column."""
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        raise ConfigError(
            f"no column {name!r}", field=field, value=name, allowed=known, suggestion=near[0] if near else None
        )


def check_distinct(columns: Sequence[str]) -> None:
    """Raise `ConfigError` where a column is named twice."""
    for place, name in enumerate(columns):
        if name in columns[:place]:
            raise ConfigError(f"column {name!r} is named twice", field=f"columns[{place}]", value=name)


def check_event_time(name: str, schema: pa.Schema) -> None:
    """Raise `ConfigError` where the column of the event time is not there, or has no times."""
    check_column(name, schema.names, "event_time_field")
    kind = schema.field(name).type
    if not pa.types.is_timestamp(kind):
        raise ConfigError(f"column {name!r} is {kind}, not a timestamp", field="event_time_field", value=name)
