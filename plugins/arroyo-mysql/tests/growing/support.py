"""The table that grows, in a MariaDB."""

from __future__ import annotations

from arroyo_mysql.plugin import SourceConstructor
from arroyo_testing.databases import DatabaseServer, GrowingTable

from tests.waiting import wait_until

SESSIONS = "select id from information_schema.processlist where db = 'shop' and id <> connection_id()"


class Events(GrowingTable):
    constructor = SourceConstructor()

    def __init__(self, server: DatabaseServer) -> None:
        super().__init__(server)
        server.execute(
            "create table events (id bigint auto_increment primary key, word text, at timestamp(6) null, size double)"
        )
        #: Of others, which may go any time.
        self._before = {row[0] for row in server.execute(SESSIONS)}

    def time(self, text: str) -> str:
        return f"'{text}'"

    def ago(self, minutes: int) -> str:
        return f"utc_timestamp() - interval {minutes} minute"

    def sessions(self) -> set[int]:
        return {row[0] for row in self.server.execute(SESSIONS)} - self._before

    def end_session(self, number: int) -> None:
        self.server.execute(f"kill {number}")
        wait_until(lambda: number not in self.sessions())
