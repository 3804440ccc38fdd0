"""`impulse.source` as an operator."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from arroyo_nexmark import nexmark_pb2
from arroyo_nexmark.impulse import IMPULSE
from arroyo_nexmark.impulse_plugin import ImpulseSourceConstructor, arroyo_register
from arroyo_testing import SourceHarness
from google.protobuf.json_format import ParseDict
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import Registry, SourceFinishType, SourceOperator, with_defaults
from arroyo_core.errors import ConfigError


def make(config: dict[str, Any]) -> SourceOperator:
    message = with_defaults(ParseDict(config, nexmark_pb2.ImpulseSource()))
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
@settings(max_examples=12, deadline=None)
def test_every_counter_comes_once_over_stops_and_parallelisms(count: int, parallelisms: list[int], budget: int):
    job = SourceHarness(lambda: make({"count": count}))
    tables = [job.run(rows=budget, parallelism=parallelism).table for parallelism in parallelisms]
    last = job.run(parallelism=4)
    job.close()
    assert last.is_final
    assert sorted(pa.concat_tables([*tables, last.table])["counter"].to_pylist()) == list(range(count))


def test_short_sequences_are_shared_out_and_rows_name_their_subtask(run_subtask):
    for task_index in range(4):
        batches = run_subtask(make({"count": 100}), task_index, 4).batches
        assert {index for batch in batches for index in batch["subtask_index"].to_pylist()} == {task_index}


def test_with_an_interval_event_time_follows_the_counter(run_subtask):
    config = {"count": 3, "eventTimeInterval": 250, "startTime": "2024-01-01T00:00:00Z"}
    (batch,) = run_subtask(make(config)).batches
    start_us = 1_704_067_200_000_000
    assert batch["timestamp"].cast(pa.int64()).to_pylist() == [start_us, start_us + 250, start_us + 500]


def test_without_an_interval_event_time_is_the_clock(run_subtask):
    done = run_subtask(make({"count": 3}))
    (batch,) = done.batches
    assert batch["timestamp"].cast(pa.int64()).to_pylist() == [done.clock.now_us()] * 3


def test_a_rate_spreads_rows_over_time(run_subtask):
    done = run_subtask(make({"rate": 10}), seconds=5)
    assert done.finish_type is SourceFinishType.CHECKPOINTED
    assert done.row_count in (49, 50)
    assert len({batch["timestamp"][0].as_py() for batch in done.batches}) == len(done.batches) > 40


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


def test_an_epoch_has_as_many_rows_as_its_budget_says() -> None:
    job = SourceHarness(lambda: make({"count": 1000}))
    assert [job.run(rows=300).table.num_rows for _ in range(4)] == [300, 300, 300, 100]
    job.close()
