"""The table that grows, in a PostgreSQL."""

from __future__ import annotations

from arroyo_postgres.plugin import SourceConstructor
from arroyo_testing.databases import DatabaseServer, GrowingTable


class Events(GrowingTable):
    constructor = SourceConstructor()

    def __init__(self, server: DatabaseServer) -> None:
        super().__init__(server)
        server.execute(
            "drop schema public cascade",
            "create schema public",
            "create table events (id bigint generated always as identity primary key, word text, at timestamptz)",
        )

    def time(self, text: str) -> str:
        return f"timestamptz '{text}Z'"

    def ago(self, minutes: int) -> str:
        return f"now() - interval '{minutes} minutes'"

    def sessions(self) -> set[int]:
        found = self.server.execute("select pid from pg_stat_activity where application_name like '%arroyo source%'")
        return {row[0] for row in found}

    def end_session(self, number: int) -> None:
        self.server.execute(f"select pg_terminate_backend({number}, 10000)")
