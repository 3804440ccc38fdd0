"""Transactions that the binlog has and that do not count, or not in one piece: rolled back, torn, prepared."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from arroyo_connectors.cdc import open_streams
from arroyo_mysql.cdc import catalogue
from arroyo_mysql.cdc import log as logs
from arroyo_mysql.cdc import snapshot as snapshots
from arroyo_mysql.cdc.places import Begun, Place
from arroyo_testing import FakeClock, SourceHarness
from arroyo_testing.databases import MakeTable, Materialized, catch_up

from arroyo_core.errors import DataError, OperatorError
from tests.mysql_server import MysqlServer
from tests.waiting import wait_until

from .support import Table

pytestmark = pytest.mark.server


def in_one_session(made: Table, *statements: str) -> None:
    with closing(made.server.connect()) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement.replace("$t", made.name))


def fails(source: SourceHarness, words: str, *, clock: FakeClock | None = None, rows: int | None = None) -> None:
    """Run epochs until one says so."""

    caught: list[OperatorError] = []

    def has_failed() -> bool:
        if clock is not None:
            clock.advance(120)
        try:
            source.run(interval_ms=100, rows=rows)
        except OperatorError as error:
            caught.append(error)
        return bool(caught)

    wait_until(has_failed, patience_s=60)
    assert caught[0].cause_kind == DataError.__name__
    assert re.search(words, str(caught[0])), str(caught[0])


ROLLED_BACK = {
    "all of it": ["begin", "insert into $t values (2, 'g')", "create temporary table x_$t (a int)", "rollback"],
    "an update": [
        "begin",
        "update $t set name = 'g'",
        "delete from $t where id = 1",
        "create temporary table x_$t (a int)",
        "rollback",
    ],
    "a part": [
        "begin",
        "insert into my_$t values (1)",
        "insert into $t values (3, 'stays')",
        "savepoint `a b`",
        "insert into $t values (4, 'g')",
        "update $t set name = 'g'",
        "rollback to `A b`",
        "insert into $t values (5, 'stays')",
        "commit",
    ],
    "by a trigger": [
        "create trigger tr_$t after insert on $t for each row insert into my_$t values (1)",
        "begin",
        "insert into $t values (6, 'g')",
        "rollback",
    ],
}


@pytest.mark.parametrize("statements", ROLLED_BACK.values(), ids=ROLLED_BACK)
def test_rows_that_were_rolled_back_are_not_given(table: MakeTable, statements: list[str]) -> None:
    made, result = table(), Materialized()
    made.run("create table my_$t (a int) engine = MyISAM")
    made.fill(1)
    source = made.source()
    catch_up(source, result, made)
    in_one_session(made, *statements)
    made.run("insert into $t values (9, 'later')")
    catch_up(source, result, made)
    assert all(row[1] != "g" for row in result.rows())
    count = len(made.rows())
    assert result.count == count  # nothing came that was taken back
    made.run("drop table my_$t")


BIG = ["begin", "insert into $t select seq, 'g' from seq_1_to_20", "create temporary table x_$t (a int)", "rollback"]


def test_epochs_of_few_rows_do_not_give_rows_that_are_rolled_back_later(table: MakeTable) -> None:
    made = table()
    source = made.source()
    source.run(interval_ms=300)
    in_one_session(made, *BIG)
    made.fill(5, first=30)
    found = [row for _ in range(5) for row in source.run(rows=1).table["id"].to_pylist()]
    assert found == [30, 31, 32, 33, 34]


def test_a_transaction_that_is_rolled_back_behind_rows_that_were_given_stops_the_job(table: MakeTable) -> None:
    made = table()
    source = made.source(batch_rows=5)
    source.run(interval_ms=300)
    in_one_session(made, *BIG)
    fails(source, "rolled back, in whole or in part, behind rows", rows=5)


def tear_last_transaction(made: Table, folder: Path) -> None:
    """As where a server dies while it writes a transaction into its binlog: the end of it is not there."""
    file = made.run("show master status")[0][0]
    end = made.run(f"show binlog events in '{file}'")[-1][1]
    made.server.kill()
    with (folder / file).open("r+b") as log:
        log.truncate(end)
    made.server.start()


def is_caught_up(source: SourceHarness, clock: FakeClock, result: Materialized, made: Table) -> bool:
    clock.advance(120)
    result.add(source.run(interval_ms=200).table)
    return result.rows() == made.rows()


def test_a_transaction_that_the_log_does_not_complete_does_not_count(table: MakeTable, own_server: MysqlServer) -> None:
    made, result, clock = table(on=own_server), Materialized(), FakeClock()
    made.fill(1)
    source = made.source(clock=clock)
    catch_up(source, result, made)
    open_streams.close_all()
    made.run("insert into $t values (5, 'before')")
    made.run("insert into $t select seq, 'torn' from seq_10_to_12")
    tear_last_transaction(made, own_server.data)
    # InnoDB has it, for it was committed there: the log decides what changes are, and does not have it.
    in_one_session(made, "set sql_log_bin = 0", "delete from $t where name = 'torn'")
    made.run("insert into $t select seq, 'later' from seq_20_to_24")
    wait_until(lambda: is_caught_up(source, clock, result, made), patience_s=60, problem=lambda: str(result.rows()))
    assert result.mistakes == []


@pytest.mark.parametrize("has_gtids", [True, False])
def test_a_torn_transaction_of_which_rows_were_given_stops_the_job(
    table: MakeTable, own_server: MysqlServer, monkeypatch: pytest.MonkeyPatch, has_gtids: bool
) -> None:
    """With GTIDs the server gives the one of the torn transaction again, and does not send what is left of it."""
    if not has_gtids:
        monkeypatch.setattr(catalogue, "make_place", lambda session, file, offset, executed: Place(file, offset))
        monkeypatch.setattr(snapshots, "make_place", catalogue.make_place)
    made, clock = table(on=own_server), FakeClock()
    source = made.source(clock=clock)
    source.run(interval_ms=300)
    made.run("insert into $t select seq, 'torn' from seq_10_to_20")
    assert source.run(rows=3).table.num_rows == 3
    open_streams.close_all()  # a reader has the rest already
    tear_last_transaction(made, own_server.data)
    made.run("insert into $t select seq, 'later' from seq_30_to_34")
    words = "3 rows of a transaction were read, and another one" if has_gtids else "died while it wrote a transaction"
    fails(source, words, clock=clock)


def test_an_xa_transaction_that_was_prepared_before_the_start_stops_the_job(table: MakeTable) -> None:
    made = table()
    made.fill(1)
    in_one_session(made, "xa start 'p'", "insert into $t values (2, 'xa')", "xa end 'p'", "xa prepare 'p'")
    source = made.source()
    source.run(interval_ms=300)
    made.run("xa commit 'p'")
    fails(source, "XA transaction x'70',x'',1 was committed.*prepared before")


def test_xa_transactions_of_other_tables_are_left_alone(table: MakeTable) -> None:
    made, other, result = table(), table(), Materialized()
    made.fill(1)
    in_one_session(other, "xa start 'o'", "insert into $t values (0, 'a')", "xa end 'o'", "xa prepare 'o'")
    source = made.source()
    catch_up(source, result, made)
    made.run("xa rollback 'o'")  # nothing of it stays, whatever it was
    for step, end in enumerate(("commit", "rollback")):
        in_one_session(
            other,
            "xa start 'q','b',7",
            f"insert into $t values ({step + 1}, 'a')",
            "xa end 'q','b',7",
            "xa prepare 'q','b',7",
        )
        made.run(f"insert into $t values ({step + 10}, 'x')")
        catch_up(source, result, made)
        source.run(interval_ms=50, is_lost=True)  # what was prepared is known from the state
        made.run(f"xa {end} 'q','b',7", "update $t set name = concat(name, '.')")
        catch_up(source, result, made)
    in_one_session(other, "xa start 'z'", "insert into $t values (9, 'a')", "xa end 'z'", "xa commit 'z' one phase")
    made.run("update $t set name = concat(name, '!')")
    catch_up(source, result, made)


ELSEWHERE: dict[str, tuple[Callable[[Begun], dict[str, Any]], bool]] = {
    "another GTID": (lambda begun: {"gtid": "0-9-" + str(begun.gtid).split("-")[2], "server_id": 9}, False),
    "another place of the same server": (lambda begun: {"end": begun.end + 1}, False),
    "another server": (lambda begun: {"end": begun.end + 1, "file": "log.000007", "server_id": 9}, True),
}


@pytest.mark.parametrize(("other", "is_same"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_another_transaction_in_the_place_of_one_that_was_read_in_part_stops_the_job(
    table: MakeTable, monkeypatch: pytest.MonkeyPatch, other: Callable[[Begun], dict[str, Any]], is_same: bool
) -> None:
    """As after a failover to a server that has transactions in another order."""
    made = table()
    source = made.source()
    source.run(interval_ms=300)
    made.run("insert into $t select seq, 'a' from seq_1_to_20")
    assert source.run(rows=3).table.num_rows == 3
    opened = logs.open_changes

    def open_elsewhere(settings, session, ctx, position, place):  # type: ignore[no-untyped-def]
        begun = position.begun
        assert begun.rows == 3
        begun = msgspec.structs.replace(begun, **other(begun))
        return opened(settings, session, ctx, msgspec.structs.replace(position, begun=begun), place)

    monkeypatch.setattr(logs, "open_changes", open_elsewhere)
    open_streams.close_all()
    if is_same:
        assert made.run("select count(*) from $t")[0][0] == 3 + source.run(rows=17).table.num_rows
    else:
        fails(source, r"3 rows of a transaction were read, and another one comes in its place")
