"""`Lineage`: tells OpenLineage when jobs start, run and end, and what they read and write."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.generated.error_message_run import ErrorMessageRunFacet
from openlineage.client.generated.job_type_job import JobTypeJobFacet
from openlineage.client.generated.output_statistics_output_dataset import OutputStatisticsOutputDatasetFacet
from openlineage.client.generated.processing_engine_run import ProcessingEngineRunFacet
from openlineage.client.generated.schema_dataset import SchemaDatasetFacet, SchemaDatasetFacetFields
from openlineage.client.uuid import generate_new_uuid

from arroyo_core.api import Dataset
from arroyo_core.cli.observers import Observer
from arroyo_core.errors import ArroyoError, DataError, OperatorError, UdfError
from arroyo_core.pipeline.plan import Node, Plan
from arroyo_core.plugin import installed_plugins
from arroyo_core.runtime.assembly import construct
from arroyo_core.runtime.pinned_udfs import plugins_for
from arroyo_core.runtime.results import EpochResult, JobResult
from arroyo_openlineage.client import open_client, without_secrets
from arroyo_openlineage.sending import Sender, logger

#: How often a job that runs for long says so.
PERIOD_S = 60.0
NAMESPACE = "arroyo"
NAMESPACE_VARIABLE = "OPENLINEAGE_NAMESPACE"
_REST = "the log of the job has its message"
_MAX_MESSAGE = 2_000
PRODUCER = "https://pypi.org/project/arroyo-openlineage"


@dataclass(slots=True)
class _Running:
    """A job that has started."""

    plan: Plan
    run_id: str
    job: JobResult
    told_s: float
    error: BaseException | None = None
    #: By node, what it reads or writes.
    datasets: Mapping[str, Sequence[Dataset]] = field(default_factory=dict)


class Lineage(Observer):
    """Emits events about jobs with these plans, through the client of OpenLineage.

    For `arroyo run`, and as a context manager around `Pipeline.run(listener=...)`, whose end it tells then:

        with Lineage([pipeline.plan], url="http://localhost:5000") as lineage:
            pipeline.run(listener=lineage)
    """

    def __init__(
        self, plans: Sequence[Plan], *, url: str | None = None, namespace: str | None = None, client: Any = None
    ) -> None:
        """Without a `url` and a `client` the client finds its own settings: OPENLINEAGE_URL, openlineage.yml."""
        self._plans = {plan.job_id: plan for plan in plans}
        self._namespace = namespace or os.environ.get(NAMESPACE_VARIABLE) or NAMESPACE
        if client is None:
            client = open_client(url)
        self._sender = Sender(client)
        self._running: dict[str, _Running] = {}

    def on_start(self, job: JobResult) -> None:
        plan = self._plans[job.job_id]
        running = _Running(plan, str(generate_new_uuid()), job, time.monotonic(), datasets=_datasets(plan))
        self._running[job.job_id] = running
        self._emit(running, RunState.START)

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        running = self._running.get(job.job_id)
        if running is not None and time.monotonic() - running.told_s >= PERIOD_S:
            running.told_s = time.monotonic()
            self._emit(running, RunState.RUNNING)

    def on_failure(self, job_id: str, error: BaseException) -> None:
        running = self._running.get(job_id)
        if running is not None:
            running.error = error

    def on_end(self, job_id: str) -> None:
        """A job that was stopped at a checkpoint is complete, as far as it was to run."""
        running = self._running.pop(job_id, None)
        if running is None:
            return
        if running.error is None:
            self._emit(running, RunState.COMPLETE)
        else:
            is_failure = isinstance(running.error, Exception)
            self._emit(running, RunState.FAIL if is_failure else RunState.ABORT)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for job_id in list(self._running):
            if error is not None:
                self.on_failure(job_id, error)
            self.on_end(job_id)
        self._sender.close()

    def _emit(self, running: _Running, state: Any) -> None:
        plan = running.plan
        facets: dict[str, Any] = {
            "processing_engine": ProcessingEngineRunFacet(
                version=_version("pyspark"), name="spark", openlineageAdapterVersion=_version("arroyo-openlineage")
            )
        }
        if running.error is not None:
            facets["errorMessage"] = ErrorMessageRunFacet(message=_told(running.error), programmingLanguage="PYTHON")
        job_facets: dict[str, Any] = {
            "jobType": JobTypeJobFacet(processingType="STREAMING", integration="ARROYO", jobType="PIPELINE")
        }
        inputs = [
            InputDataset(each.namespace, each.name, facets=_schema(node.output_schema.schema))
            for node, each in _each(plan, running)
            if not plan.inputs_of(node.id)
        ]
        outputs = [
            OutputDataset(
                each.namespace,
                each.name,
                facets=_schema(node.input_schemas[0].schema),
                outputFacets={"outputStatistics": OutputStatisticsOutputDatasetFacet(rowCount=_rows(node, running))},
            )
            for node, each in _each(plan, running)
            if plan.inputs_of(node.id)
        ]
        self._sender.send(
            RunEvent(
                eventTime=datetime.now(UTC).isoformat(),
                eventType=state,
                producer=PRODUCER,
                run=Run(running.run_id, facets=facets),
                job=Job(self._namespace, plan.job_id, facets=job_facets),
                inputs=inputs,
                outputs=outputs,
            )
        )


def _told(error: BaseException) -> str:
    """What a catalogue is told of an error. Messages of operators quote rows, which are none of its business."""
    if isinstance(error, OperatorError):
        where = f"operator {error.operator_id!r}, subtask {error.subtask}, epoch {error.epoch}"
        return f"{where}: {error.cause_kind or 'failed'}; {_REST}"
    if isinstance(error, DataError | UdfError) or not isinstance(error, ArroyoError):
        return f"{type(error).__name__}; {_REST}"
    return without_secrets(str(error))[:_MAX_MESSAGE]


def _datasets(plan: Plan) -> dict[str, Sequence[Dataset]]:
    """What sources and sinks say; what fails there is logged, and the job starts without."""
    plugins = plugins_for(plan, installed_plugins())
    found: dict[str, Sequence[Dataset]] = {}
    for node in plan.written_nodes():
        if plan.inputs_of(node.id) and plan.outputs_of(node.id):
            continue
        try:
            found[node.id] = construct(node, plugins).inner.datasets()
        except Exception as error:
            logger.warning("OpenLineage: what %r reads or writes is not known: %s", node.id, error)
    return found


def _each(plan: Plan, running: _Running) -> list[tuple[Node, Dataset]]:
    return [(plan.nodes[name], each) for name, found in running.datasets.items() for each in found]


def _rows(node: Node, running: _Running) -> int:
    metrics = running.job.operators.get(node.id)
    return metrics.rows_received if metrics is not None else 0


def _schema(schema: pa.Schema) -> dict[str, Any]:
    fields = [SchemaDatasetFacetFields(name=each.name, type=str(each.type)) for each in schema]
    return {"schema": SchemaDatasetFacet(fields=fields)}


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown"
