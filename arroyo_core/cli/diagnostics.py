"""Shows errors to people (with the line and a caret) and to tools (as JSON)."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from functools import cache
from typing import TextIO

from arroyo_core.api.limits import FILE_BYTES
from arroyo_core.api.policy import read_limited
from arroyo_core.api.visible import visible
from arroyo_core.cli.terminal import is_coloured, open_console
from arroyo_core.errors import Location, PipelineError
from arroyo_core.pipeline.loader import split_lines

_MAX_ALLOWED = 12
#: `file:line:column: message`, or `arroyo: message`.
_HEADING = re.compile(r"(?P<place>.*?:\d+:\d+:|arroyo:)? ?(?P<message>.*)")
_CARET = re.compile(r"^ +\|\s*\^+$", re.MULTILINE)


def print_mistake(error: PipelineError, *, is_debug: bool = False) -> None:
    """Write a mistake and an empty line to stderr."""
    print_report(f"{render_mistake(error, is_debug=is_debug)}\n", sys.stderr)


def print_report(text: str, file: TextIO, *, colour: str = "red") -> None:
    """Write a heading and what is below it; on a terminal the heading and carets stand out.

    What a terminal would obey is written out: messages quote data.
    """
    text = visible(text)
    if not is_coloured(file):
        print(text, file=file)
        return
    from rich.text import Text

    shown = Text(text)
    heading = _HEADING.match(text)
    if heading is not None:
        shown.stylize("bold", *heading.span("place"))
        shown.stylize(f"bold {colour}", *heading.span("message"))
    shown.highlight_regex(_CARET, colour)
    # Lines stay lines, however narrow the terminal is: carets stand under what they mean.
    open_console(file).print(shown, soft_wrap=True)


def render_mistake(error: PipelineError, *, is_debug: bool = False) -> str:
    """`file:line:column: message`, the line with a caret under the column, and what helps."""
    lines = [f"{error.at}: {error.message}" if error.at else error.message]
    gutter = ""
    if error.at:
        gutter = gutter_of(error.at)
        lines += excerpt(error.at, error.value) if error.shows_line else []
    if error.suggestion:
        lines.append(f"{gutter}  did you mean {error.suggestion}?")
    if error.allowed:
        lines.append(f"{gutter}  allowed: {_shortened(error.allowed)}")
    if is_debug:
        lines += getattr(error, "__notes__", [])
    return "\n".join(lines)


def excerpt(at: Location, value: object = None) -> list[str]:
    """The line of a place, with a caret under its column, or under all of `value`; nothing where there is no file."""
    source = _source_line(at.file, at.line)
    if source is None:
        return []
    return [f"  {at.line} | {source}", f"{gutter_of(at)}| {_caret(source, at.column, value)}"]


def gutter_of(at: Location) -> str:
    """What is left of the text of an excerpt."""
    return " " * (len(str(at.line)) + 3)


def mistake_json(error: PipelineError) -> dict[str, object]:
    at = error.at
    return {
        "file": at.file if at else None,
        "line": at.line if at else None,
        "column": at.column if at else None,
        "message": error.message,
        "value": error.value if isinstance(error.value, int | float | str | None) else str(error.value),
        "allowed": list(error.allowed),
        "suggestion": error.suggestion,
    }


def _caret(source: str, column: int, value: object) -> str:
    # Tabs are kept, so that the caret stands under its character however wide they are.
    before = "".join(letter if letter == "\t" else " " for letter in source[: column - 1])
    written = value if isinstance(value, str) else ""
    is_here = written and source[column - 1 :].startswith(written)
    return before + "^" * (len(written) if is_here else 1)


def _shortened(allowed: Sequence[str]) -> str:
    text = ", ".join(allowed[:_MAX_ALLOWED])
    left = len(allowed) - _MAX_ALLOWED
    return f"{text} and {left} more" if left > 0 else text


def _source_line(file: str, line: int) -> str | None:
    lines = _source_lines(file)
    return lines[line - 1] if 0 < line <= len(lines) else None


def give_text(file: str, text: str) -> None:
    """Show lines of a text that has this name, and is in no file."""
    _given[file] = text
    _source_lines.cache_clear()


_given: dict[str, str] = {}


@cache
def _source_lines(file: str) -> tuple[str, ...]:
    if file in _given:
        return tuple(split_lines(_given[file]))
    try:
        return tuple(split_lines(read_limited(file, FILE_BYTES).decode("utf-8-sig", errors="replace")))
    except (OSError, ValueError):
        return ()
