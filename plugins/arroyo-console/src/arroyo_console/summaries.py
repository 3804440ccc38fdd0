"""A pipeline and its job for lists: from the database, and from the end of a journal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from arroyo_console.folders import Folders
from arroyo_console.looking import journals
from arroyo_console.store.records import PipelineRecord
from arroyo_console.values import JobSummary, Pipeline
from arroyo_core.api.urls import redact_url


def shown_pipeline(record: PipelineRecord, folders: Folders) -> Pipeline:
    return Pipeline(
        id=record.id,
        name=record.name,
        language=record.language,
        text=record.text,
        version=record.version,
        parallelism=record.parallelism,
        created_us=record.created_us,
        updated_us=record.updated_us,
        job=summary_of(record, folders),
    )


def summary_of(record: PipelineRecord, folders: Folders) -> JobSummary:
    job, run = record.job, record.run
    line = _last_line(job.id, run.number, folders) if run is not None else None
    point = journals.point_of(line) if line is not None else None
    own = int(line.get("restarts", 0)) if line is not None else 0
    return JobSummary(
        id=job.id,
        pipeline_id=record.id,
        name=record.name,
        state=job.state,
        checkpoint_url=redact_url(job.checkpoint_url),
        epoch=point.epoch if point is not None else None,
        committed_us=point.at_us if point is not None else None,
        rows_per_s=point.rows_per_s if point is not None and job.state.has_process else None,
        backlog=point.backlog if point is not None else None,
        watermark_lag_s=journals.lag_s(line.get("watermark_us")) if line is not None else None,
        restarts=job.restarts + own,
        parallelism=line.get("parallelism") if line is not None else record.parallelism,
        started_us=run.started_us if run is not None else None,
        ended_us=run.ended_us if run is not None else None,
        pid=run.pid if run is not None and run.ended_us is None else None,
        error=job.error,
    )


def _last_line(job_id: str, newest: int, folders: Folders) -> Mapping[str, Any] | None:
    """Of the newest run, or of the one before it, as long as that has not committed anything."""
    runs = (folders.run(job_id, number) for number in (newest, newest - 1) if number)
    return next((line for folder in runs if (line := journals.last_line(folder)) is not None), None)
