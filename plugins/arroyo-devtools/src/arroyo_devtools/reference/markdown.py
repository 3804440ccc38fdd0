"""Pieces of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; columns without any content are left out, except for the first."""
    cells = [[cell(text) for text in row] for row in rows]
    kept = [place for place in range(len(header)) if place == 0 or any(row[place] for row in cells)]
    lines = [[header[place] for place in kept], ["---"] * len(kept), *([row[place] for place in kept] for row in cells)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(text: str) -> str:
    """A text that stays in its cell."""
    return " ".join(text.replace("|", "\\|").split())


def fenced(text: str, language: str = "") -> str:
    return f"```{language}\n{text}\n```"
