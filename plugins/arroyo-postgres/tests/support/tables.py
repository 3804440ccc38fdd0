"""Tables of PostgreSQL under test, each with a slot."""

from __future__ import annotations

from typing import Any

from arroyo_connectors.cdc import open_streams
from arroyo_postgres.plugin import CdcConstructor
from arroyo_testing.databases import CdcTable, DatabaseServer

from tests.waiting import wait_until


class Table(CdcTable):
    """A table of its own, with a slot and sources that read it; `close` it."""

    constructor = CdcConstructor()
    schema = "public"

    def __init__(
        self, server: DatabaseServer, columns: str = "id int primary key, name text", *, identity: str = "full"
    ) -> None:
        super().__init__(server, columns)
        self.slot = f"s_{self.name}"
        if identity:
            self.run(f"alter table $t replica identity {identity}")

    def given(self) -> dict[str, Any]:
        return {"slot": self.slot, "create": True}

    def fill(self, count: int, first: int = 1) -> None:
        self.run(
            f"insert into $t (id, name) select i, 'row ' || i from generate_series({first}, {first + count - 1}) i"
        )

    def put(self, key: int, name: str) -> str:
        return f"insert into $t values ({key}, '{name}') on conflict (id) do update set name = 'x'"

    def add_missing(self, key: int, name: str) -> str:
        return f"insert into $t values ({key}, '{name}') on conflict do nothing"

    def end_streams(self) -> None:
        self.run(f"select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = '{self.slot}'")

    def close_streams(self) -> None:
        open_streams.close_all()

    def slot_row(self, what: str) -> Any:
        found = self.run(f"select {what} from pg_replication_slots where slot_name = '{self.slot}'")
        return found[0][0] if found else None

    def drop(self) -> None:
        """The table, its publication, and its slot when nobody reads it any more."""
        self.run(f"drop publication if exists {self.slot}", "drop table if exists $t")
        if self.slot_row("1") is not None:
            wait_until(lambda: self.slot_row("active_pid") is None)
            self.run(f"select pg_drop_replication_slot('{self.slot}')")
