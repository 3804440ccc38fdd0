"""The warm cache: hits without reading the store, bounded, and never trusted without its record."""

from __future__ import annotations

import os
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pyarrow as pa
import pytest
from cache_entries import facts, put_and_get, table
from state_job import NO_COMPACTION, Job, batch_of, expiring_tables, rows_of

from arroyo_core.errors import SetupError
from arroyo_core.ids import TaskInfo
from arroyo_core.state import StorageProvider, TableManager, WarmCache, default_warm_cache, files
from arroyo_core.state import cache as state_cache

ROWS = [(key, 5, key * 2) for key in range(1000)]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(state_cache, "SMALL_BYTES", -1)
    return WarmCache(tmp_path / "cache")


@pytest.fixture
def job(tmp_path):
    job = Job(StorageProvider(str(tmp_path / "store")), expiring_tables("t"), compaction=NO_COMPACTION)
    job.resume(1)
    return job


def open_with(job: Job, cache: WarmCache | None, index: int = 0, parallelism: int = 1) -> TableManager:
    task = TaskInfo(job_id="job", operator_id="op", operator_name="x", task_index=index, parallelism=parallelism)
    operator = job.checkpoint.operators[0] if job.checkpoint else None
    return TableManager.open(task_info=task, tables=job.tables, storage=job.storage, checkpoint=operator, cache=cache)


def contents(manager: TableManager):
    return sorted(rows_of(manager.get_key_time_table("t").get_all()))


def test_what_an_epoch_wrote_is_warm_for_the_next(job, cache):
    manager = open_with(job, cache)
    manager.get_key_time_table("t").insert(batch_of(ROWS))
    job.managers = [manager]
    job.take(None)
    again = open_with(job, cache)
    assert contents(again) == ROWS
    assert (again.read_counts.files_opened, again.read_counts.cache_hits) == (0, 1)


def test_what_the_last_epoch_wrote_is_not_kept(job, cache):
    manager = open_with(job, cache)
    manager.get_key_time_table("t").insert(batch_of(ROWS))
    manager.checkpoint(1, 1, None, is_last=True)
    assert not list(cache.folder.glob("*.arrow"))


def test_what_was_read_cold_is_warm_the_next_time(job, cache, monkeypatch):
    monkeypatch.setattr(files, "WHOLE_READ_BYTES", 0)
    job.managers[0].get_key_time_table("t").insert(batch_of(ROWS))
    job.take(None)
    for expected in ((1, 0), (0, 1)):
        found = []
        for index in range(3):
            manager = open_with(job, cache, index, 3)
            found.extend(contents(manager))
            assert (manager.read_counts.files_opened, manager.read_counts.cache_hits) == expected
        assert sorted(found) == ROWS


@pytest.mark.parametrize("damage", ["change", "cut", "swap", "record", "no record"])
def test_an_entry_that_is_not_as_it_was_written_is_a_miss(cache, damage):
    cache.put(facts(1), table())
    cache.put(facts(2), table(20))
    [entry] = cache.folder.glob("0101*.arrow")
    record = entry.with_suffix(".record")
    if damage == "change":
        entry.write_bytes(entry.read_bytes().replace(b"\x05", b"\x06"))
        # Even a change that puts the modification time on later is noticed by its nanoseconds.
        os.utime(entry, ns=(time.time_ns(), entry.stat().st_mtime_ns + 1))
    elif damage == "cut":
        os.truncate(entry, 100)
    elif damage == "swap":
        next(cache.folder.glob("0202*.arrow")).replace(entry)
    elif damage == "record":
        record.write_bytes(bytes(32))
    else:
        record.unlink()
    assert cache.get(facts(1), 0, 99) is None


def test_a_record_of_another_secret_or_boot_is_a_miss(cache, monkeypatch):
    cache.put(facts(1), table())
    assert cache.get(facts(1), 0, 99).num_rows == 10
    monkeypatch.setattr(cache, "_boot_id", b"later")
    assert cache.get(facts(1), 0, 99) is None
    monkeypatch.undo()
    (cache.folder / "secret").write_bytes(bytes(32))
    assert WarmCache(cache.folder).get(facts(1), 0, 99) is None


def test_small_tables_stay_in_memory_up_to_a_bound(tmp_path, monkeypatch):
    cache = WarmCache(tmp_path / "cache")
    monkeypatch.setattr(state_cache, "SMALL_TOTAL_BYTES", 2 * table().nbytes)
    for number in (1, 2, 3):
        cache.put(facts(number), table())
    for entry in cache.folder.glob("*.arrow"):
        entry.unlink()
    assert [cache.get(facts(number), 0, 9) is not None for number in (1, 2, 3)] == [False, True, True]


def test_the_entries_used_longest_ago_make_room(cache):
    cache.put(facts(1), table(1000))
    cache.max_bytes = 3 * cache.size_bytes()
    for number in (2, 3):
        cache.put(facts(number), table(1000))
    assert cache.get(facts(1), 0, 9) is not None
    cache.put(facts(4), table(1000))
    assert [cache.get(facts(number), 0, 9) is not None for number in (1, 2, 3, 4)] == [True, False, True, True]
    assert cache.size_bytes() <= cache.max_bytes


def test_a_mapped_entry_stays_readable_after_it_was_evicted(cache):
    cache.put(facts(1), table())
    mapped = cache.get(facts(1), 0, 9)
    cache.max_bytes = 0
    cache.put(facts(2), table())
    assert list(cache.folder.glob("*.arrow")) == []
    assert mapped.column("_key_hash").to_pylist() == list(range(10))


def test_several_processes_share_a_cache(tmp_path):
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert all(pool.map(put_and_get, [str(tmp_path / "cache")] * 3, range(3)))


def test_a_cache_that_others_can_write_is_refused(tmp_path):
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(SetupError, match="must belong to this user"):
        WarmCache(folder)


def test_the_cache_can_be_turned_off_or_moved(tmp_path, monkeypatch):
    monkeypatch.setenv("ARROYO_STATE_CACHE", "off")
    assert default_warm_cache() is None
    monkeypatch.setenv("ARROYO_STATE_CACHE", str(tmp_path / "there"))
    monkeypatch.setenv("ARROYO_STATE_CACHE_BYTES", "1000")
    cache = default_warm_cache()
    assert (cache.folder, cache.max_bytes) == (tmp_path / "there", 1000)


def test_a_cache_that_cannot_be_written_only_misses(cache, monkeypatch):
    monkeypatch.setattr(pa, "OSFile", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    cache.put(facts(1), table())
    assert cache.get(facts(1), 0, 9) is None
