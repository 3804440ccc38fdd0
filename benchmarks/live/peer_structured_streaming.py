"""Structured Streaming on a steady stream of lines, which say when they were made: `MODULE TASK`.

The source is the one over a socket: that of rates hands over whole seconds. Lines come in lots of 50 ms, as rows of
`impulse.source` do.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming import DataStreamWriter

from ..nexmark.engine_structured_streaming import session
from .streams import STEP_S, StreamTask


class Lines:
    """Serves lines to one client at a rate, once it has connected."""

    def __init__(self, task: StreamTask) -> None:
        self._task = task
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        client, _ = self._server.accept()
        sent, started_s = 0, time.monotonic()
        with client:
            while sent < self._task.rows:
                time.sleep(STEP_S)
                due = min(self._task.rows, round((time.monotonic() - started_s) * self._task.rate))
                made_us = time.time_ns() // 1000
                client.sendall("".join(f"{number} {made_us}\n" for number in range(sent, due)).encode())
                sent = due


def stream(spark: SparkSession, port: int) -> DataFrame:
    lines = spark.readStream.format("socket").options(host="127.0.0.1", port=port).load()
    parts = sql.split("value", " ")
    rows = lines.select(parts[0].cast("long").alias("counter"), parts[1].cast("long").alias("made_us"))
    return rows.repartition("counter")


def writer(rows: DataFrame, task: StreamTask) -> DataStreamWriter:
    if task.is_shown:
        return rows.writeStream.format("console").options(numRows=task.rows, truncate=False)
    return rows.writeStream.format("parquet").option("path", task.answer)


def refusal(spark: SparkSession, task: StreamTask) -> str:
    """What Real-Time Mode says to this stream, shown on the console; nothing where it runs."""
    return said(writer(stream(spark, Lines(task).port), task), f"{task.scratch}/realtime")


def said(job: DataStreamWriter, checkpoint: str) -> str:
    """How Real-Time Mode fails, in one line; empty where it runs for some seconds."""
    try:
        running = (
            job.outputMode("update").option("checkpointLocation", checkpoint).trigger(realTime="5 seconds").start()
        )
        running.awaitTermination(10)
        running.stop()
    except Exception as error:
        first, *_ = str(error).splitlines()
        return first[first.find("[STREAMING") :] if "[STREAMING" in first else first
    return ""


def main() -> None:
    task = StreamTask.read(Path(sys.argv[1]))
    spark = session(task.cores)
    spark.sparkContext.setLogLevel("OFF")
    if task.is_realtime:
        files = spark.readStream.schema("counter LONG").parquet(task.scratch).writeStream.format("console")
        found = {"socket": refusal(spark, task), "files": said(files, f"{task.scratch}/realtime_files")}
        Path(task.answer).write_text(json.dumps(found))
        spark.stop()
        return
    lines = Lines(task)
    job = writer(stream(spark, lines.port), task).option("checkpointLocation", f"{task.scratch}/checkpoint")
    running = job.trigger(processingTime="0 seconds").start()
    lines.thread.join()
    running.processAllAvailable()
    running.stop()
    spark.stop()


if __name__ == "__main__":
    main()
