"""Rows of the database as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import RowMapping

from arroyo_console.values import JobRun, Language, PipelineVersion, State, StateChange


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """A job as the database has it; fields are those of the table `jobs`."""

    id: str
    pipeline_id: str
    checkpoint_url: str
    state: State
    error: str
    is_wanted: bool
    stop_mode: str
    starts_again: bool
    is_fresh: bool
    failures: int
    restarts: int
    start_after_us: int
    created_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run as the database has it."""

    id: str
    job_id: str
    number: int
    version: int
    host: str
    boot_id: str
    pid: int | None
    process_start: int | None
    started_us: int
    ended_us: int | None
    exit_code: int | None
    reason: str
    is_restart: bool

    def shown(self) -> JobRun:
        return JobRun(
            id=self.id,
            number=self.number,
            version=self.version,
            started_us=self.started_us,
            ended_us=self.ended_us,
            pid=self.pid,
            exit_code=self.exit_code,
            reason=self.reason,
            is_restart=self.is_restart,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRecord:
    """A pipeline with its newest version, its job, and the newest run of that."""

    id: str
    name: str
    version: int
    parallelism: int | None
    created_us: int
    updated_us: int
    language: Language
    text: str
    job: JobRecord
    run: RunRecord | None


def job_record(row: RowMapping, prefix: str = "") -> JobRecord:
    values = _fields(row, JobRecord, prefix)
    return JobRecord(**{**values, "state": State(values["state"])})


def run_record(row: RowMapping, prefix: str = "") -> RunRecord | None:
    """None where an outer join found no run."""
    if row[f"{prefix}id"] is None:
        return None
    return RunRecord(**_fields(row, RunRecord, prefix))


def version_of(row: RowMapping) -> PipelineVersion:
    return PipelineVersion(
        version=row["version"], language=Language(row["language"]), text=row["text"], created_us=row["created_us"]
    )


def change_of(row: RowMapping) -> StateChange:
    return StateChange(at_us=row["at_us"], state=State(row["state"]), reason=row["reason"])


def _fields(row: RowMapping, kind: type, prefix: str) -> dict[str, Any]:
    return {name: row[f"{prefix}{name}"] for name in kind.__dataclass_fields__}  # type: ignore[attr-defined]
