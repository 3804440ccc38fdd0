"""What an epoch came to, operator by operator."""

import time

import pytest

from arroyo_core.runtime.event_log import read_epoch
from arroyo_core.runtime.events import Published
from arroyo_core.runtime.job import SilentListener
from arroyo_core.state import ParquetBackend, get_storage_provider, paths

NODES = [
    {"id": "in", "operator": "test.rows", "config": {"count": 60}},
    {"id": "pass", "operator": "test.passing", "inputs": ["in"]},
    {"id": "totals", "operator": "test.totals", "inputs": ["pass"]},
    {"id": "out", "operator": "test.sink", "inputs": ["totals"]},
]


class Epochs(SilentListener):
    """Keeps what it is told."""

    def __init__(self, plan):
        self.results = []

    def on_epoch(self, result, job):
        self.results.append(result)


@pytest.fixture
def slow(monkeypatch):
    """Makes every batch take a while in `test.passing`."""

    def slow_down(self, batch, ctx, collector):
        # Busy time is what passes on the clock of a task, so it has to pass.
        time.sleep(0.02)
        collector.collect(batch)

    def install(lab):
        kind = lab.plugins.registry.constructors["test.passing"].kind
        monkeypatch.setattr(kind, "process_batch", slow_down)

    return install


def test_the_slowest_operator_is_not_the_source_that_waits_for_it(lab, slow):
    slow(lab)
    job = lab.job(NODES, listener=Epochs, checkpoint={"interval": "1h", "rows": 30})
    job.run()
    # In the first epoch of a process the source pays for what is imported.
    result = job.listener.results[1]
    shares = result.busy_shares()
    assert result.slowest() == "pass"
    assert shares["in"] < shares["pass"] <= 1


def test_a_source_that_waits_for_rows_is_not_busy(lab):
    source = {"id": "in", "operator": "test.rows", "config": {"count": 6, "then_wait": True}}
    job = lab.job([source, *NODES[1:]], listener=Epochs, checkpoint={"interval": "400ms"})
    lab.run_until(job, Published, 2)
    result = job.listener.results[0]
    assert result.duration_s > 0.2
    assert 0 <= result.busy_shares()["in"] < 0.5


def test_nothing_done_is_nobody_slow(lab):
    job = lab.job(NODES, listener=Epochs)
    job.run()
    (result,) = job.listener.results
    for metrics in result.subtasks.values():
        metrics.busy_ns = 0
    assert result.slowest() is None


def test_state_and_watermarks_are_told_by_operator(lab):
    job = lab.job(NODES, listener=Epochs, parallelism=2, checkpoint={"interval": "1h", "rows": 12})
    job.run()
    first, *_, last = job.listener.results
    assert set(first.operator_state_bytes) == {"in", "totals", "out"}
    assert first.operator_state_bytes["totals"] > 0
    assert sum(first.operator_state_bytes.values()) == first.state_bytes
    assert first.operator_watermarks_us["pass"] < 60
    # At the end of time there is no lag any more.
    assert "pass" not in last.operator_watermarks_us


def test_the_log_of_a_checkpoint_tells_its_epoch(lab, tmp_path):
    job = lab.job(NODES, listener=Epochs, checkpoint={"interval": "1h", "rows": 12})
    job.run()
    backend = ParquetBackend(get_storage_provider(lab.folder), "lab")
    last = job.listener.results[-1]
    checkpoint = backend.load_checkpoint_metadata("lab", last.epoch)
    told = read_epoch(backend.storage, checkpoint)
    assert told is not None
    assert told["operators"] == last.operator_summaries()
    assert told["source_rows"] == last.source_rows

    log = tmp_path / paths.event_log("lab", last.epoch, checkpoint.generation)
    log.write_text(log.read_text()[:-20])
    assert read_epoch(backend.storage, checkpoint) is None
    log.unlink()
    assert read_epoch(backend.storage, checkpoint) is None
