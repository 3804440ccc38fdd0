"""`arroyo run --format json`: a line for each epoch and one for the end, for tools.

The fields are a contract, written down in `docs/watching.md`: more may come, none goes and none changes its meaning.
"""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from types import TracebackType
from typing import Any, TextIO

from arroyo_core.pipeline.plan import Plan
from arroyo_core.runtime.job import SilentListener
from arroyo_core.runtime.metric import json_values
from arroyo_core.runtime.results import EpochResult, JobResult


class JsonOutput(SilentListener):
    """Writes to `out` between enter and exit; what else is printed to stdout meanwhile goes to stderr."""

    def __init__(self, plan: Plan, out: TextIO) -> None:
        self._plan = plan
        self._out = out
        self._job = JobResult(job_id=plan.job_id)
        #: The job's own end, in whatever way; without it there is an error.
        self._has_returned = False

    def __enter__(self) -> JsonOutput:
        self._redirection = redirect_stdout(sys.stderr)
        self._redirection.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._redirection.__exit__(kind, error, trace)
        self._write(
            end_object(self._plan, self._job, outcome=self._outcome(error), error=str(error) if error else None)
        )

    def on_start(self, job: JobResult) -> None:
        self._job = job

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        self._job = job
        self._write(epoch_object(job.plan or self._plan, result))

    def on_end(self, job: JobResult) -> None:
        """The job ended without an error."""
        self._job = job
        self._has_returned = True

    def _outcome(self, error: BaseException | None) -> str:
        if self._has_returned:
            return "finished" if self._job.is_finished else "stopped"
        return "failed" if isinstance(error, Exception) else "interrupted"

    def _write(self, fields: dict[str, Any]) -> None:
        # Written whole and at once: whoever reads a pipe sees an epoch as soon as it is committed.
        self._out.write(json.dumps(fields) + "\n")
        self._out.flush()


def epoch_object(plan: Plan, result: EpochResult) -> dict[str, Any]:
    """A committed epoch."""
    summaries = result.operator_summaries()
    return {
        "event": "epoch",
        "job": plan.job_id,
        **result.summary(),
        "slowest": result.slowest(),
        "operators": [
            {
                **_identity(plan, name),
                **summaries[name],
                "counters": dict(metrics.counters),
                "warnings": list(metrics.warnings.values()),
            }
            for name, metrics in result.operators.items()
        ],
    }


def end_object(plan: Plan, job: JobResult, *, outcome: str, error: str | None) -> dict[str, Any]:
    """What all epochs of this run came to."""
    plan = job.plan or plan
    return {
        "event": "end",
        "job": plan.job_id,
        "outcome": outcome,
        "error": error,
        **json_values(job),
        "operators": [
            {
                **_identity(plan, name),
                **json_values(metrics),
                "counters": dict(metrics.counters),
            }
            for name, metrics in job.operators.items()
        ],
    }


def _identity(plan: Plan, name: str) -> dict[str, Any]:
    return {"node": name, "operator": plan.nodes[name].operator, "parallelism": plan.nodes[name].parallelism}
