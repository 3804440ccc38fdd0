"""The rules that every operator must keep; see `arroyo_testing.conformance`."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
from arroyo_testing.conformance import Conformance, OperatorCase, SinkCase

ROWS = pa.table({"word": ["a", "b", "a", None, "c", "a", "b", None], "n": range(8)})


def latest(folder: Path) -> pa.Table:
    """What others see of the sink's output."""
    rows = []
    if (folder / "last.db").exists():
        with closing(sqlite3.connect(folder / "last.db")) as database:
            rows = [json.loads(row) for (row,) in database.execute("select row from latest")]
    return pa.Table.from_pylist(rows, schema=ROWS.schema)


conformance = Conformance(
    "arroyo_template.plugin",
    [
        OperatorCase("template.running_count", {"key": "word", "column": "nth"}, inputs=[ROWS]),
        SinkCase(
            "template.sqlite_upsert",
            lambda folder: {"path": str(folder / "last.db"), "key": "word"},
            inputs=[ROWS],
            latest_by=["word"],
            visible=latest,
        ),
    ],
)
