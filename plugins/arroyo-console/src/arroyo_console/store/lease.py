"""Which of the servers of a database supervises its jobs: the one that holds the lease."""

from __future__ import annotations

import os
import socket
import time
from uuid import uuid4

from sqlalchemy import Engine, delete, insert, select, update
from sqlalchemy.exc import IntegrityError, OperationalError

from arroyo_console.processes import boot_id, is_alive, process_start
from arroyo_console.store.tables import LEASES

#: After so long without a renewal the lease is anybody's.
LEASE_S = 20.0
_NAME = "supervisor"


class Lease:
    """The lease of one server. Nobody but its holder starts, stops or restarts jobs."""

    def __init__(self, engine: Engine, *, shown: str) -> None:
        self._engine = engine
        self._holder = uuid4().hex
        self._shown = shown
        #: Until when this server holds it, by the monotonic clock; 0 where it does not.
        self._until_s = 0.0

    @property
    def is_held(self) -> bool:
        return time.monotonic() < self._until_s

    def take(self) -> bool:
        """Take or renew the lease; whether this server has it now.

        It goes to another server when it has expired, and at once where its holder's process is seen to be gone.
        """
        asked_s, now_us = time.monotonic(), time.time_ns() // 1000
        values = {
            "holder": self._holder,
            "shown": self._shown,
            "host": socket.gethostname(),
            "boot_id": boot_id(),
            "pid": os.getpid(),
            "process_start": process_start(os.getpid()) or 0,
            "expires_us": now_us + int(LEASE_S * 1e6),
        }
        try:
            is_taken = self._take(values, now_us)
        except (IntegrityError, OperationalError):
            # Another server was faster, or the database does not answer now.
            is_taken = False
        # Counted from before the database was asked: the row expires no sooner.
        self._until_s = asked_s + LEASE_S if is_taken else 0.0
        return is_taken

    def _take(self, values: dict[str, object], now_us: int) -> bool:
        with self._engine.begin() as connection:
            row = connection.execute(select(LEASES).where(LEASES.c.name == _NAME)).mappings().first()
            if row is None:
                connection.execute(insert(LEASES).values(name=_NAME, **values))
                return True
            is_gone = (
                row["host"] == socket.gethostname()
                and row["boot_id"] == boot_id()
                and not is_alive(row["pid"], row["process_start"])
            )
            if row["holder"] != self._holder and row["expires_us"] > now_us and not is_gone:
                return False
            # Only from whom it was read to have it: another server may be as fast.
            same = (LEASES.c.holder == row["holder"]) & (LEASES.c.expires_us == row["expires_us"])
            changed = connection.execute(update(LEASES).where(LEASES.c.name == _NAME, same).values(values))
            return changed.rowcount == 1

    def give_up(self) -> None:
        """Another server may take it at once."""
        self._until_s = 0.0
        with self._engine.begin() as connection:
            connection.execute(delete(LEASES).where(LEASES.c.name == _NAME, LEASES.c.holder == self._holder))

    def holder(self) -> str:
        """Who has it, in words; empty for nobody."""
        with self._engine.connect() as connection:
            return connection.scalar(select(LEASES.c.shown).where(LEASES.c.name == _NAME)) or ""
