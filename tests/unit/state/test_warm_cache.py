"""The warm cache: hits without reading the store, bounded, and never trusted without its record."""

from __future__ import annotations

import os
import signal
import struct
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_core.errors import SetupError
from arroyo_core.ids import TaskInfo
from arroyo_core.proto.state_pb2 import CheckpointMetadata
from arroyo_core.state import (
    CompactionPolicy,
    StorageProvider,
    TableManager,
    WarmCache,
    cache_sweep,
    default_warm_cache,
    files,
    global_table_config,
    merge_operator_metadata,
)
from arroyo_core.state import cache as state_cache
from arroyo_core.state.protocol import referenced_paths

from ...other_user import try_as_other_user
from .support.cache_entries import die_inside_put, entries_of, facts, flip_bit, put_and_get, shelf_of, table
from .support.recording import DictDriver
from .support.state_job import NO_COMPACTION, Job, batch_of, expiring_tables, rows_of

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


def usage(cache: WarmCache) -> cache_sweep.CacheUsage:
    return cache_sweep.measure_usage(cache.folder, now_s=time.time())


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
    assert entries_of(cache.folder) == []


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


@pytest.mark.parametrize("damage", ["change", "cut", "grow", "swap", "record"])
def test_an_entry_that_is_not_as_it_was_written_is_a_miss(cache, damage):
    shelf = shelf_of(cache)
    shelf.put(facts(1), table())
    shelf.put(facts(2), table(20))
    entry, other = entries_of(cache.folder)
    if damage == "change":
        entry.write_bytes(entry.read_bytes().replace(b"\x05", b"\x06"))
        # Even a change that puts the modification time on later is noticed by its nanoseconds.
        os.utime(entry, ns=(time.time_ns(), entry.stat().st_mtime_ns + 1))
    elif damage == "cut":
        os.truncate(entry, 100)
    elif damage == "grow":
        entry.write_bytes(entry.read_bytes() + bytes(100))
    elif damage == "swap":
        other.replace(entry)
    else:
        flip_bit(entry, entry.stat().st_size - 1)
    assert shelf.get(facts(1), 0, 99) is None


def test_a_flipped_bit_anywhere_is_a_miss_for_a_process_that_opens_the_entry(cache):
    shelf_of(cache).put(facts(1), table())
    [entry] = entries_of(cache.folder)
    whole = entry.read_bytes()
    for place in range(0, len(whole), 7):
        shelf_of(cache).put(facts(1), table())
        flip_bit(entry, place)
        assert shelf_of(WarmCache(cache.folder)).get(facts(1), 0, 99) is None
    shelf_of(cache).put(facts(1), table())
    assert shelf_of(WarmCache(cache.folder)).get(facts(1), 0, 99).num_rows == 10


def test_a_process_reads_an_entry_again_after_a_while(cache, monkeypatch):
    shelf = shelf_of(cache)
    shelf.put(facts(1), table())
    assert shelf.get(facts(1), 0, 99).num_rows == 10
    [entry] = entries_of(cache.folder)
    flip_bit(entry, entry.stat().st_size // 2)
    assert shelf.get(facts(1), 0, 99, is_checked=True) is None
    shelf.put(facts(1), table())
    assert shelf.get(facts(1), 0, 99).num_rows == 10
    flip_bit(entry, entry.stat().st_size // 2)
    monkeypatch.setattr(state_cache, "RECHECK_S", 0)
    assert shelf.get(facts(1), 0, 99) is None
    assert not entry.exists()


def test_bit_rot_in_the_cache_never_reaches_a_compacted_file(tmp_path, cache, monkeypatch):
    monkeypatch.undo()
    storage = StorageProvider(str(tmp_path / "store"))
    job = Job(storage, expiring_tables("t"), compaction=CompactionPolicy(fan_in=3), cache=cache)
    for epoch in range(1, 4):
        job.resume(1)
        job.managers[0].get_key_time_table("t").insert(batch_of([(key, 5, epoch) for key in range(100)]))
        job.take(None)
    rotten = entries_of(cache.folder)
    assert len(rotten) == 3
    for entry in rotten:
        value = int(entry.name.partition("-")[0])
        # A value of a row: the entry still opens, and nothing but its CRC can tell.
        flip_bit(entry, entry.read_bytes().index(struct.pack("<3q", value, value, value)))
    job.resume(1)
    job.take(None)
    [merged] = job.checkpoint.operators[0].table_checkpoint_metadata["t"].expiring_keyed_time.files
    assert merged.compaction_generation == 1
    expected = [(key, 5, epoch) for epoch in range(1, 4) for key in range(100)]
    job.cache = None
    job.resume(1)
    assert contents(job.managers[0]) == sorted(expected)


def test_a_record_of_another_secret_or_boot_is_a_miss(cache, monkeypatch):
    shelf = shelf_of(cache)
    shelf.put(facts(1), table())
    assert shelf.get(facts(1), 0, 99).num_rows == 10
    monkeypatch.setattr(cache, "_boot_id", b"later")
    assert shelf.get(facts(1), 0, 99) is None
    monkeypatch.undo()
    (cache.folder / "secret").write_bytes(bytes(32))
    assert shelf_of(WarmCache(cache.folder)).get(facts(1), 0, 99) is None


def test_small_tables_stay_in_memory_up_to_a_bound(tmp_path, monkeypatch):
    shelf = shelf_of(WarmCache(tmp_path / "cache"))
    monkeypatch.setattr(state_cache, "SMALL_TOTAL_BYTES", 2 * state_cache._held_bytes(table()))
    for number in (1, 2, 3):
        shelf.put(facts(number), table())
    for entry in entries_of(tmp_path):
        entry.unlink()
    assert [shelf.get(facts(number), 0, 9) is not None for number in (1, 2, 3)] == [False, True, True]


def test_the_entries_used_longest_ago_make_room(cache):
    shelf = shelf_of(cache)
    shelf.put(facts(1), table(1000))
    cache.max_bytes = 3 * usage(cache).size_bytes
    for number in (2, 3):
        shelf.put(facts(number), table(1000))
    assert shelf.get(facts(1), 0, 9) is not None
    shelf.put(facts(4), table(1000))
    assert [shelf.get(facts(number), 0, 9) is not None for number in (1, 2, 3, 4)] == [True, False, True, True]
    assert usage(cache).size_bytes <= cache.max_bytes


def test_a_mapped_entry_stays_readable_after_it_was_evicted(cache):
    shelf = shelf_of(cache)
    shelf.put(facts(1), table())
    mapped = shelf.get(facts(1), 0, 9)
    cache.max_bytes = 0
    shelf.put(facts(2), table())
    assert entries_of(cache.folder) == []
    assert mapped.column("_key_hash").to_pylist() == list(range(10))


def test_what_the_checkpoint_needs_no_more_goes_and_what_an_epoch_under_way_wrote_stays(cache):
    shelf, sibling = shelf_of(cache), shelf_of(cache, 1)
    for number in (1, 2):
        shelf.put(facts(number, epoch=3), table())
    shelf.put(facts(2, epoch=3), table(), (0, 7))
    shelf.put(facts(3, epoch=4), table())
    sibling.put(facts(4, epoch=3, writer=1), table())
    shelf.retain([facts(1, epoch=3)], epoch=3)
    assert [path.name[:4] for path in entries_of(shelf.folder)] == ["3-01", "4-03"]
    assert len(entries_of(sibling.folder)) == 1
    shelf.clear()
    assert not shelf.folder.exists()


def test_a_subtask_finds_what_another_one_of_its_operator_wrote(cache):
    shelf_of(cache, 1).put(facts(1, writer=1), table())
    assert shelf_of(cache, 0).get(facts(1, writer=1), 0, 9) is not None
    assert shelf_of(cache, 0, job_id="other").get(facts(1, writer=1), 0, 9) is None


def test_a_worker_killed_inside_put_leaves_nothing_for_long(cache, monkeypatch):
    process = get_context("spawn").Process(target=die_inside_put, args=(str(cache.folder),))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    [left] = cache.folder.rglob("unfinished-*")
    assert (usage(cache).entries, usage(cache).unfinished) == (0, 1)
    shelf_of(cache).retain([], epoch=1)
    assert left.exists(), "it may be in use"
    os.utime(left, (time.time(), time.time() - cache_sweep.UNFINISHED_S - 1))
    shelf_of(cache).retain([], epoch=1)
    assert not left.exists()


def test_what_nobody_comes_back_for_is_swept_with_its_folders(cache, monkeypatch):
    shelf_of(cache, job_id="old").put(facts(1), table())
    (cache.folder / "flat.record").write_bytes(b"of the layout before")
    (cache.folder / "unfinished-1").write_bytes(b"killed")
    hour_ago = time.time() - 3700
    for path in cache.folder.rglob("*"):
        if path.is_file() and path.name != "secret":
            os.utime(path, (hour_ago, hour_ago))
    monkeypatch.setattr(state_cache, "_LOOK_S", 0)
    cache = WarmCache(cache.folder)
    shelf_of(cache).put(facts(2), table())
    found = sorted(path.name for path in cache.folder.rglob("*") if path.is_file())
    assert [name[:4] for name in found] == ["1-02", "look", "secr"]
    assert len([path for path in cache.folder.iterdir() if path.is_dir()]) == 1


def cached(name: str, *, size: int = 10, used: float = 0.0, written: float = 0.0) -> cache_sweep.CachedFile:
    return cache_sweep.CachedFile(Path(name), size, used, written)


def test_removals_keep_within_every_limit():
    limits = cache_sweep.CacheLimits(max_bytes=25, max_entries=2, max_idle_s=100)
    files = [cached(f"{number}.arrow", used=1000.0 + number) for number in range(4)]
    idle, fresh, dead = cached("i.arrow", used=899), cached("unfinished-a", written=990), cached("unfinished-b")
    gone = cache_sweep.choose_removals([*files, idle, fresh, dead], limits, now_s=1000.0)
    assert {file.path.name for file in gone} == {"0.arrow", "1.arrow", "i.arrow", "unfinished-b"}
    assert cache_sweep.choose_removals(files[:2], limits, now_s=1000.0) == []


def test_many_epochs_keep_a_bounded_number_of_files(tmp_path, cache, monkeypatch):
    monkeypatch.undo()
    storage = StorageProvider("dict://", driver=DictDriver())
    tables = {**expiring_tables("t", generational=True), **global_table_config("g", "x")}
    job = Job(storage, tables, compaction=CompactionPolicy(), cache=cache)
    counts = []
    for epoch in range(1, 501):
        job.managers = job.open_at(job.checkpoint, 2)
        for index, part in enumerate(job.split(batch_of([(epoch % 50, 5, epoch), (epoch % 7, 5, epoch)]))):
            job.managers[index].get_last_key_value_table("t").upsert(part)
            job.managers[index].get_global_keyed_state("g").insert(index, epoch)
        reports = [manager.checkpoint(epoch, 1, None, write_metadata=False) for manager in job.managers]
        job.checkpoint = CheckpointMetadata(job_id="job", epoch=epoch, operators=[merge_operator_metadata(reports)])
        counts.append(sum(path.is_file() for path in cache.folder.rglob("*")))
    live = referenced_paths(job.checkpoint)
    assert max(counts[250:]) <= max(counts[:250]), "what a longer run leaves"
    assert max(counts) < 60
    assert counts[-1] <= 2 * len(live) + 10


def test_several_processes_share_a_cache(tmp_path):
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert all(pool.map(put_and_get, [str(tmp_path / "cache")] * 3, range(3)))


def test_a_cache_that_others_can_write_is_refused(tmp_path):
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(SetupError, match="must be a folder of this user, closed to others"):
        WarmCache(folder)


@pytest.mark.parametrize("buffered_bytes", [0, 1_000_000])
def test_whatever_the_umask_says_all_of_a_cache_is_for_its_user_alone(tmp_path, monkeypatch, buffered_bytes):
    monkeypatch.setattr(state_cache, "BUFFERED_BYTES", buffered_bytes)
    former = os.umask(0)
    try:
        shelf_of(WarmCache(tmp_path / "caches" / "cache")).put(facts(1), table())
    finally:
        os.umask(former)
    modes = {path: path.stat().st_mode & 0o777 for path in (tmp_path / "caches").rglob("*")}
    assert any(path.suffix == ".arrow" for path in modes)
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}


LINK = "import os, sys; os.symlink(sys.argv[1], sys.argv[2])"


def test_a_link_that_another_user_made_first_gets_no_state(tmp_path, monkeypatch):
    """In a folder for temporary files, where a user without a home has its cache, anybody may be first."""
    shared, elsewhere = tmp_path / "shared", tmp_path / "elsewhere"
    for folder, mode in ((shared, 0o1777), (elsewhere, 0o700), *((parent, 0o755) for parent in tmp_path.parents[:2])):
        folder.mkdir(exist_ok=True)
        folder.chmod(mode)
    tmp_path.chmod(0o755)
    for variable in ("ARROYO_STATE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    place = shared / f"arroyo-state-cache-{os.getuid()}"
    assert try_as_other_user(LINK, elsewhere, place) == ""
    assert place.is_symlink()
    assert default_warm_cache() is None
    assert not list(elsewhere.iterdir())


def test_the_cache_can_be_turned_off_or_moved(tmp_path, monkeypatch):
    monkeypatch.setenv("ARROYO_STATE_CACHE", "off")
    assert default_warm_cache() is None
    monkeypatch.setenv("ARROYO_STATE_CACHE", str(tmp_path / "there"))
    monkeypatch.setenv("ARROYO_STATE_CACHE_BYTES", "1000")
    cache = default_warm_cache()
    assert (cache.folder, cache.max_bytes) == (tmp_path / "there", 1000)


@pytest.mark.parametrize("buffered_bytes", [0, 1000])
def test_a_cache_that_cannot_be_written_only_misses(cache, monkeypatch, buffered_bytes):
    monkeypatch.setattr(state_cache, "BUFFERED_BYTES", buffered_bytes)
    monkeypatch.setattr(pa.ipc, "new_stream", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    shelf_of(cache).put(facts(1), table())
    assert shelf_of(cache).get(facts(1), 0, 9) is None
    assert usage(cache).unfinished == 0


def test_large_tables_are_kept_as_small_ones_are(cache, monkeypatch):
    monkeypatch.setattr(state_cache, "BUFFERED_BYTES", 0)
    shelf_of(cache).put(facts(1), table(1000))
    assert shelf_of(WarmCache(cache.folder)).get(facts(1), 0, 9).num_rows == 1000


def test_tiny_tables_count_for_what_they_take_in_memory(tmp_path, monkeypatch):
    """Their rows are next to nothing: of a limit for rows alone, thousands would stay."""
    monkeypatch.setattr(state_cache, "SMALL_TOTAL_BYTES", 1024**2)
    cache = WarmCache(tmp_path / "cache")
    for number in range(200):
        cache.remember(str(number), table())
    assert table().nbytes * 200 < 1024**2
    assert len(cache._small) < 50
