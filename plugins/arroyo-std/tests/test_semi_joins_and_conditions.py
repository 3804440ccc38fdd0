"""Semi and anti joins, and joins with a condition beside equal keys: against a slow and obvious model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arroyo_testing import ParallelHarness
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api.updating import UPDATING_META, make_updates, row_ids, with_updating
from arroyo_core.errors import ConfigError

from .support.join_model import (
    KEYS,
    ON,
    SIDES,
    STREAMS,
    EndOfEpoch,
    Row,
    Rows,
    batch_of,
    cut,
    feed,
    joined,
    many_rows,
    rows_of,
    side_by_side,
    sides_on_time,
    steps,
    tuples_of,
)

TYPES = ["inner", "left", "right", "full", "semi", "anti"]
CONDITIONS: dict[str, Callable[[Row, Row], bool]] = {
    "": lambda left, right: True,
    "a < right_a": lambda left, right: None not in (left.value, right.value) and left.value < right.value,
    "right_a = 1 or a is null": lambda left, right: right.value == 1 or left.value is None,
}
HOUR_US = 3_600_000_000
UPDATING_STREAMS = tuple(with_updating(stream) for stream in STREAMS)


def config_of(kind: str, condition: str, **others: Any) -> dict[str, Any]:
    return {"type": kind, "on": ON, **({"condition": condition} if condition else {}), **others}


def expected(
    left: Sequence[Row],
    right: Sequence[Row],
    *,
    kind: str,
    is_match: Callable[[Row, Row], bool],
    added: Callable[[Row | None, Row | None], tuple[Any, ...]],
    has_keys: bool = True,
) -> Counter[tuple[Any, ...]]:
    if kind not in ("semi", "anti"):
        return joined(left, right, kind=kind, is_match=is_match, added=added)
    rows = [
        x
        for x in left
        if any(
            (x.key is not None or not has_keys) and (x.key == y.key or not has_keys) and is_match(x, y) for y in right
        )
        == (kind == "semi")
    ]
    return Counter((*side_by_side(x, None)[:3], *added(x, None)) for x in rows)


@pytest.mark.usefixtures("limits")
@settings(max_examples=30, deadline=None)
@given(stream=steps(), kind=st.sampled_from(TYPES), condition=st.sampled_from(list(CONDITIONS)))
def test_joined_windows_are_those_of_the_model(make, stream, kind, condition):
    config = config_of(kind, condition, size=10)
    with ParallelHarness(lambda: make("std.window_join", **config), inputs=STREAMS, parallelism=2) as harness:
        feed(harness, stream)
        (left, right), _ = sides_on_time(stream, lambda time_us: time_us // 10 * 10 + 9)
        assert rows_of(harness.output) == expected(
            left,
            right,
            kind=kind,
            is_match=lambda x, y: x.time_us // 10 == y.time_us // 10 and CONDITIONS[condition](x, y),
            added=lambda x, y: (begin := (x or y).time_us // 10 * 10, begin + 10, begin + 9),
        )


@pytest.mark.usefixtures("limits")
@settings(max_examples=30, deadline=None)
@given(stream=steps(), kind=st.sampled_from(["inner", "semi", "anti"]), condition=st.sampled_from(list(CONDITIONS)))
def test_windows_without_keys_join_every_row_with_every_other(make, stream, kind, condition):
    config = config_of(kind, condition, size=10, on=[])
    stream = [EndOfEpoch(1) if isinstance(step, EndOfEpoch) else step for step in stream]
    with ParallelHarness(lambda: make("std.window_join", **config), inputs=STREAMS, parallelism=1) as harness:
        feed(harness, stream)
        (left, right), _ = sides_on_time(stream, lambda time_us: time_us // 10 * 10 + 9)

        def is_match(x: Row, y: Row) -> bool:
            return x.time_us // 10 == y.time_us // 10 and CONDITIONS[condition](x, y)

        def added(x: Row) -> tuple[int, ...]:
            return (begin := x.time_us // 10 * 10, begin + 10, begin + 9)

        if kind == "inner":
            wanted = Counter((*side_by_side(x, y), *added(x)) for x in left for y in right if is_match(x, y))
        else:
            wanted = expected(left, right, kind=kind, is_match=is_match, added=lambda x, y: added(x), has_keys=False)
        assert rows_of(harness.output) == wanted


@pytest.mark.usefixtures("limits")
@settings(max_examples=40, deadline=None)
@given(
    stream=steps(),
    kind=st.sampled_from(TYPES),
    condition=st.sampled_from(list(CONDITIONS)),
    interval=st.sampled_from([(-5, 10), (3, 8), (-8, -3)]),
)
def test_rows_within_the_interval_are_those_of_the_model(make, stream, kind, condition, interval):
    lower, upper = interval
    config = config_of(kind, condition, lower=f"{lower}us", upper=f"{upper}us")
    with ParallelHarness(lambda: make("std.interval_join", **config), inputs=STREAMS, parallelism=2) as harness:
        feed(harness, stream)
        (left, right), _ = sides_on_time(stream, lambda time_us: time_us)
        is_filter = kind in ("semi", "anti")
        assert rows_of(harness.output) == expected(
            left,
            right,
            kind=kind,
            is_match=lambda x, y: lower <= y.time_us - x.time_us <= upper and CONDITIONS[condition](x, y),
            added=lambda x, y: () if is_filter else (max(row.time_us for row in (x, y) if row is not None),),
        )


def what_is_out(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """The rows that were added and not taken back; fails where one is taken back that is not out."""
    if UPDATING_META not in table.column_names:
        return rows_of(table)
    flags = [meta["is_retract"] for meta in table.column(UPDATING_META).to_pylist()]
    out: Counter[tuple[Any, ...]] = Counter()
    for row, is_retract in zip(tuples_of(table.drop_columns([UPDATING_META])), flags, strict=True):
        out[row] += -1 if is_retract else 1
        assert out[row] >= 0, row
    return +out


@st.composite
def changes(draw: st.DrawFn) -> list[Any]:
    """Batches of rows of either side; some rows of earlier batches, or of the same one, are taken back."""
    live: tuple[list[Row], list[Row]] = ([], [])
    found: list[Any] = []
    for number in range(draw(st.integers(1, 8))):
        side, rows = draw(SIDES), []
        for _ in range(draw(st.integers(1, 4))):
            if live[side] and draw(st.booleans()):
                row = live[side].pop(draw(st.integers(0, len(live[side]) - 1)))
                rows.append(Row(row.key, row.value, row.time_us, is_retract=True))
            else:
                row = Row(draw(KEYS), draw(st.none() | st.integers(0, 2)), draw(st.integers(0, 3)))
                live[side].append(row)
                rows.append(row)
        found.append(Rows(side, tuple(rows)))
        if draw(st.booleans()):
            found.append(EndOfEpoch(1 + number % 2))
    return [found, live]


def updates_of(side: int, rows: Sequence[Row]) -> pa.RecordBatch:
    plain = batch_of(side, rows)
    flags = pa.array([row.is_retract for row in rows]).to_numpy(zero_copy_only=False)
    return make_updates(plain, is_retract=flags, ids=row_ids(plain, ["k" if side == 0 else "key"]))


@pytest.mark.usefixtures("limits")
@settings(max_examples=60, deadline=None)
@given(changed=changes(), kind=st.sampled_from(TYPES), condition=st.sampled_from(list(CONDITIONS)))
def test_what_is_out_at_the_end_is_the_join_of_what_is_left(make, changed, kind, condition):
    stream, (left, right) = changed
    config = config_of(kind, condition, ttl=HOUR_US)
    with ParallelHarness(lambda: make("std.join", **config), inputs=UPDATING_STREAMS, parallelism=2) as harness:
        feed(harness, stream, updates_of)
        is_filter = kind in ("semi", "anti")
        assert what_is_out(harness.output) == expected(
            left,
            right,
            kind=kind,
            is_match=CONDITIONS[condition],
            added=lambda x, y: () if is_filter else (max(row.time_us for row in (x, y) if row is not None),),
        )


@settings(max_examples=30, deadline=None)
@given(stream=steps(), kind=st.sampled_from(TYPES), condition=st.sampled_from(list(CONDITIONS)))
def test_streams_that_only_add_are_joined_likewise(make, stream, kind, condition):
    config = config_of(kind, condition, ttl=HOUR_US)
    with ParallelHarness(lambda: make("std.join", **config), inputs=STREAMS, parallelism=2) as harness:
        feed(harness, stream)
        (left, right), _ = sides_on_time(stream, lambda time_us: 10**12)
        is_filter = kind in ("semi", "anti")
        assert what_is_out(harness.output) == expected(
            left,
            right,
            kind=kind,
            is_match=CONDITIONS[condition],
            added=lambda x, y: () if is_filter else (max(row.time_us for row in (x, y) if row is not None),),
        )


def test_a_semi_join_of_streams_that_only_add_only_adds(make):
    semi, anti = (make("std.join", on=ON, type=kind).output_schema(STREAMS) for kind in ("semi", "anti"))
    assert semi.names == ["k", "a", "at"]
    assert semi.timestamp_column is None
    assert semi.key_columns == ("k",)
    assert anti.names == ["k", "a", "at", UPDATING_META]
    interval = make("std.interval_join", on=ON, type="semi", lower="0s", upper="1s").output_schema(STREAMS)
    assert (interval.names, interval.timestamp_column) == (["k", "a", "at"], "at")


@pytest.mark.parametrize("kind", ["semi", "anti"])
@pytest.mark.parametrize(
    ("operator", "settings_"), [("std.window_join", {"size": 500}), ("std.join", {"ttl": HOUR_US})]
)
def test_a_large_filter_is_that_of_the_model(make, kind, operator, settings_):
    rows = many_rows()
    config = config_of(kind, "a < right_a", **settings_)
    with ParallelHarness(lambda: make(operator, **config), inputs=STREAMS, parallelism=2) as harness:
        feed(harness, cut(rows))
        found = Counter(row[:3] for row in what_is_out(harness.output).elements())
    size = settings_.get("size", 10**9)
    assert found == expected(
        *rows,
        kind=kind,
        is_match=lambda x, y: x.time_us // size == y.time_us // size and x.value < y.value,
        added=lambda x, y: (),
    )


@pytest.mark.parametrize(
    ("kind", "condition", "found"),
    [
        ("semi", "", ["a", "a", "b"]),
        ("anti", "", ["z", None]),
        ("semi", "a = n", ["a"]),
        ("anti", "a = n", ["a", "b", "z", None]),
        ("left", "a = n", [("a", 1, 1), ("a", 2, None), ("b", 3, None), ("z", 1, None), (None, 1, None)]),
        ("inner", "a < n", [("a", 1, 2)]),
    ],
)
def test_rows_are_looked_up_with_a_condition(make, run, tmp_path, kind, condition, found):
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"key": ["a", "a", "b", None], "n": [1, 1, 9, 1]}), path)
    if kind == "inner":
        pq.write_table(pa.table({"key": ["a", "a", "b"], "n": [1, 2, 1]}), path)
    rows = [Row("a", 1, 0), Row("a", 2, 0), Row("b", 3, 0), Row("z", 1, 0), Row(None, 1, 0)]
    if kind == "left":
        pq.write_table(pa.table({"key": ["a", "b"], "n": [1, 9]}), path)
    config = config_of(kind, condition, table={"path": str(path)})
    subtask = run(lambda: make("std.lookup_join", **config), [STREAMS[0]])
    subtask.process(batch_of(0, rows))
    columns = ["k", "a", "n"] if kind in ("inner", "left") else ["k"]
    table = subtask.output.select(columns).to_pylist()
    listed = [tuple(row.values()) if len(columns) > 1 else row["k"] for row in table]
    assert sorted(listed, key=str) == sorted(found, key=str)


@pytest.mark.parametrize(
    ("operator", "config", "field", "message"),
    [
        ("std.join", {"condition": "a + 1"}, "condition", "the condition is int64, not boolean"),
        ("std.window_join", {"condition": "b > 1", "size": 10}, "condition", "no column 'b'"),
        ("std.interval_join", {"condition": "count(*) > 1", "lower": "0s", "upper": "1s"}, "condition", "aggregate"),
        ("std.asof_join", {"type": "semi", "tolerance": 10}, "type", "at most one match"),
    ],
)
def test_a_wrong_condition_is_an_error_at_its_field(make, operator, config, field, message):
    with pytest.raises(ConfigError) as raised:
        make(operator, on=ON, **config).output_schema(STREAMS)
    assert raised.value.field == field
    assert message in str(raised.value)
