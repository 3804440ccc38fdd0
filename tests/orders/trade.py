"""The shop of examples/orders, in a thread; and what PostgreSQL itself answers about it."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from arroyo_jobs.checkpoints.verification import Verifier
from pyiceberg.catalog.sql import SqlCatalog

from arroyo_core.state import ParquetBackend, get_storage_provider
from arroyo_core.state.inspection import read_table

from ..document_pages import ROOT
from ..postgres_server import PostgresServer

EXAMPLE = ROOT / "examples" / "orders"
sys.path.insert(0, str(EXAMPLE))

from shop import Shop  # noqa: E402  an example is a script, in no package

#: Between two transactions.
PAUSE_S = 0.05
JOB = "orders"
ORDERS_COLUMNS = ("id", "customer", "status", "placed_at", "total")
ORDERS = f"select {', '.join(ORDERS_COLUMNS)} from orders"
COLUMNS = ("id", "customer", "status", "placed_at", "total", "paid", "payments", "due")
SUNK = f"select {', '.join(COLUMNS)} from balances"
ANSWER = """
select o.id, o.customer, o.status, o.placed_at, o.total, coalesce(p.paid, 0), coalesce(p.payments, 0),
  o.total - coalesce(p.paid, 0)
from orders o
left join (select order_id, sum(amount) as paid, count(*) as payments from produced group by order_id) p
  on p.order_id = o.id
"""

#: How often each row is there.
Rows = Counter[tuple[Any, ...]]


class Trade:
    """Deals until it is ended; then the payments are in the database, too, in the table `produced`."""

    def __init__(self, server: PostgresServer, database: str, servers: str, *, seed: int) -> None:
        self._server = server
        self._shop = Shop(database, servers, seed=seed)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._deal)
        self._error: BaseException | None = None
        self.deals = 0

    def __enter__(self) -> Trade:
        self._shop.open()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def end(self) -> None:
        """Returns when the broker has all payments; raises what went wrong."""
        self._ends.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
        with self._server.connect() as connection:
            connection.execute("create table produced (id bigint primary key, order_id bigint, amount numeric)")
            with connection.cursor() as cursor:
                cursor.executemany("insert into produced values (%s, %s, %s)", self._shop.payments)

    @property
    def payments(self) -> int:
        return len(self._shop.payments)

    def _deal(self) -> None:
        try:
            # What it does while a driver starts is read while the driver starts: it need not be fast.
            while not self._ends.wait(PAUSE_S):
                self._shop.deal()
                self.deals += 1
            self._shop.close()
        except BaseException as error:  # it is raised where the thread is waited for
            self._error = error


def rows(server: PostgresServer, query: str) -> Rows:
    return Counter(server.execute(query))


def has_begun(server: PostgresServer) -> bool:
    """Whether orders have come to the table of the job."""
    ((table,),) = server.execute("select to_regclass('balances')")
    return table is not None and bool(server.execute("select 1 from balances limit 1"))


def has_caught_up(server: PostgresServer) -> bool:
    """Whether the job's table has what it must have in the end."""
    return has_begun(server) and rows(server, SUNK) == rows(server, ANSWER)


def iceberg_rows(folder: Path) -> Rows:
    """What the Iceberg table has, for a reader that is not ours."""
    catalog = SqlCatalog("default", uri=f"sqlite:///{folder}/out/orders/catalog.db")
    try:
        found = catalog.load_table("shop.balances").scan().to_arrow()
    finally:
        catalog.close()
    assert set(found.column_names) == set(COLUMNS)
    return Counter(zip(*(found.column(name).to_pylist() for name in COLUMNS), strict=True))


def joined_orders(folder: Path) -> Rows:
    """The orders that the join has in its state: a sink by keys would hide one that came twice."""
    backend = checkpoints(folder)
    epoch = max(backend.list_epochs())
    assert not (problems := Verifier(backend).verify(epoch).problems), problems
    found = read_table(backend.storage, backend.load_checkpoint_metadata(JOB, epoch), "joined", "left")
    return Counter(zip(*(found.column(name).to_pylist() for name in ORDERS_COLUMNS), strict=True))


def checkpoints(folder: Path) -> ParquetBackend:
    return ParquetBackend(get_storage_provider((folder / "out" / "orders" / "checkpoints").as_uri()), JOB)


def check(what: str, found: Rows, expected: Rows) -> None:
    missing, extra = expected - found, found - expected
    assert (missing, extra) == (Counter(), Counter()), (
        f"{what}: {missing.total()} of {expected.total()} rows are missing, such as {list(missing)[:2]}; "
        f"{extra.total()} are too many, such as {list(extra)[:2]}"
    )


def use(server: PostgresServer, bootstrap_servers: str) -> str:
    """The variables of the example; returns the address of the database."""
    config = server.config
    address = f"postgresql://{config['user']}@127.0.0.1:{server.port}/{config['database']}"
    os.environ |= {"DATABASE_URL": address, "KAFKA": bootstrap_servers, "PGPASSWORD": str(config["password"])}
    return address
