"""What an edit of a pipeline is, and edits that any pipeline can have.

The title of an edit is that of its line in the table of `docs/upgrade.md`, the family of its subject the column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .streams import Row
from .subjects import ORDERS, PRICES

WINDOW_GEOMETRY = "`size`, `slide`, `offset`, `gap`"
JOIN_BOUNDS = "`lower`, `upper`, `tolerance`"
FILTERED = "a node without state is put in front"
#: Columns that are added.
WITH_X, WITH_Y = {**ORDERS, "x": "int64"}, {**PRICES, "y": "int64"}


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One edit of one pipeline."""

    title: str
    subject: str
    family: str
    lives: Sequence[Sequence[Row]]
    #: What DuckDB is asked; None for an edit that is refused.
    answer: str | None = None
    #: A part of what the start says of it.
    says: str = ""
    #: Names that columns of the output had before.
    former: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_kept(self) -> bool:
        return self.answer is not None

    def __str__(self) -> str:
        return f"{self.title}: {self.subject}"


def renamed(nodes: Sequence[Row], *, says_so: bool = True) -> list[Row]:
    """All nodes under other ids."""
    return [
        {
            **node,
            "id": f"{node['id']}_2",
            **({"was": node["id"]} if says_so else {}),
            **({"inputs": [f"{name}_2" for name in node["inputs"]]} if "inputs" in node else {}),
        }
        for node in nodes
    ]


def filtered(nodes: Sequence[Row]) -> list[Row]:
    """With half of the orders."""
    before = {"id": "even", "operator": "std.filter", "inputs": ["orders_timed"], "config": {"predicate": "n % 2 = 0"}}
    after = [
        {**node, "inputs": ["even" if name == "orders_timed" else name for name in node["inputs"]]}
        if "inputs" in node
        else node
        for node in nodes
    ]
    return [*after, before]


def since_filtered(answer: str) -> str:
    """The same of half of the orders since the edit."""
    return answer.replace("orders", "(FROM orders WHERE part = 1 OR n % 2 = 0)")
