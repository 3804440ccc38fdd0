"""`postgres.cdc` where something goes wrong: servers that die, slots that are gone, tables that change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from arroyo_postgres.cdc.lsn import parse_lsn
from arroyo_postgres.cdc.open_streams import open_streams
from arroyo_testing import FakeClock, SourceHarness

from arroyo_core.api import StopRequest
from arroyo_core.errors import ArroyoError, ConfigError, DataError, ExternalError, OperatorError
from tests.postgres_server import PostgresServer
from tests.waiting import wait_until

from .support.tables import Materialized, Table, catch_up

pytestmark = pytest.mark.server

MakeTable = Callable[..., Table]


@contextmanager
def refused(kind: type[ArroyoError], *words: str) -> Iterator[None]:
    with pytest.raises(OperatorError) as caught:
        yield
    assert caught.value.cause_kind == kind.__name__
    for word in words:
        assert word in str(caught.value)


def run_until_it_fails(source: SourceHarness) -> None:
    for _ in range(50):
        source.run(interval_ms=100)


def go_on(source: SourceHarness, clock: FakeClock, result: Materialized, made: Table) -> None:
    """Epochs in which the time for the next attempt always has come, until the result is what the table has."""

    def is_equal() -> bool:
        clock.advance(120)
        result.add(source.run(interval_ms=100).table)
        assert result.mistakes == []
        return result.rows() == made.rows()

    wait_until(is_equal, patience_s=60)


@pytest.mark.parametrize("lives_on", [False, True])
def test_a_server_that_is_killed_is_waited_for_and_nothing_is_lost(
    table: MakeTable, own_server: PostgresServer, lives_on: bool
) -> None:
    made, result, clock = table(on=own_server), Materialized(), FakeClock()
    made.fill(20)
    source = made.source(chunk_rows=6, clock=clock, lives_on=lives_on)
    result.add(source.run(rows=6).table)
    own_server.kill()
    down = source.run(interval_ms=100)
    assert down.table.num_rows == 0
    assert down.counters["retries"] == 1
    assert "failing since" in down.warnings[0]
    own_server.start()
    made.run("update $t set name = 'after' where id in (1, 19)")
    go_on(source, clock, result, made)
    for step in range(3):
        made.run(f"update $t set name = '{step}' where id % 3 = {step}")
        own_server.restart()
        made.run("delete from $t where id = 20", "insert into $t values (20, 'again')")
        go_on(source, clock, result, made)


def test_a_session_that_is_ended_in_the_middle_of_a_transaction_goes_on_behind_what_was_read(table: MakeTable) -> None:
    made, result, clock = table(), Materialized(), FakeClock()
    made.fill(1)
    source = made.source(clock=clock)
    catch_up(source, result, made)
    made.fill(50, first=2)
    made.run("update $t set name = 'b'")
    for _ in range(6):
        clock.advance(120)
        result.add(source.run(rows=20, interval_ms=2000).table)
        made.run(f"select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = '{made.slot}'")
    go_on(source, clock, result, made)
    assert result.count == 1 + 50 + 2 * 51


def test_a_stream_of_an_epoch_before_that_has_ended_is_opened_again_without_a_word(table: MakeTable) -> None:
    made, result = table(), Materialized()
    made.fill(3)
    source = made.source()
    catch_up(source, result, made)
    made.run(f"select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = '{made.slot}'")
    made.fill(2, first=10)
    found = source.run(rows=2)
    assert found.table["id"].to_pylist() == [10, 11]
    assert found.warnings == []
    assert found.counters == {}


def test_an_outage_that_lasts_too_long_fails_the_epoch(table: MakeTable, own_server: PostgresServer) -> None:
    made, clock = table(on=own_server), FakeClock()
    source = made.source(clock=clock, give_up_after=60_000_000)
    source.run(interval_ms=200)
    own_server.stop()
    source.run(interval_ms=50)
    clock.advance(61)
    with refused(ExternalError, "given up"):
        source.run(interval_ms=50)


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


def test_columns_that_are_new_are_left_out_with_a_warning(table: MakeTable) -> None:
    made, result = table(), Materialized()
    made.fill(2)
    source = made.source()
    catch_up(source, result, made)
    made.run("alter table $t add column extra int default 5", "insert into $t values (3, 'c', 7)")
    found = source.run(rows=1)
    assert found.warnings == [
        f"table public.{made.name} has a new column 'extra', which is left out until the pipeline is planned again"
    ]
    result.add(found.table)
    made.run("update $t set name = name || '!', extra = 1")
    result.add(source.run(rows=6).table)
    result.check(made.rows("id, name"))


def test_integers_that_become_larger_are_read_when_planned_again(table: MakeTable) -> None:
    made = table("id int primary key, number int")
    source = made.source()
    source.run(interval_ms=300)
    made.run("insert into $t values (1, 1)", "alter table $t alter column number type bigint")
    made.run(f"insert into $t values (2, {1 << 40})")
    planned_again = made.source(snapshot="never", create=False)
    assert planned_again.run(rows=2).table["number"].to_pylist() == [1, 1 << 40]


def test_truncate_may_be_ignored(table: MakeTable) -> None:
    made = table()
    made.fill(2)
    source = made.source(on_truncate="ignore")
    source.run(interval_ms=300)
    made.run("truncate $t", "insert into $t values (7, 'x')")
    found = source.run(rows=1)
    assert found.table["id"].to_pylist() == [7]
    assert "TRUNCATE" in found.warnings[0]


PLANS: list[tuple[list[str], dict[str, Any], str, str]] = [
    (["alter table $t replica identity default"], {}, "table", "REPLICA IDENTITY FULL"),
    (["select 1"], {"table": "nowhere"}, "table", "no table"),
    (["select 1"], {"columns": ["nam"]}, "columns[0]", "did you mean 'name'"),
    (["select 1"], {"columns": ["id", "id"]}, "columns[1]", "twice"),
    (["select 1"], {"event_time_field": "name"}, "event_time_field", "not a timestamp"),
    (["select 1"], {"max_lateness": 5}, "max_lateness", "event_time_field"),
    (["select 1"], {"slot": None}, "slot", "slot is needed"),
    (["select 1"], {"slot": "No"}, "slot", "lower case"),
    (["select 1"], {"snapshot": "only"}, "slot", "needs neither"),
    (["create view v_$t as select 1", "select 1"], {"table": "v_$t"}, "table", "not a table"),
]


@pytest.mark.parametrize(("statements", "config", "field", "words"), PLANS)
def test_plans_that_cannot_work_are_refused(
    table: MakeTable, statements: list[str], config: dict[str, Any], field: str, words: str
) -> None:
    made = table()
    made.run(*statements)
    if "table" in config:
        config = {**config, "table": config["table"].replace("$t", made.name)}
    with pytest.raises(ConfigError) as caught:
        made.source(**config).run(interval_ms=1)
    assert caught.value.field == field
    assert words in str(caught.value) + f" (did you mean {caught.value.suggestion!r}?)"


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
