"""When the time of a folder is over: one like `at_hour=2026-01-31T05`, by the watermark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from arroyo_core.api import ArroyoSchema
from arroyo_core.errors import ConfigError
from arroyo_filesystem.partitions import TIME_UNITS, time_columns

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class FolderTimes:
    """Tells folders whose rows have all come, by the parts of the event time in their names."""

    #: By the name of a folder up to its `=`, the part of the time that follows.
    units: dict[str, str]

    @classmethod
    def of(cls, stream: ArroyoSchema, partition_by: Sequence[str]) -> FolderTimes:
        """For the folders of a sink; raises `ConfigError` where the watermark says nothing about them."""
        field, column = "close_at_watermark", stream.timestamp_column
        if column is None:
            raise ConfigError("the input has no event time, so no watermark passes its rows", field=field)
        units = {
            quote(name, safe=""): unit
            for name, (unit, of) in time_columns(stream.schema, partition_by).items()
            if of == column
        }
        if not units:
            raise ConfigError(
                f"partition_by has no part of the event time {column!r}, so that folders are never over",
                field=field,
                value=list(partition_by),
                allowed=[f"{unit}({column})" for unit in TIME_UNITS],
            )
        return cls(units)

    def is_over(self, folder: str, watermark_us: int) -> bool:
        """Whether no row that is not late can come for a folder, relative to that of the sink."""
        named = (part.partition("=") for part in folder.split("/"))
        ends = (_end_us(self.units[name], value) for name, _, value in named if name in self.units)
        return any(end is not None and end <= watermark_us for end in ends)


def _end_us(unit: str, value: str) -> int | None:
    """The first microsecond after a part of a time; None of none, and of one beyond all watermarks."""
    try:
        if unit == "year":
            end = datetime(int(value) + 1, 1, 1, tzinfo=UTC)
        elif unit == "month":
            year, month = (int(part) for part in value.split("-"))
            end = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
        else:
            begin = datetime.fromisoformat(value if unit == "day" else f"{value}:00").replace(tzinfo=UTC)
            end = begin + timedelta(days=1) if unit == "day" else begin + timedelta(hours=1)
    except (ValueError, OverflowError):
        return None
    return (end - _EPOCH) // _MICROSECOND
