"""Messages of `pgoutput`: what they say, and that no bytes do harm."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from arroyo_postgres.cdc import pgoutput
from arroyo_postgres.cdc.columns import gather_texts
from arroyo_postgres.cdc.pgoutput import MessageError, RowChanges, read_rows
from arroyo_postgres.cdc.replication import ReplicationStream
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.errors import DataError

from .support import messages as made

Change = tuple[str, list[str | None]]


def changes(rows: RowChanges) -> list[Change]:
    columns = [gather_texts(column, rows.data).to_pylist() for column in rows.columns]
    found = [list(values) for values in zip(*columns, strict=True)]
    return [("-" if old else "+", values) for old, values in zip(rows.is_retract.tolist(), found, strict=True)]


def test_messages_about_transactions_and_tables() -> None:
    assert pgoutput.read_begin(made.begin(500, 7)) == pgoutput.Begin(500, 7)
    assert pgoutput.read_commit(made.commit(600)) == pgoutput.Commit(600)
    assert pgoutput.read_truncate(made.truncate(3, 4)) == pgoutput.Truncate((3, 4))
    found = pgoutput.read_relation(made.relation(("id", 23), ("näme", 25), identity=b"d"))
    assert (found.oid, found.schema, found.name, found.identity) == (made.OID, "public", "t", "d")
    assert [(column.name, column.type_oid) for column in found.columns] == [("id", 23), ("näme", 25)]


def test_rows_come_in_the_order_of_their_messages() -> None:
    rows = read_rows(
        [
            made.insert(1, "a"),
            made.update([1, "a"], [1, None]),
            made.delete(1, None),
            made.insert(2, ""),
            made.update([2, ""], [3, "é"]),
        ],
        2,
    )
    assert changes(rows) == [
        ("+", ["1", "a"]),
        ("-", ["1", "a"]),
        ("+", ["1", None]),
        ("-", ["1", None]),
        ("+", ["2", ""]),
        ("-", ["2", ""]),
        ("+", ["3", "é"]),
    ]
    assert rows.messages.tolist() == [0, 1, 1, 2, 3, 4, 4]


def test_a_large_value_that_an_update_leaves_out_is_that_of_the_row_before() -> None:
    rows = read_rows([made.insert(9, "x"), made.update([1, "large"], [2, made.UNCHANGED])], 2)
    assert changes(rows)[-1] == ("+", ["2", "large"])


def test_without_changes_only_inserts_count() -> None:
    found = [made.update(None, [1, made.UNCHANGED]), made.delete(1, None, mark=b"K"), made.insert(2, "b")]
    assert changes(read_rows(found, 2, has_changes=False)) == [("+", ["2", "b"])]


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (made.update(None, [1, "a"]), "REPLICA IDENTITY FULL"),
        (made.update([1, None], [1, "a"], mark=b"K"), "REPLICA IDENTITY FULL"),
        (made.delete(1, None, mark=b"K"), "REPLICA IDENTITY FULL"),
        (made.insert(1), "1 columns, and its table 2"),
        (made.insert(1, made.UNCHANGED), "left out a value"),
        (made.update([1, made.UNCHANGED], [1, made.UNCHANGED]), "left out of the row before"),
        (made.insert(1, "a")[:-1], "cut off"),
        (made.insert(1, "a") + b"x", "longer than the row"),
        (b"X" + made.insert(1, "a")[1:], "none of the kinds"),
        (b"I", "has not the form"),
    ],
)
def test_what_is_wrong_with_a_row_is_said(message: bytes, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_rows([made.insert(1, "good"), message, made.insert(2, "good")], 2)


VALUES = st.none() | st.text(max_size=8).map(lambda text: text.replace("\0", ""))
ROWS = st.lists(VALUES, min_size=3, max_size=3)


@given(st.lists(st.tuples(st.sampled_from("IUD"), ROWS, ROWS), min_size=1, max_size=20))
def test_what_was_written_is_read(written: Sequence[tuple[str, list[str | None], list[str | None]]]) -> None:
    sent, expected = [], []
    for kind, old, new in written:
        if kind == "I":
            sent.append(made.insert(*new))
        elif kind == "D":
            sent.append(made.delete(*old))
        else:
            sent.append(made.update(old, new))
        expected += [] if kind == "I" else [("-", old)]
        expected += [] if kind == "D" else [("+", new)]
    assert changes(read_rows(sent, 3)) == expected


READERS: list[Callable[[bytes], object]] = [
    pgoutput.read_begin,
    pgoutput.read_commit,
    pgoutput.read_relation,
    pgoutput.read_truncate,
    pgoutput.read_table,
    lambda data: read_rows([data], 2),
    lambda data: read_rows([made.insert(1, "a"), data, made.insert(2, "b")], 2, has_changes=False),
]
GOOD = [
    made.begin(),
    made.commit(),
    made.relation(("id", 23), ("name", 25)),
    made.truncate(1, 2),
    made.insert(1, "some text"),
    made.update([1, "some text"], [2, made.UNCHANGED]),
    made.delete(1, None),
]


def read_all(data: bytes) -> None:
    for read in READERS:
        try:
            found = read(data)
        except DataError:
            continue
        if isinstance(found, RowChanges):
            try:
                changes(found)
            except DataError:
                continue


@given(st.binary(max_size=80))
def test_no_bytes_do_harm(data: bytes) -> None:
    read_all(data)


@given(st.sampled_from(GOOD), st.integers(0, 60), st.binary(min_size=0, max_size=6), st.integers(0, 6))
def test_no_damage_to_a_message_does_harm(message: bytes, at: int, put: bytes, taken: int) -> None:
    at = min(at, len(message))
    read_all(message[:at] + put + message[at + taken :])


def test_errors_are_errors_of_rows() -> None:
    assert issubclass(MessageError, DataError)


@pytest.mark.parametrize("size", [1, 9, 17])
def test_a_server_that_says_where_it_is_in_too_few_bytes(size: int) -> None:
    stream = ReplicationStream.__new__(ReplicationStream)
    stream._doing = "reading"
    with pytest.raises(MessageError, match=f"where it is in {size} bytes"):
        stream._hear(b"k" * size)
