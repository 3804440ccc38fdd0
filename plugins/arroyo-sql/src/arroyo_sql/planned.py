"""What the planner gives: the nodes of a pipeline, with the places in SQL that they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from arroyo_core.errors import Location


@dataclass(frozen=True, slots=True)
class Connection:
    """An operator of a connector and its config: plain nested values, and the place of each by its path.

    Paths are written as in messages: `schema.price`, `aggregates[0].column`.
    """

    operator: str
    config: Mapping[str, Any]
    at: Location
    places: Mapping[str, Location] = field(default_factory=dict)
    #: Paths of values that came out of the environment, with what was written.
    secrets: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the pipeline. A path without a place has that of the nearest one above it, or of the node."""

    id: str
    operator: str
    inputs: tuple[str, ...]
    config: Mapping[str, Any]
    at: Location
    places: Mapping[str, Location] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    #: Which statement the node comes from, for people.
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """The nodes of a script, each after its inputs."""

    nodes: tuple[Node, ...]
