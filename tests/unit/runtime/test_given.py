"""Tasks use what they are given: the cache of this host and the pool that moves files, or neither."""

from __future__ import annotations

from concurrent.futures import Future

from arroyo_testing.crash_filesystem import running
from arroyo_testing.inline_pool import InlinePool
from arroyo_testing.machine import Disk, Life

from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.state import WarmCache, cache

LINE = [
    {"id": "rows", "operator": "test.rows", "config": {"count": 20}},
    {"id": "sink", "operator": "test.sink", "inputs": ["rows"]},
]
EVERY = {"checkpoint": {"interval": "1h", "rows": 5}}


class CountingPool(InlinePool):
    def __init__(self) -> None:
        self.calls = 0

    def submit(self, call, /, *arguments, **options) -> Future:
        self.calls += 1
        return super().submit(call, *arguments, **options)


def test_a_cache_that_is_given_keeps_what_the_job_wrote(lab, tmp_path):
    given = WarmCache(tmp_path / "cache")
    assert lab.run(LINE, executor=LocalExecutor(lab.plugins, cache=given), **EVERY).is_finished
    assert given.folder.exists()
    assert any(given.folder.rglob("*"))


def test_without_a_cache_nothing_is_kept_on_this_host(lab, tmp_path, monkeypatch):
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(tmp_path / "cache"))
    assert lab.run(LINE, **EVERY).is_finished
    assert not (tmp_path / "cache").exists()


def test_a_pool_that_is_given_moves_the_files_of_state(lab):
    pool = CountingPool()
    lab.folder = "crash-object://given"
    with running(Disk(), Life()):
        assert lab.run(LINE, executor=LocalExecutor(lab.plugins, pool=pool), **EVERY).is_finished
    assert pool.calls > 0
