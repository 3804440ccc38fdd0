"""The supervisor: one thread that makes of jobs what people want of them.

It looks at the database, at processes and at what runs have left in their folders, again and again. What it knows
beside that can be lost at any moment: a server that is killed is followed by one that finds all the same.
"""

from __future__ import annotations

import logging
import shutil
import signal
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import replace

from arroyo_devtools.lint.secrets import hide_secrets
from sqlalchemy.exc import SQLAlchemyError

from arroyo_console.errors import ConflictError
from arroyo_console.folders import Folders
from arroyo_console.processes import boot_id, end_group, is_alive, process_start, reap, send_signal
from arroyo_console.store import Store
from arroyo_console.store.lease import LEASE_S, Lease
from arroyo_console.store.records import PipelineRecord, RunRecord
from arroyo_console.supervision.asking import ask_to_stop, job_ended
from arroyo_console.supervision.decisions import HEALTHY_S, End, after_end
from arroyo_console.supervision.launching import Launch, LaunchSettings, run_arguments, start_process, write_text
from arroyo_console.supervision.runs import cut_files, has_started, last_line, read_exit, read_process
from arroyo_console.values import State, Wish
from arroyo_core.errors import ArroyoError

#: How often it looks, where nobody wakes it.
SWEEP_S = 1.0
#: A run that was begun by a server that died meanwhile, and has not said by then which process it is, never started.
UNKNOWN_PROCESS_S = 30.0
MAX_RESTARTS = 10
#: Folders of runs that are kept of a job: their logs, journals and texts.
KEPT_RUNS = 50

logger = logging.getLogger(__name__)


class Supervisor:
    """Looks after the jobs of a database while it holds the lease, between `start` and `stop`."""

    def __init__(
        self,
        store: Store,
        folders: Folders,
        lease: Lease,
        *,
        settings: LaunchSettings,
        environment: Mapping[str, str],
        max_restarts: int = MAX_RESTARTS,
    ) -> None:
        self._store = store
        self._folders = folders
        self._lease = lease
        self._settings = settings
        self._environment = environment
        self._max_restarts = max_restarts
        self._wake = threading.Event()
        self._is_over = False
        self._thread: threading.Thread | None = None
        #: By run: the mode that its driver was asked to stop in.
        self._asked: dict[str, str] = {}
        self._renewed_s = 0.0

    @property
    def is_supervisor(self) -> bool:
        return self._lease.is_held

    def start(self) -> None:
        self._renew()
        self._thread = threading.Thread(target=self._run, name="arroyo-supervisor", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Jobs go on; another server may supervise them at once."""
        self._is_over = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self._lease.give_up()

    def wake(self) -> None:
        """Somebody wants something: look now."""
        self._wake.set()

    def sweep(self) -> None:
        """Look at every job that runs or is to, once."""
        for pipeline in self._store.active():
            if not self._lease.is_held:
                return
            try:
                self._look_after(pipeline)
            except ConflictError as error:
                logger.info("%s", error.message)
            except (OSError, ArroyoError, ValueError) as error:
                logger.warning("job %s: %s", pipeline.job.id, hide_secrets(str(error)))

    def _run(self) -> None:
        while not self._is_over:
            self._wake.clear()
            try:
                self._renew()
                if self._lease.is_held:
                    self.sweep()
            except SQLAlchemyError as error:
                logger.warning("the database cannot be used now: %s", hide_secrets(str(error)))
            self._wake.wait(SWEEP_S)

    def _renew(self) -> None:
        now_s = time.monotonic()
        if not self._lease.is_held or now_s - self._renewed_s > LEASE_S / 4:
            self._renewed_s = now_s
            self._lease.take()

    def _look_after(self, pipeline: PipelineRecord) -> None:
        job, run = pipeline.job, pipeline.run
        if run is not None and run.ended_us is None:
            if not self._has_ended(run):
                self._look_at_running(pipeline, run)
                return
            self._end(pipeline, run)
        elif job.is_wanted and job.state is not State.FAILED and job.start_after_us <= _now_us():
            self._start(pipeline)
        elif not job.is_wanted and job.state.is_active:
            self._store.change_job(job.id, state=State.STOPPED, reason="it did not run", now_us=_now_us())

    # A run that goes on

    def _has_ended(self, run: RunRecord) -> bool:
        if run.pid is not None:
            reap(run.pid)
        if run.host != socket.gethostname():
            return job_ended(self._store.pipeline_of(run.job_id))
        if run.pid is None or run.process_start is None:
            return self._find_process(run)
        return run.boot_id != boot_id() or not is_alive(run.pid, run.process_start)

    def _find_process(self, run: RunRecord) -> bool:
        """For a run whose server died before it had noted the process; whether there is none."""
        found = read_process(self._folders.run(run.job_id, run.number))
        if found is None:
            return _now_us() - run.started_us > UNKNOWN_PROCESS_S * 1e6
        self._store.change_run(run.id, pid=found.pid, process_start=found.process_start)
        return not is_alive(found.pid, found.process_start)

    def _look_at_running(self, pipeline: PipelineRecord, run: RunRecord) -> None:
        job, folder = pipeline.job, self._folders.run(run.job_id, run.number)
        cut_files(folder)
        if not job.is_wanted or job.starts_again:
            self._ask(pipeline, run)
        elif job.state in (State.STARTING, State.RESTARTING) and has_started(folder):
            self._store.change_job(job.id, state=State.RUNNING, now_us=_now_us(), error="")
        if job.failures and job.state is State.RUNNING and _now_us() - run.started_us > HEALTHY_S * 1e6:
            self._store.change_job(job.id, failures=0, now_us=_now_us())

    def _ask(self, pipeline: PipelineRecord, run: RunRecord) -> None:
        mode = pipeline.job.stop_mode
        if self._asked.get(run.id) == mode:
            return
        if run.pid is None or run.process_start is None:
            return
        if mode == Wish.KILL:
            # The group: what the driver runs on, such as Spark's own process, ends with it.
            send_signal(run.pid, run.process_start, signal.SIGKILL, to_group=True)
        elif not ask_to_stop(pipeline, mode):
            # It has not claimed its state: there is no driver yet that would look for a file.
            send_signal(run.pid, run.process_start, signal.SIGTERM)
            return
        self._asked[run.id] = mode

    # The end of a run

    def _end(self, pipeline: PipelineRecord, run: RunRecord) -> None:
        job, folder, now_us = pipeline.job, self._folders.run(run.job_id, run.number), _now_us()
        left = read_exit(folder)
        self._asked.pop(run.id, None)
        if left is None and run.pid is not None and (run.host, run.boot_id) == (socket.gethostname(), boot_id()):
            end_group(run.pid)
        end = End(
            exit_code=left[0] if left is not None else None,
            lasted_s=(now_us - run.started_us) / 1e6,
            is_finished=job_ended(pipeline, finished=True),
            is_asked=not job.is_wanted or job.starts_again,
            error=hide_secrets(last_line(folder)) if left is not None and left[0] else "",
        )
        decision = after_end(end, failures=job.failures, max_restarts=self._max_restarts)
        ended_us = left[1] if left is not None else now_us
        self._store.change_run(run.id, ended_us=ended_us, exit_code=end.exit_code, reason=decision.reason)
        fields = {"failures": decision.failures, "error": ""}
        if decision.state in (State.FAILED, State.RESTARTING):
            fields["error"] = decision.reason
        if job.starts_again and decision.state is State.STOPPED:
            fields |= {"starts_again": False, "is_wanted": True, "start_after_us": 0}
            decision = replace(decision, state=State.STARTING, reason="it starts again, as it was asked to")
        elif decision.state is State.RESTARTING:
            fields |= {"start_after_us": now_us + int(decision.pause_s * 1e6), "restarts": job.restarts + 1}
        else:
            fields |= {"is_wanted": False, "starts_again": False}
        self._store.change_job(job.id, state=decision.state, reason=decision.reason, now_us=now_us, **fields)
        self.wake()

    # A start

    def _start(self, pipeline: PipelineRecord) -> None:
        job, now_us = pipeline.job, _now_us()
        number = 1 if pipeline.run is None else pipeline.run.number + 1
        launch = Launch(
            job_id=job.id,
            pipeline_id=pipeline.id,
            number=number,
            language=pipeline.language,
            text=pipeline.text,
            parallelism=pipeline.parallelism,
            is_fresh=job.is_fresh,
        )
        if number > KEPT_RUNS:
            shutil.rmtree(self._folders.run(job.id, number - KEPT_RUNS), ignore_errors=True)
        is_restart = job.state is State.RESTARTING
        run_id = self._store.add_run(
            job.id,
            number,
            version=pipeline.version,
            host=socket.gethostname(),
            boot_id=boot_id(),
            is_restart=is_restart,
            now_us=now_us,
        )
        try:
            path, named = write_text(self._folders, launch)
            pid = start_process(path.parent, run_arguments(path, launch, self._settings), environment=self._environment)
        except (OSError, ArroyoError) as error:
            reason = f"it could not be started: {hide_secrets(str(error))}"
            self._store.change_run(run_id, ended_us=now_us, reason=reason)
            self._store.change_job(
                job.id, state=State.FAILED, reason=reason, error=reason, is_wanted=False, now_us=now_us
            )
            return
        self._store.change_run(run_id, pid=pid, process_start=process_start(pid))
        self._store.change_job(
            job.id,
            state=State.STARTING,
            reason=f"run {number} was started" + (" again" if is_restart else ""),
            checkpoint_url=named.url,
            is_fresh=False,
            start_after_us=0,
            now_us=now_us,
        )


def _now_us() -> int:
    return time.time_ns() // 1000
