"""`format_text`: a YAML text in the canonical layout, or nothing at all."""

from __future__ import annotations

from arroyo_core.errors import ArroyoError
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_devtools.formatting.order import arrange
from arroyo_devtools.formatting.reading import read_layout
from arroyo_devtools.formatting.tree import Alias, Collection, Document, Tree, all_notes
from arroyo_devtools.formatting.writing import write_layout


class LayoutError(ArroyoError):
    """The layout would change what the text means: a fault of ours, found before anything is written."""


def format_text(text: str, *, file: str) -> str:
    """The text in the canonical layout, with all its comments.

    Formatting what was formatted changes nothing. Raises `InvalidPipelineError` for what is not YAML, and
    `LayoutError` rather than return a text that means something else.
    """
    document = _read(text, file)
    meaning, notes = _meaning(document.root), sorted(all_notes(document))
    written = write_layout(document)
    again = _read(written, file)
    if meaning != _meaning(again.root):
        raise LayoutError(f"{file}: the canonical layout would change what it means; it is left as it is")
    if notes != sorted(all_notes(again)):
        raise LayoutError(f"{file}: the canonical layout would lose a comment; it is left as it is")
    return written


def _read(text: str, file: str) -> Document:
    mistakes = Mistakes()
    document = read_layout(text, file=file, mistakes=mistakes)
    mistakes.raise_if_any()
    assert document is not None  # else there was a mistake
    arrange(document)
    return document


def _meaning(tree: Tree | None) -> object:
    """What a tree says, however it is laid out."""
    if tree is None or isinstance(tree, Alias):
        return tree.name if tree else None
    if isinstance(tree, Collection):
        items = [(item.key and _meaning(item.key), _meaning(item.value)) for item in tree.items]
        return (tree.is_map, tree.anchor, tree.tag, items)
    return (tree.value, tree.style is None, tree.anchor, tree.tag)
