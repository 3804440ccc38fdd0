"""How often an epoch asks the store: in proportion to the parallelism, not to its square."""

from __future__ import annotations

from pathlib import Path

import pytest

from arroyo_core.state import StorageProvider

from .former import make_orders, run
from .places import empty_folder

PIPELINE = """
name: reads
parallelism: 2
checkpoint: {interval: 1h, rows: 64, keep: 2}
nodes:
  - id: bids
    operator: nexmark.source
    config: {events: 1000000, table: bid, fields: [auction, date_time]}
  - id: bids_in_time
    operator: std.watermark
    inputs: [bids]
    config: {max_lateness: 50ms}
  - id: counts
    operator: std.tumbling_window
    inputs: [bids_in_time]
    config: {size: 1ms, keys: [auction]}
  - id: orders
    operator: filesystem.source
    config:
      path: "memory://former-orders"
      format: csv
      schema: {id: int64, moment: timestamp, amount: int64}
      event_time_field: moment
      batch_rows: 4
      split_size: 200B
  - id: orders_in_time
    operator: std.watermark
    inputs: [orders]
    config: {max_lateness: 10s}
  - id: in_windows
    operator: std.assign_window
    inputs: [orders_in_time]
    config: {size: 15s}
  - id: top
    operator: std.top_n
    inputs: [in_windows]
    config: {n: 2, partition_by: [window_start], order_by: [{column: amount, descending: true}]}
  - id: nothing
    operator: std.blackhole
    inputs: [counts]
  - id: nowhere
    operator: std.blackhole
    inputs: [top]
"""

#: Long enough that files have been merged.
EPOCHS = 12


@pytest.fixture
def reads_per_epoch(monkeypatch):
    """The reads of one epoch, about, of a job that has come to its steady state."""
    calls: list[str] = []
    for name in ("read", "read_parts", "open"):
        original = getattr(StorageProvider, name)

        def counted(self, path, *arguments, original=original, **limits):
            calls.append(path)
            return original(self, path, *arguments, **limits)

        monkeypatch.setattr(StorageProvider, name, counted)

    def measure(parallelism: int) -> float:
        with empty_folder() as folder, pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            make_orders()
            Path("pipeline.yaml").write_text(PIPELINE)
            counts = []
            for epochs in (EPOCHS, 4):
                calls.clear()
                assert run(parallelism=parallelism, epochs=epochs) is None
                counts.append(sum(path.endswith(".parquet") for path in calls))
            return counts[1] / 4

    return measure


def test_the_reads_of_an_epoch_grow_with_the_parallelism_not_with_its_square(reads_per_epoch):
    found = {parallelism: reads_per_epoch(parallelism) for parallelism in (2, 16)}
    assert found[2] > 0
    for parallelism, reads in found.items():
        assert reads / parallelism < 1.5 * found[2] / 2, found
