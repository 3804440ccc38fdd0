"""The rules that every sink and every lookup must keep; see `arroyo_testing.conformance`."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
from arroyo_testing.conformance import Conformance, LookupCase, SinkCase

# A key is never NULL: a row without one is an error.
SCHEMA = pa.schema([pa.field("word", pa.string(), nullable=False), ("n", pa.int64()), ("price", pa.float64())])
ROWS = pa.table(
    {"word": ["a", "b", "a", "c", "a", "b"], "n": [1, None, 3, 4, 5, 6], "price": [0.5, 1, None, 2, 3, 4]},
    schema=SCHEMA,
)


def config(**changes):
    return lambda folder: {"path": str(folder / "shop.db"), "table": "words", **changes}


def visible(folder: Path) -> pa.Table:
    """What others see of the sink's output."""
    with closing(sqlite3.connect(folder / "shop.db")) as database:
        if not database.execute("select 1 from sqlite_master where name = 'words'").fetchall():
            return SCHEMA.empty_table()
        rows = database.execute("select word, n, price from words").fetchall()
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def words(folder: Path):
    with closing(sqlite3.connect(folder / "shop.db")) as database:
        database.execute("create table words (word text, n bigint, price double)")
        rows = [tuple(row.values()) for row in ROWS.to_pylist()]
        database.executemany("insert into words values (?, ?, ?)", rows)
        database.commit()
    return {"path": str(folder / "shop.db"), "table": "words"}


conformance = Conformance(
    "arroyo_template_database.plugin",
    [
        SinkCase("template.sink", config(), inputs=[ROWS], visible=visible),
        SinkCase(
            "template.sink",
            config(mode="upsert", keys=["word"]),
            inputs=[ROWS],
            visible=visible,
            latest_by=["word"],
            id="template.sink that replaces",
        ),
        LookupCase("template.lookup", words, rows=ROWS, keys=["word"]),
        LookupCase("template.lookup", words, rows=ROWS, keys=["word", "n"], id="template.lookup by two columns"),
    ],
)
