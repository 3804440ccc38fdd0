"""What a job has stored: checkpoints, tables of state, and dead letters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from arroyo_console.values.texts import Column


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
