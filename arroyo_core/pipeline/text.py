"""The text of a pipeline file: its bytes, its lines, and places in it."""

from __future__ import annotations

import re

from arroyo_core.errors import Location
from arroyo_core.pipeline.mistakes import Mistakes

_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


def decode(data: bytes, *, file: str, mistakes: Mistakes) -> str | None:
    """The text of a file, None with a mistake where it is not UTF-8. A byte-order mark is dropped."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig", errors="replace")
        mistakes.add(
            f"the file is not UTF-8: byte 0x{data[error.start]:02x} cannot be read",
            at=place_in(before, len(before), file),
        )
        return None


def split_lines(text: str) -> list[str]:
    """The lines of a text as YAML counts them."""
    return _LINE_BREAK.split(text)


def place_in(text: str, index: int, file: str) -> Location:
    """Line and column of a character."""
    lines = split_lines(text[:index])
    return Location(file, len(lines), len(lines[-1]) + 1)
