"""How deep types may be nested.

Schemas come with files and messages, or from a registry: whoever sends them must not choose how deep a parser recurses,
nor how many types a few named ones are put together to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from arroyo_core.api.limits import VALUE_DEPTH
from arroyo_formats.limits import SCHEMA_TYPES

#: How many characters of a place are shown.
_SHOWN = 100


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
        problem = VALUE_DEPTH.problem(depth) or SCHEMA_TYPES.problem(types)
        if problem is not None:
            raise self.error(at if len(at) <= _SHOWN else f"{at[:_SHOWN]}...", problem)
