"""std.join against a slow and obvious model, and against DuckDB."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from arroyo_testing import ParallelHarness
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema, Watermark
from arroyo_core.api.updating import UPDATING_META, make_updates, row_ids, with_updating
from arroyo_core.errors import ConfigError

from .support.join_model import (
    ON,
    RIGHT,
    STREAMS,
    TIME,
    EndOfEpoch,
    Mark,
    Row,
    Rows,
    arrivals,
    batch_of,
    cut,
    duckdb_rows,
    feed,
    many_rows,
    rows_of,
    side_by_side,
    steps,
    tuples_of,
)

TYPES = ["inner", "left", "right", "full"]
UPDATING_STREAMS = tuple(with_updating(stream) for stream in STREAMS)
KEY_COLUMNS = ("k", "key")
FOR_EVER = 10**12


@dataclass
class Kept:
    row: Row
    is_padded: bool


def model(stream, *, kind: str, ttl: int) -> tuple[Counter[tuple[Any, ...]], int, int]:
    """The rows that are out at the end, how many came too late, and how many retractions met nothing."""
    keeps = (kind in ("left", "full"), kind in ("right", "full"))
    state: tuple[list[Kept], list[Kept]] = ([], [])
    out: Counter[tuple[Any, ...]] = Counter()
    late = unknown = 0

    def pair(side: int, mine: Row, theirs: Row | None) -> tuple[Any, ...]:
        times = [row.time_us for row in (mine, theirs) if row is not None]
        left, right = (mine, theirs) if side == 0 else (theirs, mine)
        return (*side_by_side(left, right), max(times))

    def live(side: int, key: str, watermark: int | None) -> list[Kept]:
        return [
            kept
            for kept in state[side]
            if kept.row.key == key and (watermark is None or kept.row.time_us + ttl >= watermark)
        ]

    for side, row, watermark in arrivals(stream):
        other, sign = 1 - side, -1 if row.is_retract else 1
        value = replace(row, is_retract=False)
        if watermark is not None and row.time_us + ttl < watermark:
            late += 1
            continue
        if row.key is None:
            out[pair(side, value, None)] += sign if keeps[side] else 0
            continue
        partners = live(other, row.key, watermark)
        if row.is_retract:
            copies = [kept for kept in live(side, row.key, watermark) if kept.row == value]
            if not copies:
                unknown += 1
                continue
            state[side].remove(copies[-1])
            out[pair(side, value, None)] -= copies[-1].is_padded
        else:
            is_alone = keeps[side] and not partners
            out[pair(side, value, None)] += is_alone
            state[side].append(Kept(value, is_alone))
        for partner in partners:
            out[pair(side, value, partner.row)] += sign
            if keeps[other]:
                is_padded = not live(side, row.key, watermark)
                out[pair(other, partner.row, None)] += int(is_padded) - int(partner.is_padded)
                partner.is_padded = is_padded
    return +out, late, unknown


def updates_of(side: int, rows) -> pa.RecordBatch:
    plain = batch_of(side, rows)
    flags = pa.array([row.is_retract for row in rows]).to_numpy(zero_copy_only=False)
    return make_updates(plain, is_retract=flags, ids=row_ids(plain, [KEY_COLUMNS[side]]))


def what_is_out(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """The rows that were added and not taken back; fails where one is taken back that is not out."""
    if UPDATING_META not in table.column_names:
        return rows_of(table)
    is_retract = [meta["is_retract"] for meta in table.column(UPDATING_META).to_pylist()]
    out: Counter[tuple[Any, ...]] = Counter()
    for row, is_taken_back in zip(tuples_of(table.drop_columns([UPDATING_META])), is_retract, strict=True):
        out[row] += -1 if is_taken_back else 1
        assert out[row] >= 0, f"{row} was taken back and is not out"
    return +out


def with_retractions(stream, choices) -> list[Any]:
    """Some rows take back an earlier row of their side, or one that never was."""
    seen: tuple[list[Row], list[Row]] = ([], [])
    found = []
    for step in stream:
        if isinstance(step, Rows):
            rows = []
            for row in step.rows:
                choice = choices.draw(st.sampled_from(["add", "add", "take back", "unknown"]))
                if choice == "take back" and seen[step.side]:
                    row = seen[step.side].pop(choices.draw(st.integers(0, len(seen[step.side]) - 1)))
                    rows.append(replace(row, is_retract=True))
                elif choice == "unknown" and row.key is not None:
                    rows.append(replace(row, value=(row.value or 0) + 10, is_retract=True))
                else:
                    rows.append(row)
                    seen[step.side].append(row)
            step = replace(step, rows=tuple(rows))
        found.append(step)
    return found


@pytest.mark.usefixtures("limits")
@settings(max_examples=80, deadline=None)
@given(stream=steps(), kind=st.sampled_from(TYPES), ttl=st.sampled_from([15, 40]), parallelism=st.integers(1, 2))
def test_rows_meet_while_their_time_to_live_lasts(make, stream, kind, ttl, parallelism):
    config = {"type": kind, "on": ON, "ttl": ttl}
    with ParallelHarness(lambda: make("std.join", **config), inputs=STREAMS, parallelism=parallelism) as harness:
        feed(harness, stream)
        expected, late, _ = model(stream, kind=kind, ttl=ttl)
        assert what_is_out(harness.output) == expected
        assert harness.counters.get("late_rows", 0) == late


@pytest.mark.usefixtures("limits")
@settings(max_examples=80, deadline=None)
@given(stream=steps(), kind=st.sampled_from(TYPES), choices=st.data())
def test_rows_that_are_taken_back_take_their_pairs_with_them(make, stream, kind, choices):
    stream = with_retractions([step for step in stream if not isinstance(step, Mark)], choices)
    config = {"type": kind, "on": ON, "ttl": 0}
    with ParallelHarness(lambda: make("std.join", **config), inputs=UPDATING_STREAMS, parallelism=2) as harness:
        feed(harness, stream, updates_of)
        expected, _, unknown = model(stream, kind=kind, ttl=FOR_EVER)
        assert what_is_out(harness.output) == expected
        assert harness.counters.get("unknown_retractions", 0) == unknown


@settings(max_examples=60, deadline=None)
@given(stream=steps(max_size=10), kind=st.sampled_from(TYPES), choices=st.data())
def test_rows_that_expire_are_not_taken_back_twice(make, stream, kind, choices):
    """One row at a time: what a batch comes to may skip a row that goes and comes again."""
    stream = with_retractions(stream, choices)
    single = [
        each
        for step in stream
        for each in ([Rows(step.side, (row,)) for row in step.rows] if isinstance(step, Rows) else [step])
    ]
    single = [step for step in single if not (isinstance(step, Rows) and step.rows[0].key is None)]
    config = {"type": kind, "on": ON, "ttl": 25}
    with ParallelHarness(lambda: make("std.join", **config), inputs=UPDATING_STREAMS, parallelism=2) as harness:
        feed(harness, single, updates_of)
        expected, late, unknown = model(single, kind=kind, ttl=25)
        assert what_is_out(harness.output) == expected
        assert harness.counters.get("late_rows", 0) == late
        assert harness.counters.get("unknown_retractions", 0) == unknown


@pytest.mark.parametrize("kind", TYPES)
def test_a_large_join_is_that_of_duckdb(make, kind):
    rows = many_rows(300)
    with ParallelHarness(lambda: make("std.join", type=kind, on=ON), inputs=STREAMS, parallelism=2) as harness:
        feed(harness, cut(rows))
        found = what_is_out(harness.output)
    query = f"""
        SELECT l.k, l.a, epoch_us(l.at), r.key, r.a, epoch_us(r.seen), greatest(epoch_us(l.at), epoch_us(r.seen))
        FROM left_rows l {kind} JOIN right_rows r ON l.k = r.key
    """
    assert found == duckdb_rows(query, rows)
    assert found.total() > 1000


def test_an_inner_join_of_plain_streams_only_adds(make, run):
    subtask = run(make("std.join", on=ON), [*STREAMS])
    subtask.feed(batch_of(0, [Row("a", 1, 5)]))
    subtask.feed(batch_of(1, [Row("a", 2, 3), Row("b", 3, 3)]), index=1)
    assert rows_of(subtask.output) == {("a", 1, 5, "a", 2, 3, 5): 1}
    assert subtask.output.column_names == ["k", "a", "at", "key", "right_a", "seen", "join_time"]
    assert subtask.output_schema.timestamp_column == "join_time"
    assert subtask.output_schema.key_columns == ("k",)


def test_an_inner_join_meets_a_key_that_no_batch_can_hold(make, run, monkeypatch):
    """The limit of Arrow, 2 GiB of text in a column, is lowered to some hundred bytes."""
    monkeypatch.setattr("arroyo_core.state.chunks.MAX_CHUNK_BYTES", 400)
    monkeypatch.setattr("arroyo_std.large_rows.OUTPUT_BYTES", 400)
    subtask = run(make("std.join", on=ON), [*STREAMS])
    for n in range(100):
        subtask.feed(batch_of(0, [Row("a", n, 5)]))
    subtask.feed(batch_of(1, [Row("a", 7, 3), Row("a", 8, 3)]), index=1)
    expected = {("a", n, 5, "a", value, 3, 5): 1 for n in range(100) for value in (7, 8)}
    assert rows_of(subtask.output) == expected


def test_a_row_without_a_match_comes_first_and_is_taken_back_when_the_match_comes(make, run):
    subtask = run(make("std.join", type="left", on=ON), [*STREAMS])
    subtask.feed(batch_of(0, [Row("a", 1, 5)]))
    first = subtask.take_output()
    subtask.feed(batch_of(1, [Row("a", 2, 3)]), index=1)
    second = subtask.take_output()
    metas = [meta["is_retract"] for table in (first, second) for meta in table.column(UPDATING_META).to_pylist()]
    assert metas == [False, True, False]
    assert second.slice(0, 1).equals(first.set_column(7, first.schema.field(7), second.column(7).slice(0, 1)))
    assert first.column(UPDATING_META)[0]["id"] == second.column(UPDATING_META)[0]["id"]
    assert second.column(UPDATING_META)[0]["id"] != second.column(UPDATING_META)[1]["id"]


def test_a_change_of_an_aggregate_does_not_take_back_the_padding_of_others(make, run):
    """A batch with the old and the new result of a key: in between, the other side was never without a match."""
    subtask = run(make("std.join", type="right", on=ON), [UPDATING_STREAMS[0], RIGHT])
    subtask.feed(batch_of(1, [Row("a", 9, 1)]), index=1)
    subtask.feed(updates_of(0, [Row("a", 1, 5)]))
    subtask.take_output()
    subtask.feed(updates_of(0, [Row("a", 1, 5, is_retract=True), Row("a", 2, 6)]))
    found = subtask.take_output().to_pylist()
    assert [(row["a"], row["right_a"], row[UPDATING_META]["is_retract"]) for row in found] == [
        (1, 9, True),
        (2, 9, False),
    ]


def test_streams_without_event_time_are_joined_for_ever(make):
    totals = tuple(
        with_updating(ArroyoSchema(pa.schema({name: pa.string(), "n": pa.int64()}), None, (name,)))
        for name in KEY_COLUMNS
    )

    def totals_of(side: int, rows) -> pa.RecordBatch:
        return updates_of(side, rows).select([0, 1, 3]).rename_columns(totals[side].names)

    stream = [
        Rows(0, (Row("a", 1, 0), Row("b", 2, 0))),
        EndOfEpoch(2),
        Mark(0, 10**9),
        Mark(1, 10**9),
        Rows(1, (Row("a", 3, 0),)),
        EndOfEpoch(3),
        Rows(0, (Row("a", 1, 0, is_retract=True), Row("a", 4, 0))),
    ]
    with ParallelHarness(lambda: make("std.join", type="left", on=ON, ttl=5), inputs=totals) as harness:
        feed(harness, stream, totals_of)
        assert what_is_out(harness.output) == {("a", 4, "a", 3): 1, ("b", 2, None, None): 1}
        assert harness.output.column_names == ["k", "n", "key", "right_n", UPDATING_META]


def test_rows_with_lists_can_be_taken_back(make, run):
    stream = with_updating(ArroyoSchema(pa.schema({"k": pa.int64(), "tags": pa.list_(pa.string()), "at": TIME}), "at"))
    subtask = run(lambda: make("std.join", type="left", on=[{"left": "k"}]), [stream, stream])

    def rows(*values: tuple[int, list[str] | None, bool]) -> pa.RecordBatch:
        plain = pa.RecordBatch.from_pydict(
            {
                "k": pa.array([value[0] for value in values], pa.int64()),
                "tags": pa.array([value[1] for value in values], pa.list_(pa.string())),
                "at": pa.array([0] * len(values), pa.int64()).cast(TIME),
            }
        )
        flags = pa.array([value[2] for value in values]).to_numpy(zero_copy_only=False)
        return make_updates(plain, is_retract=flags, ids=row_ids(plain, ["k"]))

    subtask.feed(rows((1, ["x"], False), (1, ["y"], False), (1, None, False)))
    subtask.checkpoint()
    subtask.restore()
    subtask.feed(rows((1, ["y"], True)))
    subtask.feed(rows((1, ["z"], False)), index=1)
    taken_back = [row["tags"] for row in subtask.output.to_pylist() if row[UPDATING_META]["is_retract"]]
    assert taken_back == [["y"], ["x"], None]


def test_only_the_change_of_an_epoch_is_written(make, run):
    subtask = run(lambda: make("std.join", type="inner", on=ON), [*STREAMS])
    subtask.feed(batch_of(0, [Row(f"k{place}", place, place) for place in range(1000)]))
    subtask.checkpoint()
    subtask.restore()
    subtask.feed(batch_of(0, [Row("new", 1, 1)]))
    subtask.checkpoint()
    table = subtask._state.metadata.table_checkpoint_metadata["left"].expiring_keyed_time
    assert [file.rows for file in table.files] == [1000, 1]


def test_rows_past_their_time_to_live_leave_the_checkpoint(make, run):
    subtask = run(lambda: make("std.join", on=ON, ttl=10), [*STREAMS])
    subtask.feed(batch_of(0, [Row("a", 1, 5)]))
    subtask.checkpoint()
    for index in (0, 1):
        subtask.watermark(Watermark.event_time(16), index)
    subtask.checkpoint()
    assert not subtask._state.metadata.table_checkpoint_metadata["left"].expiring_keyed_time.files


@pytest.mark.parametrize(
    ("config", "field", "message"),
    [
        ({"ttl": -1}, "ttl", "negative"),
        ({"time_column": "seen"}, "time_column", "'seen' of its own"),
        ({"on": [{"left": "a", "right": "key"}]}, "on[0].right", "int64.*string"),
        ({"on": []}, "on", "missing"),
    ],
)
def test_a_wrong_config_is_an_error_at_its_field(make, config, field, message):
    with pytest.raises(ConfigError, match=message) as raised:
        make("std.join", **{"on": ON, **config}).output_schema(STREAMS)
    assert raised.value.field == field


def test_a_join_shows_what_it_joins(make):
    shown = make("std.join", type="full", on=ON, ttl=3_600_000_000).display()
    assert list(shown.fields) == [("type", "full"), ("on", "k = key"), ("ttl", "1h")]
