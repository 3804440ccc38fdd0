"""Where a program wrote something: the line of a call, and of each of its arguments."""

from __future__ import annotations

import ast
import contextlib
import linecache
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType

from arroyo_core.errors import Location

#: Code of these modules is not what a person wrote.
_OWN = ("arroyo_core.pipeline.builder", "arroyo_core.spark.pipeline")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSite:
    """A call in a program. `at` is its place; that of its arguments is found in the source, if it can be read."""

    at: Location
    #: As Python knows the file, which for a cell of a notebook is not what people see.
    source: str
    #: Where the call ends, by Python's count: the line from 1, the column in bytes from 0. None where nobody knows.
    end: tuple[int, int] | None = None


def call_site() -> CallSite:
    """The nearest call outside of the builder."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_own(frame):
        frame = frame.f_back
    if frame is None:
        return CallSite(at=Location("<python>", 1, 1), source="")
    code = frame.f_code
    line, end_line, column, end_column = _position(code, frame.f_lasti)
    line = line or frame.f_lineno
    at = Location(_shown(code.co_filename), line, _characters(code.co_filename, line, column or 0) + 1)
    end = (end_line, end_column) if end_line is not None and end_column is not None else None
    return CallSite(at=at, source=code.co_filename, end=end)


def _is_own(frame: FrameType) -> bool:
    name = str(frame.f_globals.get("__name__", ""))
    return any(name == own or name.startswith(f"{own}.") for own in _OWN)


def _position(code: CodeType, instruction: int) -> tuple[int | None, int | None, int | None, int | None]:
    for index, position in enumerate(code.co_positions()):
        if index == instruction // 2:
            return position
    return None, None, None, None


def _characters(source: str, line: int, column: int) -> int:
    """A column in characters: Python counts bytes."""
    return len(linecache.getline(source, line).encode()[:column].decode(errors="ignore"))


def _shown(source: str) -> str:
    """A file as people know it: a path from the current folder on, or the number of a cell."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    with contextlib.suppress(Exception):
        if shell is not None and (words := shell.compile.format_code_name(source)):
            return " ".join(words)
    with contextlib.suppress(OSError, ValueError):
        path = Path(source)
        if path.is_absolute() and path.is_relative_to(Path.cwd()):
            return str(path.relative_to(Path.cwd()))
    return source


@dataclass(frozen=True, slots=True)
class Arguments:
    """The source of a call's arguments, by keyword and by position."""

    keywords: Mapping[str, ast.keyword] = field(default_factory=dict)
    positional: tuple[ast.expr, ...] = ()


class Sources:
    """The syntax of the files that calls are in; each file is read once."""

    def __init__(self) -> None:
        self._calls: dict[str, Mapping[tuple[int, int], ast.Call]] = {}

    def arguments(self, site: CallSite) -> Arguments:
        """Empty where the source cannot be read, or has changed since."""
        if site.end is None:
            return Arguments()
        call = self._calls_of(site.source).get(site.end)
        if call is None:
            return Arguments()
        # What is behind a star takes as many positions as it likes.
        stars = [place for place, arg in enumerate(call.args) if isinstance(arg, ast.Starred)]
        positional = call.args[: stars[0]] if stars else call.args
        return Arguments({word.arg: word for word in call.keywords if word.arg is not None}, tuple(positional))

    def place(self, node: ast.expr | ast.keyword, site: CallSite) -> Location:
        column = _characters(site.source, node.lineno, node.col_offset)
        return Location(site.at.file, node.lineno, column + 1)

    def _calls_of(self, source: str) -> Mapping[tuple[int, int], ast.Call]:
        if source not in self._calls:
            linecache.checkcache(source)
            try:
                tree = ast.parse("".join(linecache.getlines(source)))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                # A cell with `%magic` lines, or a file that was edited since: the call's own place will do.
                tree = ast.Module([], [])
            self._calls[source] = {
                (node.end_lineno, node.end_col_offset): node
                for node in ast.walk(tree)
                if isinstance(node, ast.Call) and node.end_lineno is not None and node.end_col_offset is not None
            }
        return self._calls[source]
