"""What a whole pipeline guarantees, from what its nodes do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from arroyo_core.api import Guarantee


@dataclass(frozen=True, slots=True)
class NodeGuarantee:
    """What one node guarantees, and why; `is_end` for sources and sinks, where the outside begins."""

    level: Guarantee
    reason: str
    is_end: bool = False

    @property
    def is_weak(self) -> bool:
        return self.level is not Guarantee.EXACTLY_ONCE


def end_to_end(guarantees: Mapping[str, NodeGuarantee]) -> Guarantee:
    """How often a row of any source counts at any sink."""
    return Guarantee.combine(guarantee.level for guarantee in guarantees.values())


def weaknesses(guarantees: Mapping[str, NodeGuarantee]) -> dict[str, NodeGuarantee]:
    """The nodes that keep the pipeline from exactly once."""
    return {name: guarantee for name, guarantee in guarantees.items() if guarantee.is_weak}
