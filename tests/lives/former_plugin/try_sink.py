import json
import sqlite3
from contextlib import closing

import pyarrow as pa

from arroyo_core.testing.conformance import Conformance, SinkCase

ROWS = pa.table({"word": ["a", "b", None, "a"], "n": [1, 2, 3, 4]})


def visible(table):
    def read(folder):
        lines = []
        if (folder / "events.db").exists():
            with closing(sqlite3.connect(folder / "events.db")) as database:
                lines = [json.loads(row) for (row,) in database.execute(f"select row from {table}")]
        return pa.Table.from_pylist(lines, schema=ROWS.schema)

    return read


def config(folder):
    return {"path": str(folder / "events.db")}


appends = SinkCase("acme.sqlite", config, inputs=[ROWS], visible=visible("events"))
replaces = SinkCase("acme.latest", config, inputs=[ROWS], visible=visible("latest"), latest_by=["word"])
Conformance("acme_sqlite", [appends]).run()
Conformance("acme_latest", [replaces], allowed_imports=["acme_sqlite"]).run()
