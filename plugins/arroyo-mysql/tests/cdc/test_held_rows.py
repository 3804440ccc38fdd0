"""Rows of an open transaction, held until it is complete: without a server."""

from __future__ import annotations

from arroyo_mysql.cdc.held import HeldRows


def taken(held: HeldRows, limit: int = 100) -> list[int]:
    return [row for _, _, rows in held.take(limit) for row in rows]


def add(held: HeldRows, *rows: int, each: int = 1) -> None:
    held.add(0, rows, each=each, size=10)


def test_rows_come_out_in_their_order_as_many_as_are_wanted() -> None:
    held = HeldRows()
    add(held, 1, 2, 3)
    add(held, 4, 5, each=2)
    assert (held.count, held.size) == (7, 20)
    assert taken(held, 2) == [1, 2]
    assert taken(held, 3) == [3, 4]
    assert (held.given, held.count, held.size) == (4, 2, 10)
    assert taken(held) == [5]
    assert (held.given, held.count, held.size) == (5, 0, 0)
    assert not held


def test_rows_that_were_given_before_are_left_out() -> None:
    held = HeldRows(given=3)
    add(held, 1, 2)
    assert held.lacks == 1
    add(held, 3, 4)
    assert held.lacks == 0
    assert taken(held) == [4]
    assert held.given == 4


def test_a_savepoint_takes_back_what_came_behind_it() -> None:
    held = HeldRows()
    add(held, 1, 2)
    assert held.heed_savepoint("SAVEPOINT `A``b`")
    add(held, 3)
    assert held.heed_savepoint("savepoint c")
    add(held, 4)
    assert held.heed_savepoint("ROLLBACK TO `c`")
    add(held, 5)
    assert held.heed_savepoint("ROLLBACK WORK TO SAVEPOINT `a``B`")
    add(held, 6)
    assert (held.count, taken(held)) == (3, [1, 2, 6])


def test_rows_that_were_given_cannot_be_taken_back() -> None:
    held = HeldRows()
    add(held, 1)
    held.heed_savepoint("SAVEPOINT `a`")
    add(held, 2, 3)
    assert taken(held, 2) == [1, 2]
    assert not held.heed_savepoint("ROLLBACK TO `a`")
    assert not held.take_back()


def test_a_savepoint_that_nobody_knows_matters_where_there_are_rows() -> None:
    held = HeldRows()
    assert held.heed_savepoint("ROLLBACK TO `a`")
    add(held, 1)
    assert not held.heed_savepoint("ROLLBACK TO `a`")
    assert held.heed_savepoint("RELEASE SAVEPOINT a")
    assert held.heed_savepoint("INSERT INTO t VALUES (1)")


def test_what_comes_again_was_taken_back_before_later_rows_were_given() -> None:
    """Row 3 was undone in the first attempt too, in which 1, 2 and 4 were given."""
    held = HeldRows(given=4)
    add(held, 1, 2)
    held.heed_savepoint("SAVEPOINT `a`")
    add(held, 3)
    assert held.heed_savepoint("ROLLBACK TO `a`")
    add(held, 4, 5)
    assert taken(held) == [5]
