"""`mysql.cdc` where something goes wrong: servers that die, logs that are gone, tables that change."""

from __future__ import annotations

from contextlib import closing

import pytest
from arroyo_mysql.cdc import catalogue
from arroyo_mysql.cdc import snapshot as snapshots
from arroyo_mysql.cdc.binlog_events import EventError
from arroyo_mysql.cdc.places import Place
from arroyo_testing import FakeClock
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
from tests.mysql_server import MysqlServer, running_server
from tests.waiting import wait_until

from .support import Table

pytestmark = pytest.mark.server


class TestFaults(CdcFaultSuite):
    """What all sources of changes do."""


def test_a_binlog_that_was_removed_is_an_error_that_says_what_is_lost(own_server: MysqlServer) -> None:
    made = Table(own_server)
    made.fill(3)
    source = made.source()
    source.run(interval_ms=300)
    source.run(interval_ms=100, stop=StopRequest(is_graceful=True))
    for thread in made.dump_threads():
        made.run(f"kill {thread}")
    wait_until(lambda: not made.dump_threads())
    made.run("delete from $t where id = 1", "flush binary logs", "insert into $t values (9, 'x')", "flush binary logs")

    def is_purged() -> bool:
        # A file that may be needed after a crash of the server is kept for a moment.
        made.run("purge binary logs to 'binlog.000003'")
        return bool(made.run("show binary logs")[0][0] == "binlog.000003")

    wait_until(is_purged)
    with refused(ConfigError, "is lost for this job", "start the job over"):
        run_until_it_fails(source)
    made.close()


def test_files_of_the_binlog_that_follow_each_other_are_read(table: MakeTable) -> None:
    made, result = table(), Materialized()
    made.fill(3)
    source = made.source(chunk_rows=2)
    result.add(source.run(rows=2).table)
    made.run("flush binary logs", "update $t set name = 'a'", "flush binary logs", "delete from $t where id = 2")
    catch_up(source, result, made)
    made.run("insert into $t values (7, 'b')", "flush binary logs", "update $t set name = 'c'")
    catch_up(source, result, made)


def test_without_gtids_file_and_offset_count(table: MakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a MySQL that has `gtid_mode = OFF`; and its way to know the place of a chunk."""
    monkeypatch.setattr(catalogue, "make_place", lambda session, file, offset, executed: Place(file, offset))
    reader = snapshots.SnapshotReader
    monkeypatch.setattr(reader, "_begin_in_mariadb", reader._begin_behind_a_lock)
    made, result = table(), Materialized()
    made.fill(20)
    source = made.source(chunk_rows=6)
    for step in range(3):
        result.add(source.run(rows=6).table)
        source.run(rows=6, is_lost=True)
        made.run(f"update $t set name = '{step}' where id % 3 = {step}", "flush binary logs")
        made.run(f"delete from $t where id = {step + 1}", f"insert into $t values ({step - 9}, 'x')")
    catch_up(source, result, made)
    source.run(interval_ms=50, is_lost=True)
    made.run("update $t set name = 'b'", "flush binary logs", "update $t set name = 'c'")
    for _ in range(4):
        result.add(source.run(rows=5).table)
        source.run(rows=5, is_lost=True)
    catch_up(source, result, made)


DDL = [
    ("alter table $t drop column name", "it has no column 'name'"),
    ("alter table $t rename column name to label", "it has no column 'name'"),
    ("alter table $t modify number text", "column 'number' is string there, and is read as int32"),
    ("alter table $t modify number int unsigned", "column 'number' is uint32 there"),
    ("truncate $t", "was emptied by TRUNCATE"),
    ("truncate table `shop`.`$t`", "was emptied by TRUNCATE"),
    ("create or replace table $t (id int primary key, name text, number int)", "made again"),
    ("rename table $t to other_$t, other_$t to $t", "made again"),
]


@pytest.mark.parametrize(("statement", "words"), DDL)
def test_a_table_that_changes_so_that_rows_would_be_wrong_stops_the_job(
    table: MakeTable, statement: str, words: str
) -> None:
    made = table("id int primary key, name text, number int")
    made.run("insert into $t values (1, 'a', 1)")
    source = made.source()
    source.run(interval_ms=300)
    made.run(statement, "insert into $t (id) values (2)", "update $t set id = 3 where id = 2")
    with refused(DataError, words):
        run_until_it_fails(source)


def test_a_partition_that_is_dropped_stops_the_job(table: MakeTable) -> None:
    made = table(
        "id int primary key, name text) partition by range (id) (partition a values less than (10), "
        "partition b values less than (20)"
    )
    made.fill(12)
    source = made.source()
    source.run(interval_ms=300)
    made.run("alter table $t drop partition a")
    with refused(DataError, "one of its partitions"):
        run_until_it_fails(source)


def test_a_statement_in_the_place_of_rows_stops_the_job(table: MakeTable) -> None:
    made = table()
    source = made.source()
    source.run(interval_ms=300)
    with closing(made.server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("set binlog_format = STATEMENT")
        cursor.execute(f"insert into {made.name} values (1, 'a')")
    with refused(DataError, "instead of the rows"):
        run_until_it_fails(source)


def test_rows_without_all_their_columns_stop_the_job(table: MakeTable) -> None:
    made = table()
    made.fill(2)
    source = made.source()
    source.run(interval_ms=300)
    with closing(made.server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("set binlog_row_image = MINIMAL")
        cursor.execute(f"update {made.name} set name = 'x'")
    with refused(EventError, "binlog_row_image"):
        run_until_it_fails(source)


def test_xa_transactions_stop_the_job(table: MakeTable) -> None:
    made = table()
    source = made.source()
    source.run(interval_ms=300)
    made.run("xa start 'a'", "insert into $t values (1, 'a')", "xa end 'a'", "xa prepare 'a'", "xa commit 'a'")
    with refused(DataError, "XA"):
        run_until_it_fails(source)


def test_what_was_before_the_snapshot_does_not_matter(table: MakeTable) -> None:
    made, result = table(), Materialized()
    source = made.source(chunk_rows=2)
    made.fill(3)
    made.run("truncate $t", "alter table $t add column extra int")
    made.run("insert into $t values (1, 'b', 2), (2, 'c', 3)")
    result.add(source.run(rows=2).table)
    made.run("update $t set extra = 5, name = 'd'")
    catch_up(source, result, made, columns="id, name")


def test_two_sources_of_one_number_do_not_read_at_once(table: MakeTable) -> None:
    """The older one goes on where it was when the newer one has gone."""
    made, clock, result = table(), FakeClock(), Materialized()
    made.fill(2)
    source = made.source(clock=clock, server_id=4711)
    result.add(source.run(rows=2).table)
    source.run(interval_ms=100)
    other = made.source(server_id=4711, snapshot="never")
    other.run(interval_ms=200)
    other.run(interval_ms=100, stop=StopRequest(is_graceful=True))
    made.run("update $t set name = 'x'")
    go_on(source, clock, result, made)


PLANS: list[Plan] = [
    (["alter table $t engine = MyISAM"], {}, "table", "ENGINE = InnoDB"),
    (["set global binlog_format = MIXED"], {}, "connection", "SET GLOBAL binlog_format = ROW"),
    (["set global binlog_row_image = MINIMAL"], {}, "connection", "SET GLOBAL binlog_row_image = FULL"),
    (["set global binlog_row_metadata = NO_LOG"], {}, "connection", "SET GLOBAL binlog_row_metadata = FULL"),
]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan[3])
def test_plans_that_cannot_work_are_refused(table: MakeTable, plan: Plan) -> None:
    made = table()
    try:
        check_refused(made, plan)
    finally:
        made.run("set global binlog_format = ROW", "set global binlog_row_image = FULL")
        made.run("set global binlog_row_metadata = FULL")


@pytest.mark.parametrize("setting", [{"binlog-ignore-db": "shop"}, {"binlog-do-db": "other"}])
def test_a_database_that_is_not_logged_is_refused(setting: dict[str, str]) -> None:
    with running_server(setting) as filtering:
        made = Table(filtering)
        with pytest.raises(ConfigError, match="does not log changes of the database shop"):
            made.source()
        assert made.source(snapshot="only").run_all().num_rows == 0
        made.close()


def test_a_database_that_is_among_those_that_are_logged_is_read() -> None:
    with running_server({"binlog-do-db": "shop"}) as filtering:
        made, result = Table(filtering), Materialized()
        source = made.source()
        made.fill(3)
        catch_up(source, result, made)
        made.close()


def test_a_replica_that_does_not_log_what_it_takes_is_refused(table: MakeTable) -> None:
    made = table()
    made.source()
    made.run("change master to master_host = '127.0.0.1', master_port = 1")
    try:
        with pytest.raises(ConfigError, match="replica with log_slave_updates = OFF"):
            made.source()
    finally:
        made.run("reset slave all")
    made.source()
