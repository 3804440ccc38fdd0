"""One job of several: how it runs, and who is told about it."""

from __future__ import annotations

from collections.abc import Sequence

from arroyo_core.cli.log_lines import ERROR, INFO
from arroyo_core.cli.observers import Observer
from arroyo_core.cli.progress import PlainProgress, Progress
from arroyo_core.cli.run import finished_before
from arroyo_core.runtime.job import JobListener
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.results import EpochResult, JobResult
from arroyo_core.runtime.start import StartOptions
from arroyo_core.spark.shuffles import Spark
from arroyo_core.state import default_warm_cache
from arroyo_jobs.job_lines import JsonLines
from arroyo_jobs.planned_jobs import PlannedJob
from arroyo_jobs.threads import Outcome, SetJob


class JobRun:
    """Listens to its job, and passes on what it hears until it is closed; Spark is set before it runs."""

    def __init__(self, planned: PlannedJob, progress: Progress, *, max_restarts: int, json: JsonLines | None) -> None:
        self._planned = planned
        self._max_restarts = max_restarts
        self.plan = planned.pipeline.plan
        self.job = SetJob(planned.name, self._run)
        self._progress = progress
        self._json = json
        self._is_closed = False
        #: Told about every job of the command.
        self.observers: Sequence[Observer] = ()
        #: Where its epochs run; None for this process.
        self.spark: Spark | None = None

    def on_start(self, job: JobResult) -> None:
        # The job goes on to change it, so that it is known what one has done that fails.
        self.job.result = job
        for listener in self._listeners():
            listener.on_start(job)

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        for listener in self._listeners():
            listener.on_epoch(result, job)

    def _listeners(self) -> Sequence[JobListener]:
        if self._is_closed:
            return ()
        return (self._progress, *self.observers, *([self._json] if self._json is not None else ()))

    def has_finished_before(self) -> bool:
        """Whether an earlier run has finished the job, so that nothing is left to run."""
        result = finished_before(self._planned.start, StartOptions(), self.plan)
        if result is None:
            return False
        self.job.result, self.job.has_ended = result, True
        self.close()
        return True

    def on_end(self, left: int) -> None:
        """The job has ended, and `left` others have not."""
        others = f"; {left} {'other runs' if left == 1 else 'others run'} on" if left else ""
        self._progress.__exit__(None, None, None)
        if self.job.outcome is Outcome.FAILED:
            self._tell(f"failed{others}: {self.job.error}", level=ERROR)
        elif isinstance(self._progress, PlainProgress):
            self._tell(f"{self.job.outcome}{others}")
        self.close()

    def _tell(self, text: str, *, level: str = INFO) -> None:
        self._progress.write(self._progress.lines.render(text, level=level, event="end", outcome=self.job.outcome))

    def close(self) -> None:
        """Whatever the job does from now on, nobody hears of it; one that has not ended is interrupted."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._json is not None:
            error = None if self.job.error is None else str(self.job.error)
            self._json.on_end(self.job.result, outcome=self.job.outcome, error=error)
        for observer in self.observers:
            if self.job.error is not None:
                observer.on_failure(self.job.name, self.job.error)
            observer.on_end(self.job.name)

    def _run(self, job: SetJob) -> JobResult:
        pipeline = self._planned.pipeline
        is_here = self.spark is None
        return pipeline.run(
            self.spark,
            executor=LocalExecutor(pipeline.plugins, cache=default_warm_cache()) if is_here else None,
            listener=self,
            stop=job.stop,
            max_restarts=self._max_restarts,
            # Live workers would keep their slots, and those of others.
            execution="jobs",
        )
