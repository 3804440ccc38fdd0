"""`/v1/pipelines`: texts, and the pipelines that they become."""

from __future__ import annotations

from fastapi import APIRouter, Response

from arroyo_console.api.problems import RESPONSES
from arroyo_console.api.requests import (
    DEFAULT_LIMIT,
    After,
    Asked,
    ChangeBody,
    CreateBody,
    Limit,
    PageOf,
    PipelineId,
    PreviewBody,
    RestartBody,
    Search,
    TextBody,
)
from arroyo_console.values import Graph, JobSummary, Pipeline, PipelineVersion, Preview, Validation

router = APIRouter(prefix="/v1/pipelines", tags=["pipelines"], responses=RESPONSES)


@router.post("/validate_query")
def validate_query(body: TextBody, console: Asked) -> Validation:
    """All mistakes of a text, with their lines and columns. Nothing of it runs."""
    return console.validate(body.query, body.language)


@router.post("/graph")
def graph(body: TextBody, console: Asked) -> Graph:
    """The plan of a text; its problems where it has any."""
    return console.graph(body.query, body.language)


@router.post("/preview")
def preview(body: PreviewBody, console: Asked) -> Preview:
    """Run a text on a sample. Sinks are replaced, and no checkpoint is written."""
    return console.preview(body.query, body.language, node=body.node, rows=body.rows, seconds=body.seconds)


@router.get("")
def list_pipelines(
    console: Asked, search: Search = "", limit: Limit = DEFAULT_LIMIT, after: After = None
) -> PageOf[Pipeline]:
    """Newest first."""
    return PageOf[Pipeline].of(console.pipelines(search=search, limit=limit, after=after))


@router.post("", status_code=201)
def create_pipeline(body: CreateBody, console: Asked) -> Pipeline:
    """Create a pipeline, and start its job unless `start` is false."""
    return console.create_pipeline(body.query, body.language, parallelism=body.parallelism, start=body.start)


@router.get("/{pipeline_id}")
def get_pipeline(pipeline_id: PipelineId, console: Asked) -> Pipeline:
    """One pipeline with its text and its job."""
    return console.pipeline(pipeline_id)


@router.patch("/{pipeline_id}")
def change_pipeline(pipeline_id: PipelineId, body: ChangeBody, console: Asked) -> Pipeline:
    """Start or stop it, change its parallelism (at once, where it runs) or its text (from the next start)."""
    return console.change_pipeline(
        pipeline_id, text=body.query, language=body.language, parallelism=body.parallelism, wish=body.stop
    )


@router.delete("/{pipeline_id}", status_code=204)
def delete_pipeline(pipeline_id: PipelineId, console: Asked) -> Response:
    """Delete a pipeline whose job does not run; checkpoints and output stay."""
    console.delete_pipeline(pipeline_id)
    return Response(status_code=204)


@router.post("/{pipeline_id}/restart")
def restart_pipeline(pipeline_id: PipelineId, body: RestartBody, console: Asked) -> Pipeline:
    """Stop its job at a checkpoint, and start it again."""
    return console.restart_pipeline(pipeline_id, is_forced=body.force, is_fresh=body.ignore_state)


@router.get("/{pipeline_id}/versions")
def pipeline_versions(pipeline_id: PipelineId, console: Asked) -> list[PipelineVersion]:
    """The texts that it had, newest first."""
    return list(console.pipeline_versions(pipeline_id))


@router.get("/{pipeline_id}/jobs")
def pipeline_jobs(pipeline_id: PipelineId, console: Asked) -> list[JobSummary]:
    """Its job: a pipeline has one, with a run for each process."""
    return [console.pipeline(pipeline_id).job]
