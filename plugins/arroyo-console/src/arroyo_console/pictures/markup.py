"""Texts and numbers as SVG and HTML have them."""

from __future__ import annotations

import html
import unicodedata

from arroyo_core.api.visible import visible


def text(value: object) -> str:
    """Any text for HTML or SVG, also in a quoted attribute: nothing of it is markup, and nothing of it is hidden."""
    return html.escape(visible(str(value)))


def short(value: str, letters: int) -> str:
    """On one line, cut at so many letters."""
    line = " ".join(value.split())
    return line if len(line) <= letters else f"{line[: letters - 1]}…"


def letters_of(value: str) -> int:
    """How many columns of a monospaced font the text takes."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in value)


def number(value: float) -> str:
    """A coordinate, as short as it can be."""
    return f"{value:.1f}".rstrip("0").rstrip(".")
