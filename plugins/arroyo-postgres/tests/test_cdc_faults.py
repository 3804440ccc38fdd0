"""`postgres.cdc` where something goes wrong: servers that die, slots that are gone, tables that change."""

from __future__ import annotations

from typing import Any

import pytest
from arroyo_connectors.cdc import open_streams
from arroyo_postgres.cdc.lsn import parse_lsn
from arroyo_testing import FakeClock, SourceHarness
from arroyo_testing.databases import (
    CdcFaultSuite,
    MakeTable,
    Materialized,
    Plan,
    catch_up,
    check_refused,
    go_on,
    refused,
    run_until_it_fails,
)

from arroyo_core.api import StopRequest
from arroyo_core.errors import ConfigError, DataError
from tests.postgres_server import PostgresServer
from tests.waiting import wait_until

from .support.tables import Table

pytestmark = pytest.mark.server


class TestFaults(CdcFaultSuite):
    """What all sources of changes do."""


def test_what_is_not_committed_stays_in_the_slot(table: MakeTable) -> None:
    made = table()
    source = made.source()
    source.run(interval_ms=500)
    begin = parse_lsn(made.slot_row("confirmed_flush_lsn::text"))
    made.fill(3)
    end = parse_lsn(made.run("select pg_current_wal_insert_lsn()::text")[0][0])
    source.run(rows=3)
    source.run(interval_ms=50)  # while this one runs the epoch with the rows may not be committed yet
    assert begin <= parse_lsn(made.slot_row("confirmed_flush_lsn::text")) < end
    wait_until(lambda: moved(source, made) >= end)


def moved(source: SourceHarness, made: Table) -> int:
    source.run(interval_ms=50)
    return parse_lsn(made.slot_row("confirmed_flush_lsn::text"))


def test_a_job_that_stops_moves_its_slot_on_when_that_is_committed(table: MakeTable) -> None:
    made = table()
    source = made.source()
    source.run(interval_ms=300)
    made.fill(3)
    end = parse_lsn(made.run("select pg_current_wal_insert_lsn()::text")[0][0])
    source.run(rows=3)
    source.run(interval_ms=300)  # the end of the transaction
    source.run(stop=StopRequest(is_graceful=True))
    assert parse_lsn(made.slot_row("confirmed_flush_lsn::text")) < end
    metrics = source.commit()
    assert metrics.warnings == {}
    assert parse_lsn(made.slot_row("confirmed_flush_lsn::text")) >= end - 200
    made.fill(1, first=10)
    assert source.run(rows=1).table["id"].to_pylist() == [10]


def test_a_slot_of_other_tables_moves_on_too(table: MakeTable) -> None:
    made, other = table(), table()
    source = made.source()
    source.run(interval_ms=300)
    other.fill(1000)
    end = parse_lsn(made.run("select pg_current_wal_insert_lsn()::text")[0][0])
    wait_until(lambda: moved(source, made) >= end - 200)


@pytest.mark.parametrize("is_made_again", [False, True])
def test_a_slot_that_was_dropped_is_an_error_that_says_what_is_lost(table: MakeTable, is_made_again: bool) -> None:
    made = table()
    made.fill(3)
    source = made.source()
    source.run(interval_ms=300)
    source.run(interval_ms=100, stop=StopRequest(is_graceful=True))
    wait_until(lambda: made.slot_row("active_pid") is None)
    made.run(f"select pg_drop_replication_slot('{made.slot}')", "delete from $t where id = 1")
    if is_made_again:
        made.run(f"select pg_create_logical_replication_slot('{made.slot}', 'pgoutput')")
    with refused(ConfigError, made.slot, "are lost", "start the job over"):
        run_until_it_fails(source)
    assert (made.slot_row("1") is not None) == is_made_again  # it is not made by itself


def test_a_slot_that_the_server_has_invalidated_is_an_error(table: MakeTable, own_server: PostgresServer) -> None:
    made = table(on=own_server)
    made.fill(3)
    source = made.source()
    source.run(interval_ms=300)
    source.run(interval_ms=100, stop=StopRequest(is_graceful=True))
    own_server.execute("alter system set max_slot_wal_keep_size = '1MB'", "select pg_reload_conf()")

    def is_lost() -> bool:
        made.run("insert into $t select i, repeat('x', 1000) from generate_series(100, 20000) i", "delete from $t")
        own_server.execute("select pg_switch_wal()", "checkpoint")
        return bool(made.slot_row("wal_status") == "lost")

    wait_until(is_lost)
    with refused(ConfigError, "invalid", "max_slot_wal_keep_size", "are lost"):
        run_until_it_fails(source)


def test_a_slot_that_somebody_else_reads_is_waited_for(table: MakeTable) -> None:
    made, clock, result = table(), FakeClock(), Materialized()
    source = made.source(clock=clock)
    source.run(interval_ms=300)
    source.run(interval_ms=100, stop=StopRequest(is_graceful=True))
    with made.server.connect() as other:
        # A session that decodes a long transaction holds the slot.
        from psycopg import connect

        config = made.server.config
        reader = connect(
            host=config["host"],
            port=config["port"],
            dbname=config["database"],
            user=config["user"],
            password=config["password"],
            replication="database",
            autocommit=True,
            application_name="somebody",
        )
        options = f"(proto_version '1', publication_names '{made.slot}')"
        reader.pgconn.send_query(f"START_REPLICATION SLOT {made.slot} LOGICAL 0/0 {options}".encode())
        wait_until(lambda: made.slot_row("active_pid") is not None)
        warned = source.run(interval_ms=100)
        assert warned.table.num_rows == 0
        reader.close()
        other.execute("select 1")
    made.fill(1)
    go_on(source, clock, result, made)


DDL = [
    ("alter table $t drop column name", "it has no column 'name'"),
    ("alter table $t rename column name to label", "it has no column 'name'"),
    ("alter table $t alter column number type text", "column 'number' has another type"),
    ("truncate $t", "was emptied by TRUNCATE"),
    ("alter table $t replica identity default", "REPLICA IDENTITY FULL"),
]


@pytest.mark.parametrize("is_opened_again", [False, True])
@pytest.mark.parametrize(("statement", "words"), DDL)
def test_a_table_that_changes_so_that_rows_would_be_wrong_stops_the_job(
    table: MakeTable, statement: str, words: str, is_opened_again: bool
) -> None:
    made = table("id int primary key, name text, number int")
    made.run("insert into $t values (1, 'a', 1)")
    source = made.source()
    source.run(interval_ms=300)
    made.run(statement, "insert into $t (id) values (2)", "update $t set id = 3 where id = 2")
    if is_opened_again:
        open_streams.close_all()
    with refused(DataError, words):
        run_until_it_fails(source)


def test_what_was_before_the_snapshot_does_not_matter(table: MakeTable) -> None:
    made, result = table(identity=""), Materialized()
    made.run(f"create publication {made.slot} for table $t")
    made.run(f"select pg_create_logical_replication_slot('{made.slot}', 'pgoutput')")
    made.fill(3)
    made.run("update $t set name = 'a'", "truncate $t", "alter table $t add column extra int")
    made.run("alter table $t replica identity full", "insert into $t values (1, 'b', 2), (2, 'c', 3)")
    source = made.source()
    result.add(source.run(rows=2).table)
    made.run("update $t set extra = 5")
    catch_up(source, result, made)


def test_a_table_that_changes_in_the_middle_of_a_transaction_is_read_before_and_behind(table: MakeTable) -> None:
    made, result = table(), Materialized()
    source = made.source()
    catch_up(source, result, made)
    with made.server.connect() as writer, writer.transaction():
        for number in range(3):
            writer.execute(f"insert into {made.name} (id, name) values ({number}, 'x')".encode())
            writer.execute(f"alter table {made.name} add column extra_{number} int".encode())
    made.run("insert into $t (id) values (3)")
    catch_up(source, result, made, columns="id, name")
    assert result.count == 4


def test_a_table_that_is_made_again_stops_the_job(table: MakeTable) -> None:
    made = table()
    source = made.source()
    source.run(interval_ms=300)
    made.run(
        "drop table $t",
        "create table $t (id int primary key, name text)",
        "alter table $t replica identity full",
        f"alter publication {made.slot} add table $t",
        "insert into $t values (1, 'a')",
    )
    with refused(DataError, "dropped and made again"):
        run_until_it_fails(source)


def test_integers_that_become_larger_are_read_when_planned_again(table: MakeTable) -> None:
    made = table("id int primary key, number int")
    source = made.source()
    source.run(interval_ms=300)
    made.run("insert into $t values (1, 1)", "alter table $t alter column number type bigint")
    made.run(f"insert into $t values (2, {1 << 40})")
    planned_again = made.source(snapshot="never", create=False)
    assert planned_again.run(rows=2).table["number"].to_pylist() == [1, 1 << 40]


PLANS: list[Plan] = [
    (["alter table $t replica identity default"], {}, "table", "REPLICA IDENTITY FULL"),
    ([], {"slot": None}, "slot", "slot is needed"),
    ([], {"slot": "No"}, "slot", "lower case"),
    ([], {"snapshot": "only"}, "slot", "needs neither"),
]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan[3])
def test_plans_that_cannot_work_are_refused(table: MakeTable, plan: Plan) -> None:
    check_refused(table(), plan)


STARTS: list[tuple[list[str], dict[str, Any], str]] = [
    ([], {"create": False}, "CREATE PUBLICATION"),
    (["create publication $s for table $t"], {"create": False}, "pg_create_logical_replication_slot"),
    (["create publication $s"], {}, "ADD TABLE"),
    (["create publication $s for table $t with (publish = 'insert')"], {}, "no update and no delete"),
    (["create publication $s for table $t where (id > 5)"], {}, "filter"),
    (
        ["create publication $s for table $t", "select pg_create_logical_replication_slot('$s', 'test_decoding')"],
        {},
        "pgoutput",
    ),
]


@pytest.mark.parametrize(("statements", "config", "words"), STARTS)
def test_starts_that_cannot_work_say_what_to_run(
    table: MakeTable, statements: list[str], config: dict[str, Any], words: str
) -> None:
    made = table()
    for statement in statements:
        made.run(statement.replace("$s", made.slot))
    with refused(ConfigError, words):
        made.source(**config).run(interval_ms=1000)
