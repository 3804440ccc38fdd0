"""A pipeline as a task of Airflow 3. For Airflow 2, take `DAG` from `airflow` and `BaseOperator` from `airflow.models`.

A task that is marked failed, cleared or timed out ends its epoch and commits it before the process goes; the next try
goes on from there.
"""

from __future__ import annotations

import shlex
import signal
import subprocess
from datetime import datetime, timedelta
from typing import Any

from airflow.exceptions import AirflowException, AirflowFailException
from airflow.sdk import DAG, BaseOperator

#: A mistake, a job that another driver has, damaged checkpoints: another try makes nothing better.
NO_RETRY = {2: "a mistake in the pipeline or its settings", 3: "another driver has the job", 4: "damaged checkpoints"}
#: How long an epoch may take to end and to be committed.
STOP_S = 300


class ArroyoRunOperator(BaseOperator):
    """Runs `arroyo run PIPELINE` with more arguments, which may be templates."""

    template_fields = ("pipeline", "arguments")

    def __init__(
        self, *, pipeline: str, arguments: list[str] | None = None, command: str = "arroyo", **options: Any
    ) -> None:
        super().__init__(**options)
        self.pipeline = pipeline
        self.arguments = arguments or []
        self.command = command
        self._process: subprocess.Popen[str] | None = None

    def execute(self, context: Any) -> None:
        """Run to the end of the data; raises what tells Airflow whether to try again."""
        command = [*shlex.split(self.command), "run", self.pipeline, *self.arguments]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self._process.stdout is not None
        with self._process.stdout as printed:
            for line in printed:
                self.log.info("%s", line.rstrip())
        code = self._process.wait()
        if code in NO_RETRY:
            raise AirflowFailException(f"arroyo ended with {code}: {NO_RETRY[code]}")
        if code:
            raise AirflowException(f"arroyo ended with {code}")

    def on_kill(self) -> None:
        """The epoch ends and is committed; past the limit it is given up, and the next try goes on before it."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()


with DAG(
    dag_id="arroyo_daily",
    schedule="15 2 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    # A second run of one job would take it over from the first.
    max_active_runs=1,
    default_args={"retries": 3, "retry_delay": timedelta(minutes=5)},
):
    ArroyoRunOperator(
        task_id="daily",
        pipeline="/etc/arroyo/daily.yaml",
        arguments=["--set", "day={{ ds }}"],
    )
