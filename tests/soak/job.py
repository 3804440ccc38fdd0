"""The job that is soaked: `arroyo run`, in processes of its own, and where it keeps what."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import yaml

CHAOS = Path(__file__).parents[1] / "integration" / "chaos_plugin"
#: The end of a stop on request, on a busy machine.
STOP_S = 120


@dataclass(frozen=True, slots=True)
class Places:
    """Where a run keeps what; nothing of it is shared with other jobs of the machine."""

    root: Path
    #: Of Python, of the JVM and of Spark. Paths of sockets must be short.
    temp: Path

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def cache(self) -> Path:
        return self.root / "cache"

    @property
    def output(self) -> Path:
        return self.root / "out"

    def make(self) -> None:
        for folder in (self.state, self.output):
            folder.mkdir(parents=True)


class Run:
    """`arroyo run` on local Spark, in a session of its own; its epochs are lines of JSON on `lines`."""

    def __init__(self, places: Places, document: Mapping[str, object]) -> None:
        self._places = places
        pipeline = places.root / "pipeline.yaml"
        pipeline.write_text(yaml.safe_dump(dict(document), sort_keys=False))
        path = os.pathsep.join(filter(None, [str(CHAOS), os.environ.get("PYTHONPATH")]))
        command = [str(Path(sys.executable).with_name("arroyo")), "run", str(pipeline), "--format", "json"]
        command += ["--master", "local[2]", "--conf", f"spark.local.dir={places.temp}"]
        command += ["--conf", "spark.ui.enabled=false"]
        with (places.root / "stderr.log").open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=places.root,
                start_new_session=True,
                env=os.environ
                | {
                    "PYTHONPATH": path,
                    "TMPDIR": str(places.temp),
                    "ARROYO_STATE_CACHE": str(places.cache),
                    "SPARK_LOCAL_IP": "127.0.0.1",
                    "JDK_JAVA_OPTIONS": f"-Djava.io.tmpdir={places.temp}",
                },
            )

    @property
    def session(self) -> int:
        return self._process.pid

    @property
    def lines(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def stop(self) -> int:
        """Ask it to end after its epoch; its exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(STOP_S)

    def close(self) -> None:
        """When all its processes have ended."""
        self._process.wait()
        self.lines.close()

    def said(self) -> str:
        """The end of what it wrote besides its epochs."""
        return (self._places.root / "stderr.log").read_text(errors="replace")[-3000:]
