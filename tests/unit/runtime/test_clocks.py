"""Processing time is the driver's, on whatever machine a task runs, and never goes back."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from itertools import pairwise
from unittest import mock

import pyarrow.parquet as pq
import pytest
from arroyo_testing import FakeClock
from arroyo_testing.lanes import InlineLanes

from arroyo_core.pipeline import plan_text
from arroyo_core.plugin import installed_plugins
from arroyo_core.runtime.clocks import DriverClock, EpochClock, task_clock
from arroyo_core.runtime.context import Budget
from arroyo_core.runtime.job import Job
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.request import EpochRequest
from arroyo_core.runtime.stop import StopSignal
from arroyo_core.state import ParquetBackend, get_storage_provider

SECOND_US = 1_000_000
HOUR_US = 3600 * SECOND_US
DAY_US = 24 * HOUR_US
REQUEST = EpochRequest(epoch=3, min_epoch=1, timestamp_us=5 * DAY_US, budget=Budget(), storage_url="memory://clocks")


class Monotonic:
    """Moved by hand."""

    def __init__(self):
        self.ns = 77_000_000_000

    def __call__(self):
        return self.ns

    def advance(self, seconds):
        self.ns += round(seconds * 1e9)


def test_an_epochs_clock_starts_with_the_drivers_time_and_moves_with_the_monotonic_one():
    monotonic = Monotonic()
    clock = EpochClock(5 * DAY_US, monotonic_ns=monotonic)
    assert clock.now_us() == 5 * DAY_US
    monotonic.advance(1.5)
    with mock.patch("time.time_ns", return_value=0):
        assert clock.now_us() == 5 * DAY_US + 1_500_000


def test_all_tasks_of_an_epoch_in_one_process_share_its_clock():
    first = task_clock(REQUEST)
    assert task_clock(replace(REQUEST)) is first
    assert task_clock(replace(REQUEST, timestamp_us=REQUEST.timestamp_us + 1)) is not first, "the epoch is run again"
    own = FakeClock()
    assert task_clock(replace(REQUEST, clock=own)) is own


def test_the_drivers_clock_is_the_machines():
    monotonic, wall = Monotonic(), FakeClock(5 * DAY_US)
    clock = DriverClock(wall, monotonic_ns=monotonic)
    assert clock.now_us() == 5 * DAY_US
    wall.advance(60)
    monotonic.advance(1)
    assert clock.now_us() == 5 * DAY_US + 60 * SECOND_US, "as after a suspension, in which only one of them moved"


def test_the_drivers_clock_neither_goes_back_nor_stands_still():
    monotonic, wall = Monotonic(), FakeClock(5 * DAY_US)
    clock = DriverClock(wall, monotonic_ns=monotonic)
    clock.now_us()
    wall.move_to(4 * DAY_US)
    for seconds in range(1, 4):
        monotonic.advance(1)
        assert clock.now_us() == 5 * DAY_US + seconds * SECOND_US
    wall.move_to(6 * DAY_US)
    assert clock.now_us() == 6 * DAY_US


def test_the_drivers_clock_goes_on_from_a_checkpoint():
    monotonic = Monotonic()
    clock = DriverClock(FakeClock(5 * DAY_US), monotonic_ns=monotonic)
    assert clock.go_on_from(5 * DAY_US - 1) == 0
    assert clock.now_us() == 5 * DAY_US
    assert clock.go_on_from(6 * DAY_US) == DAY_US
    monotonic.advance(2)
    assert clock.now_us() == 6 * DAY_US + 2 * SECOND_US


class WrongClocks(LocalExecutor):
    """An executor whose wall clock is wrong, by another amount in each epoch."""

    def __init__(self, plugins, *, ahead_us):
        super().__init__(plugins)
        self.ahead_us = ahead_us

    def run_epoch(self, plan, request):
        real, skew_ns = time.time_ns, self.ahead_us(request.epoch) * 1000

        def wrong() -> int:
            return real() + skew_ns

        with mock.patch("time.time_ns", wrong):
            return super().run_epoch(plan, request)


@pytest.fixture
def run(tmp_path):
    """Runs a pipeline on rows of one file, one row an epoch; gives the rows of its sink."""
    (tmp_path / "in.csv").write_text("k,v\n" + "".join(f"{number % 2},{number}\n" for number in range(4)))

    def run(node, *, clock=None, ahead_us=lambda epoch: 0, stop_after=None):
        plugins = installed_plugins()
        plan = plan_text(
            f"""
name: clocks
checkpoint: {{rows: 1, interval: 1h, keep: 100}}
nodes:
  - {{id: rows, operator: filesystem.source, config: {{path: {tmp_path}/in.csv, batch_rows: 1,
      schema: {{k: int64, v: int64}}}}}}
  - {{id: node, inputs: [rows], {node}}}
  - {{id: out, operator: filesystem.sink, inputs: [node], config: {{path: {tmp_path}/out, updating: keep_meta}}}}
""",
            file="clocks.yaml",
            plugins=plugins,
            environment={},
        )
        executor = WrongClocks(plugins, ahead_us=ahead_us)
        stop = StopSignal()

        class Listener:
            def on_start(self, job):
                return

            def on_epoch(self, result, job):
                if result.epoch == stop_after:
                    stop.request()

        job = Job(
            plan,
            executor,
            plugins=plugins,
            storage_url=str(tmp_path / "state"),
            clock=clock,
            lanes=InlineLanes(),
            listener=Listener(),
            stop=stop,
        )
        result = job.run()
        rows = [row for file in sorted((tmp_path / "out").glob("part-*")) for row in pq.read_table(file).to_pylist()]
        return result, rows

    return run


@pytest.fixture
def checkpoints(tmp_path):
    def load():
        backend = ParquetBackend(get_storage_provider(str(tmp_path / "state")), "clocks")
        return [backend.load_checkpoint_metadata("clocks", epoch) for epoch in backend.list_epochs()]

    return load


COUNTS = "operator: std.updating_aggregate, config: {keys: [k], ttl: 1h, aggregates: [{function: count, as: n}]}"
WINDOWS = (
    "operator: std.tumbling_window, config: {time: processing, size: 1h, aggregates: [{function: count, as: n}], "
    "keys: [k]}"
)


def test_state_is_not_forgotten_on_a_host_whose_clock_is_a_day_ahead(run):
    _, rows = run(COUNTS, ahead_us=lambda epoch: DAY_US if epoch % 2 == 0 else 0)
    kept = [row["n"] for row in rows if not row["_updating_meta"]["is_retract"]]
    assert sorted(kept) == [1, 1, 2, 2], "a group that was forgotten would count from 1 again"


def test_windows_of_processing_time_are_the_drivers(run):
    wall = FakeClock(5 * DAY_US)

    class Hourly(DriverClock):
        """Each epoch is an hour later."""

        def now_us(self):
            wall.advance(1800)
            return super().now_us()

    _, rows = run(WINDOWS, clock=Hourly(wall), ahead_us=lambda epoch: epoch * DAY_US)
    starts_us = [int(row["window_start"].timestamp() * 1e6) for row in rows]
    assert all(5 * DAY_US <= start <= 5 * DAY_US + 12 * HOUR_US for start in starts_us), starts_us
    assert sum(row["n"] for row in rows) == 4
    assert len(rows) > 1, "they fire as the driver's time passes them"


def test_a_driver_whose_clock_is_behind_goes_on_from_the_last_checkpoint(run, checkpoints, caplog):
    first, _ = run(COUNTS, clock=DriverClock(FakeClock(5 * DAY_US)), stop_after=2)
    assert not first.is_finished
    # Another machine, two days behind: groups must not seem to have been idle for less than nothing.
    second, rows = run(COUNTS, clock=DriverClock(FakeClock(3 * DAY_US)))
    assert second.is_finished
    times = [time_us for each in checkpoints() for time_us in (each.start_time_us, each.finish_time_us)]
    assert all(before <= after for before, after in pairwise(times)), times
    assert re.search(r"the clock of this machine is 17280\d s behind the last checkpoint", caplog.text)
    assert max(row["n"] for row in rows) == 2


def test_what_a_subtask_reports_is_timed_by_the_drivers_clock(run, checkpoints):
    run(COUNTS, clock=DriverClock(FakeClock(5 * DAY_US)), ahead_us=lambda epoch: DAY_US)
    for checkpoint in checkpoints():
        for operator in checkpoint.operators:
            assert 5 * DAY_US <= operator.start_time_us <= operator.finish_time_us < 5 * DAY_US + HOUR_US
