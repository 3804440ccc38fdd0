"""`nexmark.source` as an operator: config, epochs, state, rates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from arroyo_nexmark import nexmark_pb2
from arroyo_nexmark.plugin import NexmarkSourceConstructor, arroyo_register
from arroyo_nexmark.rules import Rules
from arroyo_nexmark.tables import TABLES, make_batch
from arroyo_testing import SourceHarness
from google.protobuf.json_format import ParseDict
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import Registry, SourceFinishType, SourceOperator, StopRequest, with_defaults
from arroyo_core.errors import ConfigError, OperatorError, RetryHint


def make(config: dict[str, Any]) -> SourceOperator:
    message = with_defaults(ParseDict(config, nexmark_pb2.NexmarkSource()))
    source = NexmarkSourceConstructor().with_config(message, Registry()).source
    assert source is not None
    return source


def whole(name: str, events: int, **options: int) -> pa.Table:
    rules, table = Rules(**options), TABLES[name]
    numbers = np.arange(events, dtype=np.int64)
    if table.kind is not None:
        numbers = numbers[rules.kinds(numbers) == table.kind]
    return pa.Table.from_batches([make_batch(table, table.schema, rules, numbers)])


def in_order(table: pa.Table) -> pa.Table:
    return table.sort_by("date_time").combine_chunks()


def _rows(config: dict[str, Any]) -> pa.Table:
    job = SourceHarness(lambda: make(config))
    rows = job.run_all()
    job.close()
    return rows


def test_the_plugin_registers_its_source():
    registry = Registry()
    arroyo_register(registry)
    assert list(registry.constructors) == ["nexmark.source"]


@pytest.mark.parametrize("name", sorted(TABLES))
def test_the_declared_schema_is_the_produced_one_and_has_event_time(name: str):
    declared = make({"table": name}).output_schema([])
    assert declared.schema == TABLES[name].schema
    assert declared.timestamp_column == "date_time"
    produced = _rows({"table": name, "events": 1000})
    assert produced.schema == declared.schema
    assert produced.num_rows == {"bid": 920, "auction": 60, "person": 20, "event": 1000}[name]


def test_bids_are_the_default_and_make_46_of_50_events():
    assert _rows({"events": 1_000_000, "fields": ["auction"]}).num_rows == 920_000


def test_fields_choose_columns_and_their_order():
    config = {"events": 5000, "fields": ["price", "auction"]}
    assert make(config).output_schema([]).timestamp_column is None
    assert _rows(config).combine_chunks().equals(whole("bid", 5000).select(["price", "auction"]))


@given(
    name=st.sampled_from(sorted(TABLES)),
    events=st.integers(0, 30_000),
    parallelisms=st.lists(st.integers(1, 7), min_size=1, max_size=4),
    budget=st.integers(1, 20_000),
    group=st.sampled_from([1, 1, 7, 1000, 4096]),
)
@settings(max_examples=20, deadline=None)
def test_stops_and_other_parallelisms_do_not_change_the_rows(
    name: str, events: int, parallelisms: list[int], budget: int, group: int
):
    config = {"table": name, "events": events, "seed": 3, "outOfOrderGroupSize": group}
    job = SourceHarness(lambda: make(config))
    tables = [job.run(rows=budget, parallelism=parallelism).table for parallelism in parallelisms]
    last = job.run(parallelism=2)
    again = job.run(parallelism=3)
    job.close()
    assert last.is_final
    assert in_order(pa.concat_tables([*tables, last.table])).equals(in_order(whole(name, events, seed=3)))
    assert again.is_final
    assert not again.batches


def test_event_time_ascends_within_a_subtask(run_subtask):
    batches = run_subtask(make({"events": 300_000, "fields": ["date_time"]}), 1, 3).batches
    times = pa.chunked_array([batch["date_time"] for batch in batches]).cast(pa.int64()).to_numpy()
    assert len(batches) > 1
    assert (np.diff(times) > 0).all()


def test_a_stream_without_end_stops_when_told(run_subtask):
    done = run_subtask(make({"fields": ["price"]}), rows=100_000, message=StopRequest(is_graceful=True))
    assert done.finish_type is SourceFinishType.GRACEFUL
    assert 100_000 <= done.row_count < 140_000
    assert max(done.state.values()) > 100_000


def test_batches_of_large_rows_are_small(run_subtask):
    assert 0 < run_subtask(make({"events": 5000, "avgBidSize": 1 << 20}), rows=1).row_count <= 64


@pytest.mark.parametrize("rate", [3, 500, 200_000])
def test_a_rate_is_kept_over_all_subtasks(run_subtask, rate: float):
    config = {"table": "event", "rate": rate, "fields": ["event_type"]}
    rows = 0
    for task_index in range(3):
        done = run_subtask(make(config), task_index, 3, seconds=20)
        assert done.finish_type is SourceFinishType.CHECKPOINTED
        rows += done.row_count
    assert rows == pytest.approx(rate * 20, rel=0.02, abs=3)


@pytest.mark.parametrize(("rate", "seconds"), [(5_000, 0.02), (2_000, 0.0701), (4, 0.02)])
def test_a_rate_is_kept_over_epochs_that_are_too_short_for_a_batch(run_subtask, rate: float, seconds: float):
    config = {"table": "event", "rate": rate, "fields": ["event_type"]}
    epochs = 2_000
    rows = sum(run_subtask(make(config), seconds=seconds).row_count for _ in range(epochs))
    assert rows == pytest.approx(rate * seconds * epochs, rel=0.4)


def test_changed_proportions_are_refused_for_saved_state():
    configs = [{"events": 5000}, {"events": 5000, "bidProportion": 10}]
    job = SourceHarness(lambda: make(configs.pop(0)))
    job.run(rows=1)
    with pytest.raises(OperatorError, match="blocks of 500 events, and now they have 140") as raised:
        job.run()
    assert raised.value.cause_retry is RetryHint.NO_RETRY
    job.close()


def test_state_depends_on_what_decides_which_event_is_at_a_position():
    def settings_of(**config: Any) -> dict[str, str]:
        return dict(make(config).state_settings([]))

    before = settings_of()
    assert settings_of(seed=0, table="bid", base_time="2015-07-15T00:00:00Z", event_rate=10_000) == before
    assert settings_of(events=10, rate=5, fields=["price"]) == before
    others = {"seed": 1, "table": "auction", "base_time": "2016-01-01T00:00:00Z", "event_rate": 5}
    others |= {name: 7 for name in before if name not in {*others, "events"}}
    for name, value in others.items():
        after = settings_of(**{name: value})
        assert [label for label in before if after[label] != before[label] and label != "events"] == [name]
    # Only a last group that is cut short depends on the end.
    scattered = {"out_of_order_group_size": 100}
    assert settings_of(**scattered, events=50) != settings_of(**scattered, events=150)


def test_other_proportions_are_followed():
    config = {"table": "event", "events": 1000, "personProportion": 2, "auctionProportion": 2, "bidProportion": 6}
    assert _rows(config)["event_type"].value_counts().to_pylist() == [
        {"values": 0, "counts": 200},
        {"values": 1, "counts": 200},
        {"values": 2, "counts": 600},
    ]


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"rate": 0}, "rate"),
        ({"rate": -1}, "rate"),
        ({"rate": "NaN"}, "rate"),
        ({"fields": ["price", "prise"]}, "fields[1]"),
        ({"fields": ["price", "price"]}, "fields[1]"),
        ({"eventRate": 0}, "event_rate"),
        ({"hotAuctionRatio": 0}, "hot_auction_ratio"),
        ({"personProportion": 0}, "person_proportion"),
        ({"avgBidSize": -1}, "avg_bid_size"),
        ({"outOfOrderGroupSize": 1906}, "out_of_order_group_size"),
        ({"events": 2**63}, "events"),
        ({"events": 10**12, "eventRate": 1}, "events"),
    ],
)
def test_a_wrong_option_is_refused_by_name(config: dict[str, Any], field: str):
    with pytest.raises(ConfigError) as caught:
        make(config)
    assert caught.value.field == field


def test_an_unknown_column_lists_those_there_are():
    with pytest.raises(ConfigError) as caught:
        make({"table": "person", "fields": ["price"]})
    assert caught.value.allowed == tuple(TABLES["person"].schema.names)


def test_the_plan_shows_table_and_columns():
    shown = make({"events": 10, "fields": ["price"]}).display()
    assert shown.fields == (("table", "bid"), ("events", "10"), ("seed", "0"), ("fields", "price"))
