"""Several jobs beside each other in one process: each in a thread of its own, none of them minds how another ends."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from arroyo_core.runtime.events import StopMode
from arroyo_core.runtime.job_threads import current_job
from arroyo_core.runtime.results import JobResult
from arroyo_core.runtime.stop import StopSignal


class Outcome(StrEnum):
    """How a job ended; the values of `outcome` in JSON."""

    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(slots=True)
class SetJob:
    """A job of a set."""

    name: str
    #: Runs it to its end, asks the signal whether to stop, and tells what the job has come to so far.
    run: Callable[[SetJob], JobResult]
    stop: StopSignal = field(default_factory=StopSignal)
    #: As the job itself changes it; that of a job which has not begun is empty.
    result: JobResult = field(init=False)
    error: Exception | None = None
    has_ended: bool = False

    def __post_init__(self) -> None:
        self.result = JobResult(job_id=self.name)

    @property
    def outcome(self) -> Outcome:
        """How it ended; one that still runs when it is asked is interrupted."""
        if not self.has_ended:
            return Outcome.INTERRUPTED
        if self.error is not None:
            return Outcome.FAILED
        return Outcome.FINISHED if self.result.is_finished else Outcome.STOPPED


class StopSignals(StopSignal):
    """Stops all jobs of a set."""

    def __init__(self, jobs: Sequence[SetJob]) -> None:
        super().__init__()
        self._jobs = jobs

    def request(self, mode: StopMode = StopMode.CHECKPOINT) -> None:
        super().request(mode)
        for job in self._jobs:
            job.stop.request(mode)


def run_jobs(jobs: Sequence[SetJob]) -> Iterator[SetJob]:
    """Run all of them; each comes out when it has ended, in whatever way.

    Waits in the caller's thread, where a signal handler may raise: jobs that still run then are left to themselves, in
    threads that end with the process.
    """
    ended: queue.SimpleQueue[SetJob] = queue.SimpleQueue()
    for job in jobs:
        threading.Thread(target=_run, args=(job, ended), name=f"arroyo-job-{job.name}", daemon=True).start()
    for _ in jobs:
        job = ended.get()
        job.has_ended = True
        yield job


def _run(job: SetJob, ended: queue.SimpleQueue[SetJob]) -> None:
    current_job.set(job.name)
    try:
        job.result = job.run(job)
    except Exception as error:
        job.error = error
    except BaseException as error:
        # A user function that calls sys.exit ends its job, and no more.
        failure = RuntimeError(f"the job ended with {type(error).__name__}: {error}")
        failure.__cause__ = error
        job.error = failure
    ended.put(job)
