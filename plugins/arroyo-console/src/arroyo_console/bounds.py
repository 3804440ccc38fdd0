"""How much of something one request may ask for."""

from __future__ import annotations

from arroyo_console.errors import ConsoleError
from arroyo_core.pipeline.file_keys import MAX_PARALLELISM

#: Of a list, where nobody asks for another number; and the most that is given at once.
PAGE = 50
MAX_PAGE = 500
MAX_ROWS = 1_000
MAX_LINES = 5_000
MAX_SECONDS = 60.0


def offset_of(after: str | None) -> int:
    if after is None:
        return 0
    if not after.isascii() or not after.isdigit() or len(after) > 9:
        raise ConsoleError("'after' is what 'next' of the page before said", where="after")
    return int(after)


def checked_limit(limit: int) -> int:
    check_range("limit", limit, 1, MAX_PAGE)
    return limit


def check_parallelism(parallelism: int | None) -> None:
    if parallelism is not None:
        check_range("parallelism", parallelism, 1, MAX_PARALLELISM)


def check_range(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise ConsoleError(f"{name} is from {least:g} to {most:g}, not {value:g}", where=name)
