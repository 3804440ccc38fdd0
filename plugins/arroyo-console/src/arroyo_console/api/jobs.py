"""`/v1/jobs`: how jobs are, what they have stored, and what went wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from arroyo_console.api.problems import RESPONSES
from arroyo_console.api.requests import (
    DEFAULT_LIMIT,
    After,
    Asked,
    Epoch,
    JobId,
    Limit,
    Lines,
    Name,
    NameQuery,
    Offset,
    OptionalEpoch,
    PageOf,
    ReplayBody,
    Rows,
    Run,
)
from arroyo_console.values import (
    Checkpoint,
    Graph,
    Job,
    JobError,
    JobMetrics,
    JobSummary,
    Letter,
    LetterSummary,
    LogLines,
    OperatorMetrics,
    ReplayResult,
    TableInfo,
    TableRows,
)

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], responses=RESPONSES)

#: How often a stream looks for what is new.
LOOK_S = 0.5
#: A line that means nothing, so that proxies do not close a stream in which nothing happens.
QUIET_S = 15.0


@router.get("")
def list_jobs(console: Asked, limit: Limit = DEFAULT_LIMIT, after: After = None) -> PageOf[JobSummary]:
    """Newest first."""
    return PageOf[JobSummary].of(console.jobs(limit=limit, after=after))


@router.get("/{job_id}")
def get_job(job_id: JobId, console: Asked) -> Job:
    """A job with its runs and what became of them."""
    return console.job(job_id)


@router.get("/{job_id}/graph")
def job_graph(job_id: JobId, console: Asked) -> Graph:
    """The plan of the text that it was last started with."""
    return console.job_graph(job_id)


@router.get("/{job_id}/metrics")
def job_metrics(job_id: JobId, console: Asked, history: Annotated[int, Query(ge=1, le=5_000)] = 120) -> JobMetrics:
    """Its nodes in the last epoch, the epochs before, and what holds it up."""
    return console.job_metrics(job_id, history=history)


@router.get("/{job_id}/operator_metric_groups")
def operator_metric_groups(job_id: JobId, console: Asked) -> list[OperatorMetrics]:
    """Its nodes in the last epoch, by subtask."""
    return list(console.job_metrics(job_id, history=1).operators)


@router.get("/{job_id}/errors")
def job_errors(job_id: JobId, console: Asked, limit: Limit = DEFAULT_LIMIT) -> list[JobError]:
    """What went wrong, newest first."""
    return list(console.job_errors(job_id, limit=limit))


@router.get("/{job_id}/log")
def job_log(job_id: JobId, console: Asked, lines: Lines = 200, offset: Offset = None, run: Run = None) -> LogLines:
    """The end of its log; with the `offset` of the answer before what came since."""
    return console.job_log(job_id, lines=lines, offset=offset, run=run)


@router.get(
    "/{job_id}/output",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}, "description": "A line of output in each event"}},
)
async def job_output(
    job_id: JobId,
    request: Request,
    console: Asked,
    lines: Lines = 200,
    follow: Annotated[bool, Query(description="Whether to wait for more, until the job has ended")] = True,
) -> StreamingResponse:
    """What its sinks print (`std.stdout`), as server-sent events: the last lines, and then what comes."""
    first = await run_in_threadpool(console.job_output, job_id, lines=lines)

    async def events() -> AsyncIterator[bytes]:
        found, quiet_s = first, 0.0
        while True:
            for line in found.lines:
                yield f"id: {found.offset}\ndata: {json.dumps(line)}\n\n".encode()
            quiet_s = 0.0 if found.lines else quiet_s + LOOK_S
            if quiet_s >= QUIET_S:
                quiet_s = 0.0
                yield b": waiting\n\n"
            if await request.is_disconnected():
                return
            # Asked before the last look: what a job prints at its end is there then.
            state = (await run_in_threadpool(console.job, job_id)).summary.state
            before = found
            found = await run_in_threadpool(console.job_output, job_id, lines=5_000, offset=before.offset)
            if found.run != before.run:
                found = await run_in_threadpool(console.job_output, job_id, lines=5_000)
            if not found.lines and not (follow and state.is_active):
                yield b"event: end\ndata: {}\n\n"
                return
            if not found.lines:
                await asyncio.sleep(LOOK_S)

    return StreamingResponse(events(), media_type="text/event-stream")


@router.get("/{job_id}/checkpoints")
def checkpoints(job_id: JobId, console: Asked, limit: Limit = DEFAULT_LIMIT) -> list[Checkpoint]:
    """Newest first."""
    return list(console.checkpoints(job_id, limit=limit))


@router.get("/{job_id}/checkpoints/{epoch}")
def checkpoint(job_id: JobId, epoch: Epoch, console: Asked) -> Checkpoint:
    """One, with what each operator wrote and what it took over."""
    return console.checkpoint(job_id, epoch)


@router.get("/{job_id}/state")
def tables(job_id: JobId, console: Asked, epoch: OptionalEpoch = None) -> list[TableInfo]:
    """Its tables of state."""
    return list(console.tables(job_id, epoch=epoch))


@router.get("/{job_id}/state/{node}/{table}")
def table_rows(
    job_id: JobId,
    node: Name,
    table: Name,
    console: Asked,
    epoch: OptionalEpoch = None,
    key: NameQuery = None,
    limit: Rows = 100,
) -> TableRows:
    """Rows of a table; with `key` those that have this value in a column."""
    return console.table_rows(job_id, node, table, epoch=epoch, key=key, limit=limit)


@router.get("/{job_id}/state/{node}/{table}/difference")
def table_difference(
    job_id: JobId,
    node: Name,
    table: Name,
    console: Asked,
    before: OptionalEpoch = None,
    epoch: OptionalEpoch = None,
    key: NameQuery = None,
    limit: Rows = 100,
) -> TableRows:
    """What went (`-`) and came (`+`) between two epochs, by default the two newest."""
    return console.table_difference(job_id, node, table, before=before, epoch=epoch, key=key, limit=limit)


@router.get("/{job_id}/dead_letters")
def dead_letters(job_id: JobId, console: Asked) -> list[LetterSummary]:
    """Where its dead letters are, by node."""
    return list(console.letters(job_id))


@router.get("/{job_id}/dead_letters/rows")
def dead_letter_rows(
    job_id: JobId,
    console: Asked,
    node: NameQuery = None,
    error: NameQuery = None,
    limit: Rows = 20,
    all: bool = False,
) -> list[Letter]:
    """Open letters; with `all` also those that a replay has."""
    return list(console.letters_of(job_id, node=node, error=error, limit=limit, is_all=all))


@router.post("/{job_id}/dead_letters/replay")
def replay(job_id: JobId, body: ReplayBody, console: Asked) -> ReplayResult:
    """Feed open letters through the newest text of the pipeline; a dry run unless `dry_run` is false."""
    return console.replay_letters(job_id, node=body.node, error=body.error, limit=body.limit, is_dry_run=body.dry_run)
