"""The bottom of a terminal, redrawn in place, with all other text above it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import threading
from collections.abc import Callable, Sequence
from typing import Any, TextIO

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def terminal_size(out: TextIO) -> os.terminal_size:
    """Columns and lines of the terminal that `out` writes to, as they are now."""
    with contextlib.suppress(OSError, ValueError):
        size = os.get_terminal_size(out.fileno())
        if size.columns and size.lines:
            return size
    return shutil.get_terminal_size()


class Screen:
    """Keeps some lines below whatever else is written; may be used from several threads.

    Uses no alternate screen and does not hide the cursor: a process that is killed leaves the terminal as it should be.
    """

    def __init__(self, out: TextIO, size: Callable[[], os.terminal_size] | None = None) -> None:
        self._out = out
        self.size = size or (lambda: terminal_size(out))
        self._lock = threading.RLock()
        self._lines: Sequence[str] = ()
        #: How wide each line is that stands on the terminal now.
        self._drawn: list[int] = []
        self._is_gone = False

    def draw(self, lines: Sequence[str]) -> None:
        """Show `lines` in place of those shown before. A terminal that is gone is not an error."""
        with self._lock:
            self._lines = lines
            self._paint()

    def write_above(self, text: str, stream: TextIO) -> None:
        """Write whole lines to a stream that leads to this terminal, too."""
        with self._lock:
            self._put(self._erasure())
            self._drawn = []
            stream.write(text)
            stream.flush()
            self._paint()

    def forget(self) -> None:
        """Something else has been written below: leave all that is there, and draw below it."""
        self._drawn = []

    def close(self, *, is_kept: bool) -> None:
        """Show nothing any more; the lines that are shown stay if `is_kept`."""
        with self._lock:
            if not is_kept:
                self._put(self._erasure())
            self._lines, self._drawn = (), []

    def _paint(self) -> None:
        # One write, so that nobody sees the gap.
        self._put(self._erasure() + "".join(f"{line}\n" for line in self._lines))
        self._drawn = [len(_COLOUR.sub("", line)) for line in self._lines]

    def _erasure(self) -> str:
        if not self._drawn:
            return ""
        # A terminal that became narrower has wrapped what was too wide.
        columns = self.size().columns
        rows = sum(max(1, -(-width // columns)) for width in self._drawn)
        return f"\r\x1b[{rows}A\x1b[J"

    def _put(self, text: str) -> None:
        if self._is_gone or not text:
            return
        try:
            self._out.write(text)
            self._out.flush()
        except (OSError, ValueError):
            self._is_gone = True


class AboveScreen:
    """A stream whose text appears above the screen, line by line."""

    def __init__(self, screen: Screen, stream: TextIO) -> None:
        self._screen = screen
        self._stream = stream
        self._lock = threading.Lock()
        self._begun = ""

    def write(self, text: str) -> int:
        with self._lock:
            whole, newline, self._begun = (self._begun + text).rpartition("\n")
        if newline:
            self._screen.write_above(whole + newline, self._stream)
        return len(text)

    def writelines(self, lines: Sequence[str]) -> None:
        self.write("".join(lines))

    def flush(self) -> None:
        """Whole lines are written at once; the begin of a line waits for its end."""

    def close(self) -> None:
        """Write the line that was begun. The stream itself stays open."""
        if self._begun:
            self.write("\n")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
