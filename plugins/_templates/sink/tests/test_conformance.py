"""The rules that every sink must keep; see `arroyo_testing.conformance`."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
from arroyo_testing.conformance import Conformance, SinkCase

ROWS = pa.table({"word": ["a", "b", "a", None, "c", "a", "b", None], "n": range(8)})


def visible(folder: Path) -> pa.Table:
    """What others see of the sink's output."""
    rows = []
    if (folder / "ledger.db").exists():
        with closing(sqlite3.connect(folder / "ledger.db")) as database:
            rows = [json.loads(row) for (row,) in database.execute("select row from rows")]
    return pa.Table.from_pylist(rows, schema=ROWS.schema)


conformance = Conformance(
    "arroyo_template_sink.plugin",
    [
        SinkCase(
            "template.ledger",
            lambda folder: {"path": str(folder / "ledger.db")},
            inputs=[ROWS],
            visible=visible,
        )
    ],
)
