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
from google.protobuf.json_format import ParseDict
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import Registry, SourceFinishType, SourceOperator, StopRequest
from arroyo_core.errors import ConfigError, StateError


def make(config: dict[str, Any]) -> SourceOperator:
    message = ParseDict(config, nexmark_pb2.NexmarkSource())
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


def test_the_plugin_registers_its_source():
    registry = Registry()
    arroyo_register(registry)
    assert list(registry.constructors) == ["nexmark.source"]


@pytest.mark.parametrize("name", sorted(TABLES))
def test_the_declared_schema_is_the_produced_one_and_has_event_time(name: str, runner):
    declared = make({"table": name}).output_schema([])
    assert declared.schema == TABLES[name].schema
    assert declared.timestamp_column == "date_time"
    produced, _ = runner(lambda: make({"table": name, "events": 1000})).run_epoch()
    assert produced.schema == declared.schema
    assert produced.num_rows == {"bid": 920, "auction": 60, "person": 20, "event": 1000}[name]


def test_bids_are_the_default_and_make_46_of_50_events(runner):
    rows, is_final = runner(lambda: make({"events": 1_000_000, "fields": ["auction"]})).run_epoch()
    assert is_final
    assert rows.num_rows == 920_000


def test_fields_choose_columns_and_their_order(runner):
    config = {"events": 5000, "fields": ["price", "auction"]}
    assert make(config).output_schema([]).timestamp_column is None
    rows, _ = runner(lambda: make(config)).run_epoch()
    assert rows.combine_chunks().equals(whole("bid", 5000).select(["price", "auction"]))


@given(
    name=st.sampled_from(sorted(TABLES)),
    events=st.integers(0, 30_000),
    parallelisms=st.lists(st.integers(1, 7), min_size=1, max_size=4),
    budget=st.integers(1, 20_000),
    group=st.sampled_from([1, 1, 7, 1000, 4096]),
)
@settings(max_examples=40, deadline=None)
def test_stops_and_other_parallelisms_do_not_change_the_rows(
    runner, name: str, events: int, parallelisms: list[int], budget: int, group: int
):
    config = {"table": name, "events": events, "seed": 3, "outOfOrderGroupSize": group}
    job = runner(lambda: make(config))
    tables = [job.run_epoch(parallelism, budget=budget)[0] for parallelism in parallelisms]
    rows, is_final = job.run_epoch(2)
    assert is_final
    expected = in_order(whole(name, events, seed=3))
    assert in_order(pa.concat_tables([*tables, rows])).equals(expected)
    again, is_final = job.run_epoch(3)
    assert is_final
    assert again.num_rows == 0


def test_event_time_ascends_within_a_subtask(runner):
    batches, _, _ = runner(lambda: make({"events": 300_000, "fields": ["date_time"]})).run_subtask(1, 3)
    times = pa.chunked_array([batch["date_time"] for batch in batches]).cast(pa.int64()).to_numpy()
    assert len(batches) > 1
    assert (np.diff(times) > 0).all()


def test_a_stream_without_end_stops_when_told(runner, stop_request: StopRequest):
    job = runner(lambda: make({"fields": ["price"]}))
    batches, finish, state = job.run_subtask(budget=100_000, message=stop_request)
    assert finish is SourceFinishType.GRACEFUL
    assert 100_000 <= sum(batch.num_rows for batch in batches) < 140_000
    assert max(state.values()) > 100_000


def test_batches_of_large_rows_are_small(runner):
    batches, _, _ = runner(lambda: make({"events": 5000, "avgBidSize": 1 << 20})).run_subtask(budget=1)
    assert sum(batch.num_rows for batch in batches) <= 64


@pytest.mark.parametrize("rate", [3, 500, 200_000])
def test_a_rate_is_kept_over_all_subtasks(runner, rate: float):
    job = runner(lambda: make({"table": "event", "rate": rate, "fields": ["event_type"]}))
    rows = 0
    for task_index in range(3):
        batches, finish, _ = job.run_subtask(task_index, 3, budget_s=20)
        assert finish is SourceFinishType.CHECKPOINTED
        rows += sum(batch.num_rows for batch in batches)
    assert rows == pytest.approx(rate * 20, rel=0.02, abs=3)


def test_changed_proportions_are_refused_for_saved_state(runner):
    job = runner(lambda: make({"events": 5000}))
    job.run_epoch(budget=1)
    job.make = lambda: make({"events": 5000, "bidProportion": 10})
    with pytest.raises(StateError, match="blocks of 500 events, and now they have 140"):
        job.run_epoch()


def test_other_proportions_are_followed(runner):
    config = {"table": "event", "events": 1000, "personProportion": 2, "auctionProportion": 2, "bidProportion": 6}
    rows, _ = runner(lambda: make(config)).run_epoch()
    assert rows["event_type"].value_counts().to_pylist() == [
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
