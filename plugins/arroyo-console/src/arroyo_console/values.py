"""What the console says of pipelines, jobs and what is installed: the values of the HTTP API and of the pages.

Times are in microseconds since 1970. What nobody knows is None. No value has a secret in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Language(StrEnum):
    """What a text is written in."""

    YAML = "yaml"
    SQL = "sql"


class State(StrEnum):
    """How a job is, as far as its process, its status file and the wishes of people tell."""

    #: Nobody has started it.
    CREATED = "created"
    #: Its process is there, and has not claimed its state yet.
    STARTING = "starting"
    RUNNING = "running"
    #: It was asked to stop, and its process is still there.
    STOPPING = "stopping"
    STOPPED = "stopped"
    FINISHED = "finished"
    #: It ended unexpectedly, and will be started again after a pause.
    RESTARTING = "restarting"
    FAILED = "failed"

    @property
    def has_process(self) -> bool:
        return self in (State.STARTING, State.RUNNING, State.STOPPING)

    @property
    def is_active(self) -> bool:
        """Whether it runs, or will run without anybody asking again."""
        return self.has_process or self is State.RESTARTING


class Wish(StrEnum):
    """What somebody wants of a job: `start` it, or stop it in one of the modes of `arroyo stop`, or `kill` it."""

    START = "start"
    CHECKPOINT = "checkpoint"
    GRACEFUL = "graceful"
    IMMEDIATE = "immediate"
    #: Ends the process at once, with what it runs on; started again, the job goes on from its last checkpoint.
    KILL = "kill"


class Role(StrEnum):
    """What somebody may do. Who may write may read."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    """Some of many; `next` is what to ask with for those that follow, None at the end."""

    items: tuple[T, ...]
    total: int
    next: str | None = None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSummary:
    """A job in a list."""

    id: str
    pipeline_id: str
    #: That of the pipeline, by which `arroyo ps` knows it too.
    name: str
    state: State
    #: The checkpoint URL without user and password.
    checkpoint_url: str = ""
    epoch: int | None = None
    committed_us: int | None = None
    #: Of the sources, in the last committed epoch.
    rows_per_s: float | None = None
    #: Rows that sources know of and have not read.
    backlog: int | None = None
    watermark_lag_s: float | None = None
    #: How often it was started again after it had ended unexpectedly, and how often it went back by itself.
    restarts: int = 0
    parallelism: int | None = None
    #: When its process was started, and when it ended.
    started_us: int | None = None
    ended_us: int | None = None
    pid: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A pipeline and its job. `text` is that of the newest version."""

    id: str
    name: str
    language: Language
    text: str
    version: int
    #: Instead of the number in the text; None for that.
    parallelism: int | None
    created_us: int
    updated_us: int
    job: JobSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineVersion:
    """A text that a pipeline had."""

    version: int
    language: Language
    text: str
    created_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """One process of a job."""

    id: str
    number: int
    version: int
    started_us: int
    ended_us: int | None = None
    pid: int | None = None
    #: None while it runs, and where nobody saw its end.
    exit_code: int | None = None
    #: How it ended, in words.
    reason: str = ""
    #: Whether it was started by the supervisor, after the run before had ended unexpectedly.
    is_restart: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """When a job came into a state, and why."""

    at_us: int
    state: State
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtaskMetrics:
    """What one subtask of a node did in the last committed epoch."""

    subtask: int
    rows_in: int
    rows_out: int
    rows_in_per_s: float
    rows_out_per_s: float
    bytes_in: int
    bytes_out: int
    busy_share: float
    backlog: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorMetrics:
    """What a node did in the last committed epoch."""

    node: str
    rows_in: int
    rows_out: int
    rows_in_per_s: float
    rows_out_per_s: float
    bytes_in: int = 0
    bytes_out: int = 0
    #: The part of the epoch that its busiest subtask spent in it.
    busy_share: float = 0.0
    backlog: int = 0
    state_bytes: int = 0
    watermark_us: int | None = None
    watermark_lag_s: float | None = None
    warnings: tuple[str, ...] = ()
    #: What it counts itself, by name.
    counters: Mapping[str, int] = field(default_factory=dict)
    subtasks: tuple[SubtaskMetrics, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """What holds a job up: `kind` is source, operator or sink; since when the same node has been the slowest."""

    node: str
    kind: str
    busy_share: float
    since_us: int
    explanation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochPoint:
    """A committed epoch, for curves."""

    epoch: int
    at_us: int
    duration_s: float
    rows: int
    rows_per_s: float
    checkpoint_bytes: int
    checkpoint_s: float
    commit_s: float
    state_bytes: int
    backlog: int
    watermark_lag_s: float | None = None
    slowest: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMetrics:
    """How a job gets on: its nodes in the last epoch, the epochs before, and what is slow."""

    job_id: str
    epoch: int | None = None
    operators: tuple[OperatorMetrics, ...] = ()
    #: Oldest first.
    history: tuple[EpochPoint, ...] = ()
    bottleneck: Bottleneck | None = None
    #: The running epoch so far, where the job tells: its number, its rows and its seconds.
    running_epoch: int | None = None
    running_rows: int | None = None
    running_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job with its history; newest runs and changes first."""

    summary: JobSummary
    runs: tuple[JobRun, ...] = ()
    changes: tuple[StateChange, ...] = ()
    spark_ui: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorCheckpoint:
    """What an operator wrote into a checkpoint, and what it took over from earlier ones."""

    node: str
    parallelism: int
    bytes_written: int
    bytes_reused: int
    files_written: int
    files_reused: int
    duration_s: float
    watermark_us: int | None = None
    tables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A published epoch; `error` says why it cannot be read. `operators` are there when one is asked for."""

    epoch: int
    finished_us: int | None = None
    #: How long the epoch ran, and the slowest subtask's writing of state.
    duration_s: float | None = None
    checkpoint_s: float | None = None
    is_committed: bool = False
    is_final: bool = False
    generation: int = 0
    bytes_written: int = 0
    bytes_reused: int = 0
    files: int = 0
    error: str = ""
    operators: tuple[OperatorCheckpoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobError:
    """Something that went wrong in a job."""

    at_us: int
    message: str
    #: Empty where nobody kept one.
    traceback: str = ""
    node: str | None = None
    subtask: int | None = None
    epoch: int | None = None
    run: int | None = None
    #: Whether the job went on by itself.
    is_recovered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLines:
    """The end of a file that a job writes; `offset` is where to go on reading."""

    lines: tuple[str, ...]
    offset: int
    run: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableInfo:
    """A table of state at an epoch."""

    node: str
    table: str
    kind: str
    files: int
    rows: int
    bytes: int
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRows:
    """Rows of a table at an epoch. In a difference the column `_change` says what came (`+`) and what went (`-`)."""

    node: str
    table: str
    epoch: int
    before_epoch: int | None = None
    columns: tuple[Column, ...] = ()
    rows: tuple[Mapping[str, Any], ...] = ()
    total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterSummary:
    """The dead letters of one node."""

    url: str
    pipeline: str
    node: str
    operator: str
    letters: int
    open: int
    replayed: int
    first: str = ""
    last: str = ""
    newest_error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A row that failed."""

    state: str
    node: str
    time: str
    error: str
    epoch: int | None
    subtask: int | None
    position: str
    row: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """What a replay came to, or would come to."""

    is_dry_run: bool
    lines: tuple[str, ...]
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingDoc:
    """A setting of an operator."""

    name: str
    type: str
    text: str
    is_required: bool
    default: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    """An installed operator. `kind` is source, operator or sink; the JSON Schema is that of its config."""

    name: str
    kind: str
    distribution: str
    version: str
    summary: str
    text: str = ""
    settings: tuple[SettingDoc, ...] = ()
    schema: Mapping[str, Any] = field(default_factory=dict)
    example: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """An installed user function."""

    name: str
    signature: str
    distribution: str
    version: str
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """An installed distribution of plugins; `error` says why it could not be loaded."""

    name: str
    distribution: str
    version: str
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A line of `arroyo doctor`; `level` is ok, warning or failed."""

    check: str
    level: str
    message: str
    fix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """What this server is."""

    version: str
    #: Whether this server supervises jobs; another one with the same database may.
    is_supervisor: bool
    supervisor: str
    allows_code: bool
    master: str
    languages: tuple[str, ...]
