"""`Plan`: a whole pipeline, typed and cut into chains and waves; what the driver sends to executors."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from arroyo_core.api import ArroyoSchema, Origin


class Routing(StrEnum):
    """How the rows of an edge find their subtask."""

    #: Subtask i to subtask i: both sides have the same parallelism.
    FORWARD = "forward"
    #: By the stable hash of the edge's keys.
    SHUFFLE = "shuffle"
    #: Evenly, wherever.
    REBALANCE = "rebalance"


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that state depends on: what may be shown of it, and a digest of it by which it is compared.

    One with `parts` has several by name, which may come and go: only those that both sides have are compared.
    """

    text: str
    digest: bytes = field(repr=False)
    #: None for a setting that is one whole.
    parts: Mapping[str, Setting] | None = None

    @classmethod
    def of(cls, value: str, *, text: str | None = None) -> Setting:
        """`text` is shown instead of the value, where that came from the environment."""
        return cls(value if text is None else text, hashlib.sha256(value.encode()).digest()[:16])

    @classmethod
    def of_parts(cls, values: Mapping[str, str], redact: Callable[[str], str]) -> Setting:
        """A setting of several parts; as a whole it is all of them in their order."""
        parts = {name: cls.of(value, text=redact(value)) for name, value in values.items()}
        whole = cls.of(_joined(values.values()), text=_joined(part.text for part in parts.values()))
        return replace(whole, parts=parts)


def _joined(texts: Iterable[str]) -> str:
    return ", ".join(texts) or "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """An operator of the pipeline. `config` is its serialised protobuf message."""

    id: str
    operator: str
    config: bytes = field(repr=False)
    parallelism: int
    input_schemas: tuple[ArroyoSchema, ...] = field(repr=False)
    output_schema: ArroyoSchema = field(repr=False)
    #: The distribution and version of the plugin that the plan was made with.
    origin: Origin
    side_schemas: Mapping[str, ArroyoSchema] = field(default_factory=dict, repr=False)
    #: By label: the settings without which its state would be misread.
    settings: Mapping[str, Setting] = field(default_factory=dict, repr=False)
    #: The id under which it has its state in a checkpoint that knows no node of its own id.
    was: str | None = None
    #: The node for whose operator this one makes the rows fewer, with the same operator name and config.
    partial_of: str | None = None
    #: Whether its commits are jobs of Spark's own.
    commits_with_jobs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """Node `source` feeds input number `input` of node `target`."""

    source: str
    target: str
    input: int
    routing: Routing
    keys: tuple[str, ...] = ()
    #: The side output of `source` that is read; None for its main one.
    output: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Operators joined by forward edges, run one after the other in one task.

    Only the head may have several inputs, only the tail several consumers.
    """

    id: int
    nodes: tuple[str, ...]
    parallelism: int
    #: The number of exchanges between the sources and this chain, on the longest way.
    wave: int

    @property
    def head(self) -> str:
        return self.nodes[0]

    @property
    def tail(self) -> str:
        return self.nodes[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSpec:
    """When an epoch ends (at the first budget reached) and where its state goes."""

    #: Not in the repr: a URL may carry a password.
    url: str | None = field(default=None, repr=False)
    interval_ms: int = 10_000
    rows: int | None = None
    bytes: int | None = None
    keep: int = 10
    #: An epoch that makes no progress for so long is given up, and the job restarts from its last checkpoint.
    timeout_ms: int = 600_000


class UdfKind(StrEnum):
    """How user functions reach the tasks."""

    #: Fetched by URL.
    BUNDLE = "bundle"
    #: Functions of the driver's own program.
    PICKLE = "pickle"
    #: Installed everywhere, by pip.
    DISTRIBUTION = "distribution"


@dataclass(frozen=True, slots=True, kw_only=True)
class UdfPin:
    """User functions that the pipeline was planned with; tasks run with these and no others."""

    kind: UdfKind
    name: str
    version: str
    #: In hex; empty for a distribution.
    sha256: str = ""
    #: Not in the repr: it may carry a password. None for what is not fetched.
    url: str | None = field(default=None, repr=False)
    #: `url` as written, without values of the environment.
    shown_url: str = ""
    alias: str | None = None
    #: Of the functions as they are called, sorted.
    signatures: tuple[str, ...] = field(default=(), repr=False)
    #: For a pickle, whose bytes differ from run to run: a sha256 of its code, by which a change is noticed.
    identity: str = ""
    #: A pickle that travels in the plan, for a job that has no checkpoint url.
    content: bytes | None = field(default=None, repr=False)

    @property
    def key(self) -> str:
        """What people call it: the alias, else the name. Unique in a plan."""
        return self.alias or self.name

    def __str__(self) -> str:
        digest = f" (sha256 {self.sha256[:12]})" if self.sha256 else ""
        return f"{self.kind} {self.name} {self.version}".strip() + digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Nodes and chains in topological order, so that inputs come before their consumers."""

    job_id: str
    nodes: Mapping[str, Node]
    edges: tuple[Edge, ...]
    chains: tuple[Chain, ...]
    checkpoint: CheckpointSpec = CheckpointSpec()
    #: In the order of the file, then pickles, then the distributions whose functions are used.
    udfs: tuple[UdfPin, ...] = ()
    #: How epochs run on Spark: `jobs`, `live` or `auto`.
    execution: str = "jobs"
    #: By node, how many of its last rows of each epoch come back to the driver, for whoever looks at the job.
    latest: Mapping[str, int] = field(default_factory=dict)

    @property
    def wave_count(self) -> int:
        return max(chain.wave for chain in self.chains) + 1

    def wave_chains(self, wave: int) -> tuple[Chain, ...]:
        return tuple(chain for chain in self.chains if chain.wave == wave)

    @property
    def width(self) -> int:
        """How many tasks run beside each other, in its widest wave."""
        return max(chain.parallelism for chain in self.chains)

    @property
    def live_slots(self) -> int:
        """How many slots of Spark live workers need: their own, and one for jobs that commit meanwhile."""
        return self.width + any(node.commits_with_jobs for node in self.nodes.values())

    def wave_parallelism(self, wave: int) -> int:
        """Subtask i of every chain of a wave runs in its partition i, so the widest chain decides."""
        return max(chain.parallelism for chain in self.wave_chains(wave))

    def chain_of(self, node: str) -> Chain:
        return next(chain for chain in self.chains if node in chain.nodes)

    def inputs_of(self, node: str) -> tuple[Edge, ...]:
        """In the order of the node's `inputs`."""
        return tuple(sorted((edge for edge in self.edges if edge.target == node), key=lambda edge: edge.input))

    def written_nodes(self) -> tuple[Node, ...]:
        """The nodes that a person wrote, without those that the planner put in."""
        return tuple(node for node in self.nodes.values() if node.partial_of is None)

    def written_inputs(self, node: str) -> tuple[str, ...]:
        """The nodes that a written node reads, as a person wrote them."""
        sources = [self.nodes[edge.source] for edge in self.inputs_of(node)]
        return tuple(
            source.id if source.partial_of is None else self.inputs_of(source.id)[0].source for source in sources
        )

    def outputs_of(self, node: str) -> tuple[Edge, ...]:
        return tuple(edge for edge in self.edges if edge.source == node)
