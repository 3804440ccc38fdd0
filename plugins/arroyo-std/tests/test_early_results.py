"""std.tumbling_window with early results: a changelog that ends in what the windows hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import Watermark
from arroyo_core.api.updating import UPDATING_META, is_updating
from arroyo_core.errors import ConfigError

from .support.window_model import AGGREGATES, STREAM, EndOfEpoch, Mark, Row, batch_of, feed, rows_of

EARLY_US = 100
COUNT = [{"function": "count", "as": "n"}]


@dataclass(frozen=True)
class Wait:
    time_us: int


STEPS = st.lists(
    st.one_of(
        rows_of(),
        rows_of(),
        st.builds(Mark, st.integers(-40, 70)),
        st.builds(EndOfEpoch, st.booleans()),
        st.builds(Wait, st.sampled_from([40, 60, 100])),
    ),
    max_size=14,
)


def apply(live: dict[Any, dict[str, Any]], rows: list[dict[str, Any]]) -> None:
    """Follow a changelog: what is taken back must be there, as it was added."""
    for row in rows:
        meta = row.pop(UPDATING_META)
        if meta["is_retract"]:
            assert live.pop(meta["id"]) == row
        else:
            assert meta["id"] not in live
            live[meta["id"]] = row


def numbers(table) -> list[dict[str, Any]]:
    """Rows in their order, with times as numbers."""
    rows = table.to_pylist()
    for row in rows:
        for name in ("window_start", "window_end", "window_time"):
            row[name] = row[name].timestamp()
    return rows


@pytest.mark.usefixtures("limits")
@settings(max_examples=60, deadline=None)
@given(steps=STEPS, keys=st.sampled_from([[], ["k"]]))
def test_the_changes_end_in_the_windows_of_the_model(make, run, steps, keys):
    config = {"size": 10, "keys": keys, "aggregates": AGGREGATES, "allowed_lateness": 3}
    with run(lambda: make("std.tumbling_window", **config), [STREAM]) as plain:
        feed(plain, [step for step in steps if not isinstance(step, Wait)])
        expected = plain.output
    live: dict[Any, dict[str, Any]] = {}
    with run(lambda: make("std.tumbling_window", early=EARLY_US, **config), [STREAM]) as early:
        for step in steps:
            if isinstance(step, Wait):
                early.clock.advance(step.time_us / 1e6)
                early.tick()
            else:
                feed(early, [step], then_end=False)
        early.end_of_data()
        early.checkpoint()
        assert early.operator.store.starts() == []
        apply(live, numbers(early.output))
    assert sorted(live.values(), key=repr) == sorted(numbers(expected), key=repr)


@pytest.fixture
def counts(make, run):
    return run(lambda: make("std.tumbling_window", size=10, keys=["k"], aggregates=COUNT, early=EARLY_US), [STREAM])


def changes(table) -> list[tuple[bool, str, int]]:
    return [(row[UPDATING_META]["is_retract"], row["k"], row["n"]) for row in table.to_pylist()]


def test_results_come_at_the_interval_and_not_before(counts):
    assert is_updating(counts.output_schema)
    counts.feed(batch_of([Row("a", 1, 1), Row("a", 1, 2)]))
    counts.clock.advance((EARLY_US - 1) / 1e6)
    counts.tick()
    assert counts.output.num_rows == 0
    counts.clock.advance(1 / 1e6)
    counts.tick()
    assert changes(counts.take_output()) == [(False, "a", 2)]
    counts.clock.advance(1)
    counts.tick()
    assert counts.output.num_rows == 0


def test_a_window_that_fires_sends_only_what_has_changed(counts):
    counts.feed(batch_of([Row("a", 1, 1), Row("b", 1, 1)]))
    counts.checkpoint()
    counts.restore()
    assert changes(counts.take_output()) == [(False, "a", 1), (False, "b", 1)]
    counts.feed(batch_of([Row("b", 1, 2)]))
    counts.watermark(Watermark.event_time(10))
    assert changes(counts.take_output()) == [(True, "b", 1), (False, "b", 2)]


def test_rows_of_one_window_and_key_share_their_id(counts):
    counts.feed(batch_of([Row("a", 1, 1), Row("a", 1, 11), Row("b", 1, 1)]))
    counts.checkpoint()
    counts.feed(batch_of([Row("a", 1, 2)]))
    counts.end_of_data()
    by_window: dict[Any, set[bytes]] = {}
    for row in counts.output.to_pylist():
        by_window.setdefault((row["k"], row["window_start"]), set()).add(row[UPDATING_META]["id"])
    assert all(len(ids) == 1 for ids in by_window.values())
    assert len(set().union(*by_window.values())) == 3


def test_an_interval_of_nothing_is_refused(make):
    with pytest.raises(ConfigError) as raised:
        make("std.tumbling_window", size=10, early=0)
    assert raised.value.field == "early"
