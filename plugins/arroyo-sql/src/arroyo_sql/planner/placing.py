"""Places in a query: of words in it, and of what operators say of its nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from arroyo_core.errors import Location
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_sql.planner.graph import Graph
from arroyo_sql.planner.hints import hint
from arroyo_sql.planner.query_tokens import find_words
from arroyo_sql.script import Text

_QUOTED = re.compile(r"'([^']+)'")


@contextmanager
def placed(graph: Graph, text: Text, at: Location) -> Iterator[None]:
    """Around what adds a node for a query: what its operator says is at the word of the query that it names.

    `at` is the place of the node, and where all stays that names none.
    """
    outside, graph.mistakes = graph.mistakes, Mistakes()
    try:
        yield
    finally:
        found, graph.mistakes = graph.mistakes, outside
        for error in found.sorted():
            known = hint(error.message)
            words = known.words if known is not None else _quoted(error.message)
            is_placed = known is None and error.at != at
            graph.mistakes.add(
                error.message if known is None else known.message,
                at=error.at if is_placed else find_words(text, words) or error.at,
                value=error.value,
                allowed=error.allowed,
                suggestion=error.suggestion,
            )


def _quoted(message: str) -> Sequence[str]:
    """The names and texts that a message quotes, as a query may have them."""
    return [word for found in _QUOTED.findall(message) for word in (found, f"'{found}'")]
