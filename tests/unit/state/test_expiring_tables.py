"""Expiring tables: what the model-based tests do not reach: kinds of columns and keys, retention's edge, mistakes."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest
from arroyo_testing.steps import count_steps

from arroyo_core.api.schema import ArroyoSchema
from arroyo_core.api.signals import Watermark
from arroyo_core.errors import ConfigError, StateError
from arroyo_core.state import (
    DeleteKey,
    DeleteTimeKey,
    DeleteValue,
    StorageProvider,
    global_table_config,
    timestamp_table_config,
)
from arroyo_core.state.files import event_times_us

from .support.state_job import RETENTION_US, Job, batch_of, expiring_tables, rows_of


@pytest.fixture
def storage(tmp_path):
    return StorageProvider(str(tmp_path))


def job_with(storage, schema, *, generational=False, parallelism=1):
    job = Job(storage, expiring_tables("t", generational=generational, schema=schema))
    job.resume(parallelism)
    return job


def reopened(job, parallelism=1):
    job.take(None)
    job.resume(parallelism)
    return job.managers


def all_rows(managers):
    return sorted(
        row
        for manager in managers
        for _, batches in manager.get_expiring_time_key_table("t").all_batches_for_watermark()
        for batch in batches
        for row in rows_of(batch)
    )


UNKEYED = ArroyoSchema(batch_of([]).schema, "ts", None)
ONE_GROUP = ArroyoSchema(batch_of([]).schema, "ts", ())


def test_rows_without_keys_are_kept_by_someone_at_any_parallelism(storage):
    job = job_with(storage, UNKEYED, parallelism=3)
    expected = []
    for parallelism in (3, 2, 5, 1):
        for index, manager in enumerate(job.managers):
            rows = [(index, 5 + parallelism, parallelism)]
            manager.get_expiring_time_key_table("t").insert_batch(batch_of(rows))
            expected.extend(rows)
        managers = reopened(job, parallelism)
        assert all_rows(managers) == sorted(expected)


def test_a_time_in_the_middle_expires_for_good_without_keys_too(storage):
    job = job_with(storage, UNKEYED, parallelism=2)
    for manager in job.managers:
        manager.get_expiring_time_key_table("t").insert_batch(batch_of([(1, 5, 1), (1, 6, 1), (1, 7, 1)]))
    for manager in reopened(job, 3):
        manager.get_expiring_time_key_table("t").expire_timestamp(6)
    assert {row[1] for row in all_rows(reopened(job, 2))} == {5, 7}


def test_one_global_group_lives_in_subtask_0(storage):
    job = job_with(storage, ONE_GROUP, generational=True, parallelism=2)
    for value in (1, 2):
        job.managers[0].get_last_key_value_table("t").upsert(batch_of([(7, 5, value)]))
        reopened(job, 2)
    view = job.managers[0].get_last_key_value_table("t")
    assert rows_of(view.get_all()) == [(7, 5, 2)]
    found, rows = view.get(batch_of([(0, 0, 0)]))
    assert (found.tolist(), rows_of(rows)) == ([True], [(7, 5, 2)])
    assert job.managers[1].get_last_key_value_table("t").get_all().num_rows == 0


@pytest.mark.parametrize("rows_of_a_time", [1, 3, 1000], ids=lambda rows: f"{rows} rows of each time")
def test_what_expires_are_the_rows_of_each_time_wherever_they_are(storage, rows_of_a_time):
    job = job_with(storage, UNKEYED)
    view = job.managers[0].get_expiring_time_key_table("t")

    def add(epoch: int) -> list[tuple[int, int, int]]:
        rows = [(key, time, epoch) for time in (30, 10, 20) for key in range(rows_of_a_time)]
        view.insert_batch(batch_of(rows))
        return rows

    rows = add(1)
    (manager,) = reopened(job)
    view = manager.get_expiring_time_key_table("t")
    rows += add(2)
    view.flush()
    rows += add(3)
    expired = view.expire_before(30)
    assert [time for time, _ in expired] == [10, 20]
    for time, batches in expired:
        found = [row for batch in batches for row in rows_of(batch)]
        assert sorted(found) == sorted(row for row in rows if row[1] == time)
    assert all_rows(reopened(job)) == sorted(row for row in rows if row[1] == 30)


def test_rows_are_taken_in_the_order_of_time_and_of_one_time_in_the_order_they_came(storage):
    view = job_with(storage, UNKEYED).managers[0].get_expiring_time_key_table("t")
    rows = [(key, time, part) for part in range(10) for key, time in enumerate((30, 10, 20, 10))]
    for part in range(10):
        view.insert_batch(batch_of([row for row in rows if row[2] == part]))
        assert view.take_before(10) is None
        if part == 4:
            view.flush()
    assert rows_of(view.take_before(30)) == sorted((row for row in rows if row[1] < 30), key=lambda row: row[1])
    assert view.times() == [30]


def test_expiring_times_costs_no_step_for_each_of_them(tmp_path):
    def steps(times: int) -> int:
        job = job_with(StorageProvider(str(tmp_path / str(times))), UNKEYED)
        view = job.managers[0].get_expiring_time_key_table("t")
        batch = batch_of([(1, 7 * time % times, 0) for time in range(times)])

        def live() -> None:
            view.insert_batch(batch)
            job.take(None)
            view.insert_batch(batch)
            assert view.take_before(times // 4).num_rows == times // 2
            assert view.count_parts(np.arange(times)).sum() == 2 * (times - times // 4)
            assert len(view.expire_timestamps(np.arange(times // 4, times, 2))) == 3
            assert view.get_min_time() == times // 4 + 1
            assert view.take_before(times).num_rows == times - times // 4

        return count_steps(live)

    assert steps(20_000) < steps(200) + 200


def test_a_late_row_after_its_time_expired_is_kept(storage):
    job = job_with(storage, UNKEYED)
    view = job.managers[0].get_expiring_time_key_table("t")
    view.insert_batch(batch_of([(1, 5, 1)]))
    job.take(None)
    view.expire_before(10)
    view.insert_batch(batch_of([(1, 6, 2)]))
    job.take(None)
    job.take(None)
    job.resume(1)
    assert all_rows(job.managers) == [(1, 6, 2)]


def test_retention_keeps_the_row_exactly_at_the_cutoff(storage):
    job = job_with(storage, UNKEYED)
    view = job.managers[0].get_expiring_time_key_table("t")
    view.insert_batch(batch_of([(1, 89, 1), (1, 90, 2)]))
    job.take(90 + RETENTION_US)
    job.resume(1)
    assert all_rows(job.managers) == [(1, 90, 2)]


def test_a_row_that_expires_in_its_own_epoch_is_never_written(storage):
    job = job_with(storage, UNKEYED)
    view = job.managers[0].get_expiring_time_key_table("t")
    view.insert(5, batch_of([(1, 5, 1)]))
    assert [rows_of(batch) for batch in view.expire_timestamp(5)] == [[(1, 5, 1)]]
    assert job.take(None).operators[0].bytes == 0


KEYS = [
    (pa.string(), ["a", "", None, "long enough to need several words of the hash"]),
    (pa.float64(), [0.0, float("nan"), None, -1.5]),
    (pa.binary(), [b"", b"\x00", None, b"x" * 9]),
    (pa.bool_(), [True, False, None]),
    (pa.date32(), [0, 1, None]),
    (pa.decimal128(20, 2), ["1.00", "-1.00", None]),
    (pa.struct([("a", pa.int32()), ("b", pa.string())]), [{"a": 1, "b": "x"}, {"a": 1, "b": None}, None]),
]


@pytest.mark.parametrize(("kind", "values"), KEYS, ids=[str(kind)[:12] for kind, _ in KEYS])
def test_keys_of_every_type_are_found(storage, kind, values):
    schema = ArroyoSchema(pa.schema([("k", kind), ("j", pa.int8()), ("v", pa.int64())]), None, ("k", "j"))
    keys = pa.array(values, pa.string()).cast(kind) if pa.types.is_decimal(kind) else pa.array(values, kind)
    ones = pa.array(np.ones(len(values), dtype=np.int8))
    batch = pa.RecordBatch.from_arrays([keys, ones, pa.array(range(len(values)), pa.int64())], schema=schema.schema)
    job = job_with(storage, schema, generational=True)
    job.managers[0].get_last_key_value_table("t").upsert(batch)
    [manager] = reopened(job)
    view = manager.get_last_key_value_table("t")
    found, rows = view.get(batch.select(["k", "j"]))
    assert found.all()
    assert rows.column("v").to_pylist() == list(range(len(values)))
    view.delete(batch.slice(0, 1))
    [manager] = reopened(job)
    assert manager.get_last_key_value_table("t").get(batch)[0].tolist() == [False] + [True] * (len(values) - 1)


def test_a_value_with_nested_columns_can_be_deleted(storage):
    schema = ArroyoSchema(pa.schema([("k", pa.int64()), ("l", pa.list_(pa.int64()))]), None, ("k",))

    def batch(keys, lists):
        return pa.RecordBatch.from_arrays([pa.array(keys), pa.array(lists, pa.list_(pa.int64()))], schema=schema.schema)

    job = job_with(storage, schema)
    view = job.managers[0].get_key_time_table("t")
    view.insert(batch([1, 1, 1], [[1], [2], None]))
    view.delete(DeleteValue(), batch([1, 1], [[2], None]))
    [manager] = reopened(job)
    assert manager.get_key_time_table("t").get_all().column("l").to_pylist() == [[1]]


def test_times_before_1970_round_down_whatever_their_unit():
    nanos = pa.table({"ts": pa.array([-1, -1000, 1999], pa.timestamp("ns"))})
    assert event_times_us(nanos, "ts").to_pylist() == [-1, -1, 1]
    seconds = pa.table({"ts": pa.array([-1, 2], pa.timestamp("s", "UTC"))})
    assert event_times_us(seconds, "ts").to_pylist() == [-1_000_000, 2_000_000]


def test_a_row_of_another_time_than_it_says_is_refused(storage):
    view = job_with(storage, UNKEYED).managers[0].get_expiring_time_key_table("t")
    with pytest.raises(StateError, match="a row of time 5 was inserted as 6"):
        view.insert(6, batch_of([(1, 5, 1)]))


def test_a_row_without_event_time_is_refused(storage):
    view = job_with(storage, UNKEYED).managers[0].get_expiring_time_key_table("t")
    batch = batch_of([(1, 5, 1)]).set_column(1, "ts", pa.array([None], pa.timestamp("us", "UTC")))
    with pytest.raises(StateError, match="event-time column 'ts' has 1 nulls"):
        view.insert_batch(batch)


def test_a_batch_that_does_not_fit_is_refused_with_the_column(storage):
    job = job_with(storage, UNKEYED)
    view = job.managers[0].get_expiring_time_key_table("t")
    with pytest.raises(StateError, match="needs column 'v'; the batch has k, ts"):
        view.insert_batch(batch_of([(1, 5, 1)]).select(["k", "ts"]))
    with pytest.raises(StateError, match="column 'k' is not of type int64"):
        view.insert_batch(batch_of([(1, 5, 1)]).set_column(0, "k", pa.array(["x"])))
    with pytest.raises(StateError, match="has no keys: its rows cannot be deleted by key"):
        view.delete(DeleteKey(), batch_of([(1, 5, 1)]))


def test_views_that_a_table_cannot_have_are_refused(storage):
    job = Job(
        storage,
        {
            **expiring_tables("rows"),
            **expiring_tables("last", generational=True),
            **expiring_tables("unkeyed", schema=UNKEYED),
            **global_table_config("global", "x"),
        },
    )
    job.resume(1)
    manager = job.managers[0]
    for call, message in [
        (lambda: manager.get_last_key_value_table("rows"), "generational=True"),
        (lambda: manager.get_key_time_table("last"), "holds the last row of each key"),
        (lambda: manager.get_key_time_table("unkeyed"), "has no key columns"),
        (
            lambda: manager.get_key_time_table("global"),
            "as GLOBAL_KEY_VALUE, not as EXPIRING_KEYED_TIME_TABLE",
        ),
        (lambda: manager.get_global_keyed_state("rows"), "not as GLOBAL_KEY_VALUE"),
    ]:
        with pytest.raises(StateError, match=message):
            call()
    view = manager.get_key_time_table("rows")
    assert manager.get_key_time_table("rows") is view
    with pytest.raises(StateError, match="is in use as a KeyTimeView, it cannot also be a ExpiringTimeKeyView"):
        manager.get_expiring_time_key_table("rows")


def test_a_checkpoint_with_other_columns_is_refused(storage):
    job = job_with(storage, UNKEYED)
    job.take(None)
    job.tables = expiring_tables("t", schema=ArroyoSchema(pa.schema([("ts", pa.timestamp("us"))]), "ts", None))
    with pytest.raises(StateError, match=r"has columns .* in the checkpoint, and is declared with"):
        job.resume(1)


def test_a_config_that_cannot_work_is_refused():
    with pytest.raises(ConfigError, match="retention must not be negative"):
        timestamp_table_config("t", "x", timedelta(seconds=-1), False, UNKEYED)
    with pytest.raises(ConfigError, match="columns _key_hash are added by state files"):
        timestamp_table_config(
            "t", "x", timedelta(0), False, ArroyoSchema(pa.schema([("_key_hash", pa.uint64())]), None, None)
        )
    with pytest.raises(ConfigError, match="table name 'a/b'"):
        global_table_config("a/b", "x")


def test_expired_state_leaves_the_store_with_its_checkpoints(storage):
    job = job_with(storage, UNKEYED)
    for epoch in range(1, 6):
        view = job.managers[0].get_expiring_time_key_table("t", Watermark(epoch * 100))
        view.insert_batch(batch_of([(1, epoch * 100, epoch)]))
        job.take(epoch * 100)
        job.resume(1)
    job.clean(1)
    assert len([file for file in storage.list("job") if file.path.endswith(".parquet")]) == 1


def test_a_delete_of_one_time_leaves_other_times_of_the_key(storage):
    job = Job(storage, expiring_tables("t"))
    job.resume(1)
    view = job.managers[0].get_key_time_table("t")
    view.insert(batch_of([(1, 5, 1), (1, 6, 2), (2, 5, 3)]))
    job.take(None)
    view.delete(DeleteTimeKey(), batch_of([(1, 5, 0)]))
    assert rows_of(view.get_batch(batch_of([(1, 0, 0), (2, 0, 0)]))) == [(1, 6, 2), (2, 5, 3)]
