"""Pipelines and their jobs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from arroyo_console.values.texts import Language


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
class Job:
    """A job with its history; newest runs and changes first."""

    summary: JobSummary
    runs: tuple[JobRun, ...] = ()
    changes: tuple[StateChange, ...] = ()
    spark_ui: str = ""
