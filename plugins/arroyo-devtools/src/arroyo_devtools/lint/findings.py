"""What `arroyo lint` can find: the codes, and one finding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from arroyo_core.errors import Location

#: Every code with what it stands for; `docs/lint.md` explains each.
CODES: Mapping[str, str] = {
    "missing-watermark": "an operator waits for watermarks that nobody makes",
    "unbounded-state": "an operator's state grows for ever",
    "weak-sink": "a sink may repeat or lose rows though the rest of the pipeline does not",
    "unread-output": "rows are set aside in a side output that no node reads",
    "secret-in-clear": "a password or a key is written in the file",
    "unused-parameter": "a parameter is declared and not used",
    "unused-udf": "no node calls a function of a bundle",
    "unused-ignore": "a comment silences what is not there",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that runs and is probably not meant: what, where, and how to fix it.

    `shows_line` is False where the line itself must not be repeated.
    """

    code: str
    message: str
    fix: str
    at: Location
    shows_line: bool = True

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise ValueError(f"there is no lint code {self.code!r}")
