"""Times and sizes as people read them."""

from __future__ import annotations

import datetime
import time


def format_time(time_us: int) -> str:
    """A time that was read from storage may be in no year that there is."""
    try:
        moment = datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(microseconds=time_us)
    except OverflowError:
        return f"{time_us} us"
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def format_size(size_bytes: int) -> str:
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def format_lag(time_us: int, *, now_us: int | None = None) -> str:
    """How far a time is behind the clock, or behind `now_us`."""
    now_s = time.time() if now_us is None else now_us / 1e6
    return format_duration(now_s - time_us / 1e6)


def format_duration(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if abs(seconds) >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s"
