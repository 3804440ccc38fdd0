"""Lines of a log: a time, a level and a text, or the same as JSON for tools."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from arroyo_core.api.visible import visible

INFO, WARNING, ERROR = "info", "warning", "error"


class LogFormat(StrEnum):
    """How lines are written; the values of `--log-format`."""

    TEXT = "text"
    JSON = "json"


def _now() -> datetime:
    return datetime.now(UTC)


class LogLines:
    """Renders lines. `fields` are for tools: a text has them in its words."""

    def __init__(self, kind: LogFormat = LogFormat.TEXT, *, now: Callable[[], datetime] = _now) -> None:
        self.kind = kind
        self._now = now

    @property
    def is_json(self) -> bool:
        return self.kind is LogFormat.JSON

    def render(self, text: str, *, level: str = INFO, **fields: Any) -> str:
        """One line, with its end. What a terminal would obey is written out: warnings and errors quote data."""
        moment = self._now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self.is_json:
            return json.dumps({"time": moment, "level": level, "message": text, **fields}) + "\n"
        text = visible(text)
        return f"{moment} {text}\n" if level == INFO else f"{moment} {level}: {text}\n"


class LogFormatter(logging.Formatter):
    """The same for what is logged; the handler adds the end of the line."""

    def __init__(self, lines: LogLines) -> None:
        super().__init__()
        self._lines = lines

    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        if record.exc_info and record.exc_info[0] is not None:
            text = f"{text}\n{self.formatException(record.exc_info)}"
        fields = {"logger": record.name} if self._lines.is_json else {}
        return self._lines.render(text, level=record.levelname.lower(), **fields).removesuffix("\n")
