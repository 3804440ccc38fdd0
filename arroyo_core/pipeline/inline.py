"""Pipelines that have no file: their text is given where a file would be named."""

from __future__ import annotations


class InlineText(str):
    """The name of such a pipeline, with its text. The ending of the name tells the language, as that of a file does."""

    __slots__ = ("text",)

    text: str

    def __new__(cls, name: str, text: str) -> InlineText:
        made = super().__new__(cls, name)
        made.text = text
        return made
