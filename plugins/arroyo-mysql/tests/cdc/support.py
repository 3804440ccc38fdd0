"""Tables of MySQL under test."""

from __future__ import annotations

from arroyo_connectors.cdc import open_streams
from arroyo_mysql.plugin import CdcConstructor
from arroyo_testing.databases import CdcTable


class Table(CdcTable):
    """A table of its own, and sources that read it; `close` it."""

    constructor = CdcConstructor()
    schema = "shop"

    def fill(self, count: int, first: int = 1) -> None:
        last = first + count - 1
        self.run(f"insert into $t (id, name) select seq, concat('row ', seq) from seq_{first}_to_{last}")

    def put(self, key: int, name: str) -> str:
        return f"insert into $t values ({key}, '{name}') on duplicate key update name = 'x'"

    def add_missing(self, key: int, name: str) -> str:
        return f"insert ignore into $t values ({key}, '{name}')"

    def dump_threads(self) -> list[int]:
        """The sessions of the server that read its binlog."""
        return [row[0] for row in self.run("show processlist") if str(row[4]).startswith("Binlog Dump")]

    def end_streams(self) -> None:
        for thread in self.dump_threads():
            self.run(f"kill {thread}")

    def close_streams(self) -> None:
        open_streams.close_all()
