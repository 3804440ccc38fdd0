"""`impulse.source` as an operator."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from arroyo_nexmark import nexmark_pb2
from arroyo_nexmark.impulse import IMPULSE
from arroyo_nexmark.impulse_plugin import ImpulseSourceConstructor, arroyo_register
from google.protobuf.json_format import ParseDict
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import Registry, SourceFinishType, SourceOperator
from arroyo_core.errors import ConfigError


def make(config: dict[str, Any]) -> SourceOperator:
    message = ParseDict(config, nexmark_pb2.ImpulseSource())
    source = ImpulseSourceConstructor().with_config(message, Registry()).source
    assert source is not None
    return source


def test_the_plugin_registers_its_source():
    registry = Registry()
    arroyo_register(registry)
    assert list(registry.constructors) == ["impulse.source"]


def test_the_declared_schema_has_event_time():
    declared = make({}).output_schema([])
    assert declared.schema == IMPULSE
    assert declared.timestamp_column == "timestamp"


@given(st.integers(0, 5000), st.lists(st.integers(1, 9), max_size=3), st.integers(1, 500))
@settings(max_examples=40, deadline=None)
def test_every_counter_comes_once_over_stops_and_parallelisms(runner, count: int, parallelisms: list[int], budget: int):
    job = runner(lambda: make({"count": count}))
    tables = [job.run_epoch(parallelism, budget=budget)[0] for parallelism in parallelisms]
    rows, is_final = job.run_epoch(4)
    assert is_final
    assert sorted(pa.concat_tables([*tables, rows])["counter"].to_pylist()) == list(range(count))


def test_short_sequences_are_shared_out_and_rows_name_their_subtask(runner):
    rows, _ = runner(lambda: make({"count": 100})).run_epoch(4)
    assert set(rows["subtask_index"].to_pylist()) == {0, 1, 2, 3}
    batches, _, _ = runner(lambda: make({"count": 100})).run_subtask(2, 4)
    assert {index for batch in batches for index in batch["subtask_index"].to_pylist()} == {2}


def test_with_an_interval_event_time_follows_the_counter(runner):
    config = {"count": 3, "eventTimeInterval": 250, "startTime": "2024-01-01T00:00:00Z"}
    rows, _ = runner(lambda: make(config)).run_epoch()
    start_us = 1_704_067_200_000_000
    assert rows["timestamp"].cast(pa.int64()).to_pylist() == [start_us, start_us + 250, start_us + 500]


def test_without_an_interval_event_time_is_the_clock(runner):
    job = runner(lambda: make({"count": 3}))
    rows, _ = job.run_epoch()
    assert set(rows["timestamp"].cast(pa.int64()).to_pylist()) == {job.clock.now_us()}


def test_a_rate_spreads_rows_over_time(runner):
    job = runner(lambda: make({"rate": 10}))
    batches, finish, _ = job.run_subtask(budget_s=5)
    assert finish is SourceFinishType.CHECKPOINTED
    assert sum(batch.num_rows for batch in batches) in (49, 50)
    assert len({batch["timestamp"][0].as_py() for batch in batches}) == len(batches) > 40


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"rate": 0}, "rate"),
        ({"eventTimeInterval": -5}, "event_time_interval"),
        ({"startTime": "2024-01-01T00:00:00Z"}, "start_time"),
        ({"count": 2**63}, "count"),
        ({"count": 10**12, "eventTimeInterval": 10**9}, "count"),
    ],
)
def test_a_wrong_option_is_refused_by_name(config: dict[str, Any], field: str):
    with pytest.raises(ConfigError) as caught:
        make(config)
    assert caught.value.field == field
