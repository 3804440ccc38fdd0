"""The ends of files that runs write."""

from __future__ import annotations

from pathlib import Path

from arroyo_devtools.lint.secrets import hide_secrets

from arroyo_console.values import LogLines
from arroyo_core.api.visible import visible

#: What one answer has at most.
MAX_BYTES = 2**20
MAX_LINE = 4_000


def read_lines(path: Path, *, lines: int, offset: int | None, run: int | None) -> LogLines:
    """The last lines, or with `offset` the lines since, oldest first; a line without an end is left for later."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            # The file was cut since: there is no such place any more.
            start = max(0, size - MAX_BYTES) if offset is None or offset > size else max(offset, size - MAX_BYTES)
            file.seek(start)
            data = file.read(MAX_BYTES)
    except OSError:
        return LogLines(lines=(), offset=0, run=run)
    whole, end, _ = data.rpartition(b"\n")
    text = (whole + end).decode(errors="replace")
    found = text.splitlines()
    if start and (offset is None or start != offset):
        found = found[1:]
    shown = tuple(hide_secrets(visible(line[:MAX_LINE])) for line in (found[-lines:] if lines else ()))
    return LogLines(lines=shown, offset=start + len(whole) + len(end), run=run)
