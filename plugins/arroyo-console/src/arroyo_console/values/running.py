"""How a job gets on: rows, what holds it up, errors, and what it prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
