"""`arroyo run FOLDER` in a session of its own, and what it tells: its epochs, by job."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..integration.processes import end_session

ARROYO = str(Path(sys.executable).with_name("arroyo"))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEpoch:
    """A committed epoch of a job, `time_s` after the start of the command."""

    job: str
    time_s: float
    number: int
    duration_s: float
    commit_s: float


@dataclass(slots=True)
class Command:
    """Runs between enter and exit. Nothing of it is shared with other jobs of the machine."""

    root: Path
    #: Of Python, of the JVM and of Spark. Paths of sockets must be short.
    temp: Path
    epochs: list[JobEpoch] = field(default_factory=list)
    #: What each job came to, when it has ended.
    ends: dict[str, dict[str, Any]] = field(default_factory=dict)
    started_s: float = field(default_factory=time.monotonic)
    _process: subprocess.Popen[bytes] = field(init=False)
    _reader: threading.Thread = field(init=False)

    def __enter__(self) -> Command:
        command = [ARROYO, "run", str(self.root / "pipelines"), "--format", "json"]
        command += ["--conf", f"spark.local.dir={self.temp}", "--conf", "spark.ui.enabled=false"]
        with (self.root / "stderr.log").open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self.root,
                start_new_session=True,
                env=os.environ
                | {
                    "TMPDIR": str(self.temp),
                    "ARROYO_STATE_CACHE": str(self.root / "cache"),
                    "SPARK_LOCAL_IP": "127.0.0.1",
                    "JDK_JAVA_OPTIONS": f"-Djava.io.tmpdir={self.temp}",
                },
            )
        self._reader = threading.Thread(target=self._read, name="many-lines", daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        end_session(self.session)
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    @property
    def session(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def time_s(self) -> float:
        return time.monotonic() - self.started_s

    def epochs_of(self, job: str) -> list[JobEpoch]:
        return [epoch for epoch in list(self.epochs) if epoch.job == job]

    def stop_one(self, job: str) -> None:
        """As a user stops one of them."""
        subprocess.run([ARROYO, "stop", f"{self.root / 'state'}#{job}"], check=True, capture_output=True)

    def stop(self) -> int:
        """Ask all that are left to end after their epochs; the exit code."""
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait()
        self._reader.join()
        return code

    def said(self) -> str:
        return (self.root / "stderr.log").read_text(errors="replace")

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            found = json.loads(line)
            if found["event"] == "end":
                self.ends[found["job"]] = found | {"time_s": self.time_s}
            else:
                self.epochs.append(
                    JobEpoch(
                        job=found["job"],
                        time_s=self.time_s,
                        number=found["epoch"],
                        duration_s=found["duration_s"],
                        commit_s=found["commit_s"],
                    )
                )
