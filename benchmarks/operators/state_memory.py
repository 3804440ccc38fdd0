"""What an operator's state takes in memory beside the Arrow size of that state.

`python -m benchmarks.operators.state_memory fill CASE KEYS FOLDER` makes the state, and leaves its checkpoint in the
folder; with `load` and a file for the result, a process that has done nothing else opens it.
"""

from __future__ import annotations

import gc
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from arroyo_nexmark.tables import TABLES
from arroyo_testing import OperatorHarness

from arroyo_core.api import ArroyoSchema, Watermark
from arroyo_core.pipeline import plan_pipeline
from arroyo_core.plugin import PluginSet, installed_plugins
from arroyo_core.proto.state_pb2 import OperatorCheckpointMetadata

from .cases import COLUMNS, Case, case_of

BATCH_ROWS = 65_536
#: The rows of the batch that makes an operator look into the state it has loaded.
TOUCHED_ROWS = 1_000
START_US = 1_700_000_000_000_000
HOUR_US = 3_600_000_000
METADATA = "metadata"


class Discarding(OperatorHarness):
    """Keeps no output: it is not the state."""

    def send(self, batch: pa.RecordBatch) -> None:
        pass


def schema_of(table: str) -> ArroyoSchema:
    fields = TABLES[table].schema
    return ArroyoSchema(pa.schema([fields.field(name) for name in COLUMNS[table]]), "date_time")


def make_rows(table: str, first: int, count: int) -> pa.RecordBatch:
    """One row for each key, from a key on, all of one moment."""
    numbers = pa.array(np.arange(first, first + count))
    moments = pa.array(np.full(count, START_US))
    schema = schema_of(table).schema
    arrays = [(moments if field.name == "date_time" else numbers).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def open_harness(case: Case) -> Discarding:
    """The operator with its config as the planner reads it."""
    plugins = installed_plugins()
    constructor = plugins.registry.constructors[case.operator]
    message = constructor.config_type.FromString(planned_config(case, plugins))
    inputs = [schema_of(table) for table in case.tables]
    return Discarding(lambda: constructor.with_config(message, plugins.registry), inputs=inputs)


def planned_config(case: Case, plugins: PluginSet) -> bytes:
    nodes: list[dict[str, Any]] = [
        {"id": table, "operator": "nexmark.source", "config": {"table": table, "fields": list(COLUMNS[table])}}
        for table in case.tables
    ]
    nodes.append(
        {"id": "measured", "operator": case.operator, "inputs": list(case.tables), "config": dict(case.config)}
    )
    nodes.append({"id": "nowhere", "operator": "std.blackhole", "inputs": ["measured"]})
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pipeline.yaml"
        file.write_text(yaml.safe_dump({"name": "memory", "nodes": nodes}))
        return plan_pipeline(file, plugins=plugins, environment={}).nodes["measured"].config


def fill(case: Case, keys: int, folder: Path) -> None:
    """As many keys as asked for; of a join, on both sides."""
    with open_harness(case) as harness:
        for first in range(0, keys, BATCH_ROWS):
            for index, table in enumerate(case.tables):
                harness.process(make_rows(table, first, min(BATCH_ROWS, keys - first)), index)
        harness.checkpoint()
        state = harness._state
        assert state.metadata is not None
        shutil.copytree(urlsplit(state.url).path, folder, dirs_exist_ok=True)
        (folder / METADATA).write_bytes(state.metadata.SerializeToString())


def load(case: Case, folder: Path) -> dict[str, int]:
    """Bytes of the state in Arrow, and by how much the process grew at most while it loaded and looked into it."""
    with open_harness(case) as harness:
        # What an empty operator does loads all code.
        touch(harness, case)
    with open_harness(case) as harness:
        state = harness._state
        state.url = folder.as_uri()
        state.metadata = OperatorCheckpointMetadata.FromString((folder / METADATA).read_bytes())
        gc.collect()
        pa.default_memory_pool().release_unused()
        before = resident_bytes("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")
        harness.restore()
        touch(harness, case)
        grown = resident_bytes("VmHWM") - before
    return {"arrow_bytes": arrow_bytes(folder), "grown_bytes": grown}


def touch(harness: OperatorHarness, case: Case) -> None:
    """Make the operator look into its state: by rows, and where that waits for the time, by a watermark after all."""
    for index, table in enumerate(case.tables):
        harness.process(make_rows(table, 0, TOUCHED_ROWS), index)
    if case.is_fired_by_time:
        for index in range(len(case.tables)):
            harness.watermark(Watermark.event_time(START_US + HOUR_US), index)


def arrow_bytes(folder: Path) -> int:
    """What all rows of the checkpoint's tables take in Arrow, with the columns that the tables add."""
    return sum(pq.read_table(path).nbytes for path in folder.rglob("*.parquet"))


def resident_bytes(field: str) -> int:
    """A line of `/proc/self/status`: `VmRSS`, resident now, or `VmHWM`, at most since the mark was cleared."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) * 1024


def main() -> None:
    step, name, keys, folder, *result = sys.argv[1:]
    case = case_of(name)
    if step == "fill":
        fill(case, int(keys), Path(folder))
    else:
        Path(result[0]).write_text(json.dumps(load(case, Path(folder))))


if __name__ == "__main__":
    main()
