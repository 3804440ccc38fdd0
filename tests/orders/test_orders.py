"""Orders of PostgreSQL and payments of Kafka, in a table of each kind: right, however often the job is killed."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from arroyo_kafka.broker import Broker, running_broker

from arroyo_core.cli.main import main
from arroyo_core.errors import SetupError

from ..postgres_server import PostgresServer, running_server
from .siege import Siege, plan_kills
from .trade import (
    ANSWER,
    EXAMPLE,
    ORDERS,
    SUNK,
    Trade,
    check,
    has_begun,
    has_caught_up,
    iceberg_rows,
    joined_orders,
    rows,
    use,
)

pytestmark = pytest.mark.server

KILLS = int(os.environ.get("ORDERS_KILLS") or 3)
#: The same in CI every time: whether a commit lands must not depend on chance.
SEED = int(
    os.environ.get("ORDERS_SEED") or (411_203 if os.environ.get("CI") else random.SystemRandom().randrange(1_000_000))
)
REPEAT = f"seed {SEED}, {KILLS} kills; repeat with: make chaos-orders KILLS={KILLS} SEED={SEED}"


@pytest.fixture
def servers() -> Iterator[tuple[PostgresServer, Broker]]:
    """Both of this test alone."""
    with ExitStack() as stack:
        try:
            started = stack.enter_context(running_server()), stack.enter_context(running_broker())
        except SetupError as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"no PostgreSQL, or no Kafka broker: {error}")
        yield started


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the example is, and puts what it makes."""
    for name in ("DATABASE_URL", "KAFKA", "PGPASSWORD"):
        monkeypatch.setenv(name, "")  # and as they were, afterwards
    monkeypatch.chdir(tmp_path)
    shutil.copy(EXAMPLE / "orders.yaml", tmp_path)
    (tmp_path / "out" / "orders").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def show(request: pytest.FixtureRequest):
    """Prints a line on the terminal, also where pytest keeps what tests print."""
    return request.config.pluginmanager.getplugin("terminalreporter").write_line


@pytest.mark.timeout(600 + 60 * KILLS)
def test_both_tables_have_what_postgres_itself_answers(folder: Path, servers: tuple[PostgresServer, Broker], show):
    show(f"\norders: {REPEAT}")
    server, broker = servers
    database = use(server, broker.bootstrap_servers)
    try:
        with Trade(server, database, broker.bootstrap_servers, seed=SEED) as trade:
            siege = Siege(
                folder / "orders.yaml",
                has_begun=lambda: has_begun(server),
                end_trade=trade.end,
                has_caught_up=lambda: has_caught_up(server),
            )
            outcome = siege.run(plan_kills(SEED, KILLS))
        expected = rows(server, ANSWER)
        check("the table of PostgreSQL", rows(server, SUNK), expected)
        check("the Iceberg table", iceberg_rows(folder), expected)
        check("the state of the join", joined_orders(folder), rows(server, ORDERS))
    except BaseException as error:
        error.add_note(f"orders: {REPEAT}")
        raise
    show(
        f"orders: seed {SEED}: {outcome.kills.total()} kills of the driver, {outcome.failures} restarts after an "
        f"error, {outcome.epochs} epochs, {outcome.duration_s:.0f} s; {trade.deals} transactions, "
        f"{trade.payments} payments; {expected.total()} rows in each table: exact"
    )
    assert outcome.kills.total() == KILLS
    assert trade.payments
    assert len(expected) == expected.total() > 0


def test_the_example_is_planned_and_has_no_warning(
    folder: Path, servers: tuple[PostgresServer, Broker], capsys: pytest.CaptureFixture[str]
):
    server, broker = servers
    use(server, broker.bootstrap_servers)
    done = subprocess.run(
        [sys.executable, EXAMPLE / "shop.py", "--deals", "5"], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("5 deals, "), done.stderr
    for command in ("validate", "lint", "graph"):
        assert main([command, "orders.yaml"]) == 0, capsys.readouterr()
