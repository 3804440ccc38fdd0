"""Texts of pipelines: their mistakes, their plans, and what a sample of them gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Language(StrEnum):
    """What a text is written in."""

    YAML = "yaml"
    SQL = "sql"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A mistake in a text, as `arroyo validate --format json` tells it; lines and columns count from 1."""

    message: str
    line: int | None = None
    column: int | None = None
    value: str | None = None
    suggestion: str | None = None
    allowed: tuple[str, ...] = ()
    #: Not a mistake: what untrusted mode does not look at. The pipeline can be run.
    is_refusal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """Whether a text is a pipeline that could run."""

    problems: tuple[Problem, ...] = ()

    @property
    def is_valid(self) -> bool:
        return not self.problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the rows that a node gives."""

    name: str
    type: str
    is_nullable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """Something that an operator shows of its settings; secrets are hidden."""

    label: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """A node of a planned pipeline."""

    id: str
    operator: str
    parallelism: int
    #: The numbers of its chain and of its wave.
    chain: int
    wave: int
    is_source: bool
    is_sink: bool
    details: tuple[Detail, ...] = ()
    columns: tuple[Column, ...] = ()
    event_time: str | None = None
    #: What its output guarantees, in a word and in a sentence.
    guarantee: str = ""
    guarantee_reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEdge:
    """Node `source` feeds node `target`. `routing` is forward, shuffle or rebalance."""

    source: str
    target: str
    routing: str
    keys: tuple[str, ...] = ()
    #: The side output that is read; None for the main one.
    output: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphChain:
    """Nodes that run in one task."""

    id: int
    nodes: tuple[str, ...]
    parallelism: int
    wave: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """A planned pipeline. Where it could not be planned there are problems, and nothing else."""

    name: str = ""
    nodes: tuple[GraphNode, ...] = ()
    edges: tuple[GraphEdge, ...] = ()
    chains: tuple[GraphChain, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePreview:
    """Rows that a node gave in a preview; of a sink those that it was given. Values are those of JSON."""

    node: str
    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a run on a sample gave. Nothing was written. Problems, or an error, where it could not run."""

    nodes: tuple[NodePreview, ...] = ()
    problems: tuple[Problem, ...] = ()
    error: str = ""
    #: Whether it was ended by its limit of time or of rows, and not by the end of the data.
    is_cut: bool = False
    duration_s: float = 0.0
