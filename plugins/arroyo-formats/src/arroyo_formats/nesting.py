"""How deep values and types may be nested.

Schemas come with files and messages, or from a registry, and so do the values that types are inferred from: whoever
sends them must not choose how deep a parser recurses, nor how many types a few named ones are put together to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

#: Arrow moves columns of 64 levels at most; parsers that recurse end the process at some thousands.
MAX_DEPTH = 100
#: All types of a schema, each counted as often as it is referred to.
MAX_TYPES = 100_000
#: A text in quotes, also one that does not end.
_QUOTED = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)', re.DOTALL)
_OPEN, _CLOSE = b"[{", b"]}"


def json_depth(text: bytes) -> int:
    """How deep the values of a JSON text are nested, up to where it is no JSON; not exact below `MAX_DEPTH`."""
    most = text.count(b"{") + text.count(b"[")
    if most <= MAX_DEPTH:
        # No need to be exact.
        return most
    codes = np.frombuffer(_QUOTED.sub(b"", text), dtype=np.uint8)
    steps = np.isin(codes, list(_OPEN)).astype(np.int64) - np.isin(codes, list(_CLOSE))
    return int(np.cumsum(steps).max(initial=0))


@dataclass(slots=True)
class Bounds:
    """Counts the types of one schema while it is walked through; `error` makes what is raised."""

    #: Of a place and a text.
    error: Callable[[str, str], Exception]
    depth: int = 0
    types: int = 0

    @contextmanager
    def inside(self, at: str) -> Iterator[None]:
        """Around each type; raises where there are too many, or one is too deep."""
        self.types += 1
        self.depth += 1
        self.check(at, types=self.types, depth=self.depth)
        try:
            yield
        finally:
            self.depth -= 1

    def check(self, at: str, *, types: int, depth: int) -> None:
        # A place that is so deep is not worth showing whole.
        shown = at if len(at) <= MAX_DEPTH else f"{at[:MAX_DEPTH]}..."
        if depth > MAX_DEPTH:
            raise self.error(shown, f"types are nested deeper than {MAX_DEPTH} levels")
        if types > MAX_TYPES:
            raise self.error(shown, f"the schema has more than {MAX_TYPES} types, each counted where it is used")
