"""The job that is soaked: keyed windows, running values and two exactly-once sinks, in an epoch every 200 ms."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import duckdb
import yaml

#: Events per second while a source runs, which is a part of each epoch. State is bounded: so many keys, and windows
#: of one second.
RATE = 10_000
KEYS = 500
INTERVAL_MS = 200
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


def document(places: Places) -> dict[str, object]:
    return {
        "name": "soak",
        "parallelism": 2,
        "checkpoint": {"url": str(places.state), "interval": f"{INTERVAL_MS}ms"},
        "nodes": [
            {
                "id": "bids",
                "operator": "nexmark.source",
                "config": {"rate": RATE, "event_rate": RATE, "fields": ["auction", "price", "date_time"]},
            },
            {
                "id": "keyed",
                "operator": "std.project",
                "inputs": ["bids"],
                "config": {"expressions": {"key": f"auction % {KEYS}", "price": "price", "moment": "date_time"}},
            },
            {"id": "timed", "operator": "std.watermark", "inputs": ["keyed"], "config": {"column": "moment"}},
            {
                "id": "windows",
                "operator": "std.tumbling_window",
                "inputs": ["timed"],
                "config": {
                    "size": "1s",
                    "keys": ["key"],
                    "aggregates": [
                        {"function": "count", "as": "bids"},
                        {"function": "max", "column": "price", "as": "highest"},
                    ],
                },
            },
            {
                "id": "totals",
                "operator": "std.updating_aggregate",
                "inputs": ["timed"],
                "config": {
                    "keys": ["key"],
                    "aggregates": [
                        {"function": "count", "as": "bids"},
                        {"function": "sum", "column": "price", "as": "amount"},
                    ],
                },
            },
            {
                "id": "window_files",
                "operator": "filesystem.sink",
                "inputs": ["windows"],
                "config": {"path": str(places.output / "windows"), "format": "parquet"},
            },
            {
                "id": "change_files",
                "operator": "filesystem.sink",
                "inputs": ["totals"],
                "config": {"path": str(places.output / "changes"), "format": "debezium_json"},
            },
        ],
    }


class Run:
    """`arroyo run` on local Spark, in a session of its own; its epochs are lines of JSON on `lines`."""

    def __init__(self, places: Places) -> None:
        self._places = places
        pipeline = places.root / "pipeline.yaml"
        pipeline.write_text(yaml.safe_dump(document(places), sort_keys=False))
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


def counted_rows(places: Places) -> int:
    """The rows that the running values have counted, by the changes that were committed."""
    files = f"{places.output}/changes/part-*.jsonl"
    query = f"""
        SELECT sum(coalesce(after.bids, 0) - coalesce(before.bids, 0))::bigint
        FROM read_json('{files}', format = 'newline_delimited',
            columns = {{before: 'STRUCT(bids BIGINT)', after: 'STRUCT(bids BIGINT)'}})
    """
    with duckdb.connect() as db:
        ((rows,),) = db.execute(query).fetchall()
    return int(rows or 0)
