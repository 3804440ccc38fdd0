"""The bottom of a terminal, redrawn in place, with all other text above it."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TextIO

from rich.console import Console, RenderableType
from rich.segment import ControlType, Segment, Segments


def terminal_size(out: TextIO) -> os.terminal_size:
    """Columns and lines of the terminal that `out` writes to, as they are now."""
    with contextlib.suppress(OSError, ValueError):
        size = os.get_terminal_size(out.fileno())
        if size.columns and size.lines:
            return size
    return shutil.get_terminal_size()


class Screen:
    """Keeps a frame below whatever else is written; may be used from several threads.

    Not rich's `Live`, which hides the cursor, takes stdout also where it leads to a file, and does not know that a
    terminal that became narrower has wrapped the frame. A process that is killed leaves the terminal as it should be.
    """

    def __init__(self, console: Console, size: Callable[[], os.terminal_size] | None = None) -> None:
        self._console = console
        self._size = size or (lambda: terminal_size(console.file))  # type: ignore[arg-type]
        self._lock = threading.RLock()
        self._frame: RenderableType | None = None
        #: How wide each line is that stands on the terminal now.
        self._drawn: Sequence[int] = ()
        self._is_gone = False

    def draw(self, frame: RenderableType) -> None:
        """Show `frame` in place of the one before. A terminal that is gone is not an error."""
        with self._lock:
            self._frame = frame
            self._paint()

    def write_above(self, text: str) -> None:
        """Write whole lines, just as they are."""
        with self._lock:
            self._paint(text)

    def forget(self) -> None:
        """Something else has been written below: leave all that is there, and draw below it."""
        self._drawn = ()

    def close(self, *, is_kept: bool) -> None:
        """Show nothing any more; the frame that is shown stays if `is_kept`."""
        with self._lock:
            if not is_kept:
                self._put([self._erasure(self._size())])
            self._frame, self._drawn = None, ()

    def _paint(self, above: str = "") -> None:
        size = self._size()
        lines = self._lines(size)
        frame = (segment for line in lines for segment in (*line, Segment.line()))
        # All at once, so that nobody sees the gap.
        self._put([self._erasure(size), Segment(above), *frame])
        self._drawn = [Segment.get_line_length(line) for line in lines]

    def _lines(self, size: os.terminal_size) -> list[list[Segment]]:
        """One line and one column less than there are: nothing wraps or scrolls."""
        if self._frame is None or size.lines < 2:
            return []
        options = self._console.options.update(width=max(1, size.columns - 1))
        options.max_height = size.lines - 1
        return self._console.render_lines(self._frame, options, pad=False)[: options.max_height]

    def _erasure(self, size: os.terminal_size) -> Segment:
        if not self._drawn:
            return Segment("")
        # A terminal that became narrower has wrapped what was too wide.
        rows = sum(max(1, -(-width // size.columns)) for width in self._drawn)
        # Whatever is below, too: a terminal that changed its size may have moved the cursor. rich has no word for it.
        return Segment(f"\r\x1b[{rows}A\x1b[J", None, [(ControlType.CARRIAGE_RETURN,)])

    def _put(self, segments: Iterable[Segment]) -> None:
        if self._is_gone:
            return
        try:
            self._console.print(Segments(segments), end="", crop=False)
        except (OSError, ValueError):
            self._is_gone = True


class AboveScreen:
    """A stream to the terminal of a screen, whose text appears above the screen, line by line."""

    def __init__(self, screen: Screen, stream: TextIO) -> None:
        self._screen = screen
        self._stream = stream
        self._lock = threading.Lock()
        self._begun = ""

    def write(self, text: str) -> int:
        with self._lock:
            whole, newline, self._begun = (self._begun + text).rpartition("\n")
        if newline:
            self._screen.write_above(whole + newline)
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
