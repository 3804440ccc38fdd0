"""What a picture of a pipeline may say beside its plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotations:
    """What an epoch came to, in words, by node id; nodes that it knows nothing of are absent."""

    #: A line below the title.
    heading: str = ""
    lines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: The busy share of each node, from 0 to 1.
    shares: Mapping[str, float] = field(default_factory=dict)
    slowest: str | None = None


NOTHING = Annotations()
