"""PyFlink's Table API on a steady stream of rows, which say when they were made: `MODULE TASK`."""

from __future__ import annotations

import sys
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

from .streams import COMMIT_MS, StreamTask


def main() -> None:
    task = StreamTask.read(Path(sys.argv[1]))
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = {
        "parallelism.default": str(task.cores),
        "execution.checkpointing.interval": "5 s" if task.is_shown else f"{COMMIT_MS} ms",
        "execution.checkpointing.mode": "EXACTLY_ONCE",
        "execution.checkpointing.dir": f"file://{task.scratch}/checkpoints",
        # Else rows wait for a buffer that is full, or 100 ms.
        "execution.buffer-timeout.interval": "0 ms",
        "table.local-time-zone": "UTC",
    }
    for name, value in settings.items():
        tables.get_config().set(name, value)
    tables.execute_sql(
        "CREATE TABLE ticks (counter BIGINT, made TIMESTAMP(3)) WITH ("
        f"'connector' = 'datagen', 'rows-per-second' = '{task.rate}', 'fields.counter.kind' = 'sequence', "
        f"'fields.counter.start' = '0', 'fields.counter.end' = '{task.rows - 1}')"
    )
    files = (
        f"'connector' = 'filesystem', 'path' = 'file://{task.answer}', 'format' = 'csv', "
        f"'sink.rolling-policy.rollover-interval' = '{COMMIT_MS // 2} ms', "
        "'sink.rolling-policy.check-interval' = '20 ms'"
    )
    written = "'connector' = 'print'" if task.is_shown else files
    tables.execute_sql(f"CREATE TABLE answer (counter BIGINT, made TIMESTAMP(3)) WITH ({written})")
    tables.execute_sql("INSERT INTO answer SELECT counter, made FROM ticks").wait()


if __name__ == "__main__":
    main()
