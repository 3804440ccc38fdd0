"""A source reads each row of a table once: killed and rescaled in the middle of a snapshot, and of what follows it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from arroyo_iceberg.source import IcebergSource
from arroyo_iceberg.source_settings import check_source
from arroyo_testing import SourceHarness
from pyiceberg.table import Table

from arroyo_core.errors import ConfigError, OperatorError

from .support.sources import NAME, SECOND, resolved
from .support.tables import load_table, make_table


def rows(first: int, count: int) -> pa.Table:
    return pa.table(
        {"id": pa.array(range(first, first + count), pa.int64()), "name": pa.array([f"n{first}"] * count, pa.string())}
    )


#: Of the test that runs.
_HARNESSES: list[SourceHarness] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while _HARNESSES:
        _HARNESSES.pop().close()


def harness_of(folder: Path, **config: Any) -> SourceHarness:
    settings = check_source(resolved(folder, **config))
    _HARNESSES.append(SourceHarness(lambda: IcebergSource(settings)))
    return _HARNESSES[-1]


def ids(table: pa.Table) -> list[int]:
    return sorted(table.column("id").to_pylist())


def watched(harness: SourceHarness, **options: Any) -> list[int]:
    """One epoch that ends when all subtasks wait for new snapshots."""
    return ids(harness.run(ends_at_wait=True, **options).table)


def snapshot_ids(table: Table) -> list[int]:
    return [each.snapshot_id for each in table.refresh().metadata.snapshots]


@pytest.mark.parametrize("seed", range(4))
def test_kills_and_rescales_in_a_snapshot_and_in_what_follows_lose_and_repeat_nothing(tmp_path, seed):
    chance = random.Random(seed)
    make_table(tmp_path, NAME, rows(0, 40))
    count = 40
    for _ in range(4):
        make_table(tmp_path, NAME, rows(count, 7))
        count += 7
    harness = harness_of(tmp_path, watch=SECOND, batch_rows=3)
    found: Counter[int] = Counter()
    for _ in range(40):
        parallelism, is_lost = chance.randint(1, 4), chance.random() < 0.3
        run = harness.run(rows=chance.randint(1, 9), parallelism=parallelism, ends_at_wait=True, is_lost=is_lost)
        if not is_lost:
            found.update(run.table.column("id").to_pylist())
        if chance.random() < 0.3:
            make_table(tmp_path, NAME, rows(count, 5))
            count += 5
    for _ in range(count):
        found.update(harness.run(parallelism=2, ends_at_wait=True).table.column("id").to_pylist())
        if sum(found.values()) >= count:
            break
    assert found == Counter(range(count))


def test_without_watch_it_ends_with_the_snapshot_of_its_first_start(tmp_path):
    make_table(tmp_path, NAME, rows(0, 10))
    harness = harness_of(tmp_path, batch_rows=2)
    first = harness.run(rows=4)
    make_table(tmp_path, NAME, rows(10, 10))
    rest = harness.run_all()
    assert sorted([*ids(first.table), *ids(rest)]) == list(range(10))


def test_a_table_without_rows_ends_at_once_or_is_waited_for(tmp_path):
    make_table(tmp_path, NAME, rows(0, 0))
    assert harness_of(tmp_path).run().is_final
    harness = harness_of(tmp_path, watch=SECOND)
    assert watched(harness) == []
    make_table(tmp_path, NAME, rows(0, 3))
    assert watched(harness, parallelism=2) == [0, 1, 2]


def test_latest_reads_only_what_comes_after_the_first_start(tmp_path):
    make_table(tmp_path, NAME, rows(0, 5))
    harness = harness_of(tmp_path, start="latest", watch=SECOND)
    make_table(tmp_path, NAME, rows(5, 2))
    assert watched(harness) == [5, 6]
    make_table(tmp_path, NAME, rows(7, 2))
    assert watched(harness, parallelism=3) == [7, 8]


def test_a_snapshot_is_read_whole_and_then_what_followed_it(tmp_path):
    make_table(tmp_path, NAME, rows(0, 5))
    make_table(tmp_path, NAME, rows(5, 5))
    table = make_table(tmp_path, NAME, rows(10, 5))
    second = snapshot_ids(table)[1]
    harness = harness_of(tmp_path, start={"snapshot": str(second)}, watch=SECOND)
    assert watched(harness) == list(range(15))
    # With watch left away at last, it ends.
    assert harness_of(tmp_path, start={"snapshot": str(second)}).run_all().num_rows == 15


def test_a_time_begins_with_the_first_snapshot_of_then_or_later(tmp_path):
    make_table(tmp_path, NAME, rows(0, 5))
    table = make_table(tmp_path, NAME, rows(5, 5))
    second = table.refresh().metadata.snapshots[1]
    time = pa.scalar(second.timestamp_ms, pa.timestamp("ms", "UTC")).as_py().isoformat()
    assert ids(harness_of(tmp_path, start={"timestamp": time}).run_all()) == list(range(5, 10))
    assert ids(harness_of(tmp_path, start={"timestamp": "2001-01-01"}).run_all()) == list(range(10))


def test_a_time_before_what_has_expired_is_refused(tmp_path):
    for first in (0, 5, 10):
        table = make_table(tmp_path, NAME, rows(first, 5))
    expire(table, snapshot_ids(table)[:2])
    with pytest.raises(ConfigError, match="have expired, so what came since that time is not known"):
        resolved(tmp_path, start={"timestamp": "2001-01-01"})


def expire(table: Table, ids: list[int]) -> None:
    table.refresh().maintenance.expire_snapshots().by_ids(ids).commit()


def test_expired_snapshots_that_were_not_read_are_an_error(tmp_path):
    table = make_table(tmp_path, NAME, rows(0, 5))
    harness = harness_of(tmp_path, watch=SECOND)
    assert watched(harness) == list(range(5))
    make_table(tmp_path, NAME, rows(5, 5))
    table = make_table(tmp_path, NAME, rows(10, 5))
    expire(table, snapshot_ids(table)[:2])
    with pytest.raises(OperatorError, match=r"what came after it is not known any more.*have expired") as caught:
        watched(harness)
    assert caught.value.cause_retry == "no_retry"


def test_an_expired_snapshot_that_was_read_is_not_missed(tmp_path):
    table = make_table(tmp_path, NAME, rows(0, 5))
    harness = harness_of(tmp_path, watch=SECOND)
    assert watched(harness) == list(range(5))
    make_table(tmp_path, NAME, rows(5, 5))
    expire(table, snapshot_ids(table)[:1])
    assert watched(harness) == list(range(5, 10))


def test_a_snapshot_that_expires_while_it_is_read_is_an_error(tmp_path):
    make_table(tmp_path, NAME, rows(0, 5))
    harness = harness_of(tmp_path, watch=SECOND, batch_rows=1)
    harness.run(rows=2)
    table = make_table(tmp_path, NAME, rows(5, 5))
    expire(table, snapshot_ids(table)[:1])
    with pytest.raises(OperatorError, match="which the source is reading, has expired"):
        watched(harness)


def change(folder: Path, kind: str) -> None:
    table = load_table(folder, NAME)
    if kind == "overwrite":
        table.overwrite(rows(100, 2))
    else:
        table.delete("id < 5")


@pytest.mark.parametrize("kind", ["overwrite", "delete"])
def test_snapshots_that_change_rows_fail_or_are_skipped(tmp_path, kind):
    make_table(tmp_path, NAME, rows(0, 5))
    failing = harness_of(tmp_path, watch=SECOND)
    skipping = harness_of(tmp_path, watch=SECOND, on_change="skip")
    assert watched(failing) == watched(skipping) == list(range(5))
    change(tmp_path, kind)
    with pytest.raises(OperatorError, match="takes rows away or changes them") as caught:
        watched(failing)
    assert caught.value.cause_retry == "no_retry"
    run = skipping.run(ends_at_wait=True)
    assert run.counters["skipped_snapshots"] >= 1
    assert any("skipped snapshot" in warning for warning in run.warnings)
    make_table(tmp_path, NAME, rows(7, 2))
    assert [*ids(run.table), *watched(skipping)][-2:] == [7, 8]


def test_a_branch_is_read_apart_from_others(tmp_path):
    table = make_table(tmp_path, NAME, rows(0, 3))
    table.manage_snapshots().create_branch(snapshot_ids(table)[0], "audit").commit()
    table.refresh().append(rows(10, 3), branch="audit")
    make_table(tmp_path, NAME, rows(20, 3))
    harness = harness_of(tmp_path, branch="audit", watch=SECOND)
    assert watched(harness) == [0, 1, 2, 10, 11, 12]
    load_table(tmp_path, NAME).append(rows(30, 1), branch="audit")
    assert watched(harness) == [30]
    with pytest.raises(ConfigError, match="has no branch 'autid'") as caught:
        resolved(tmp_path, branch="autid")
    assert list(caught.value.allowed) == ["audit", "main"]


def test_a_branch_that_was_rolled_back_is_an_error(tmp_path):
    table = make_table(tmp_path, NAME, rows(0, 3))
    first = snapshot_ids(table)[0]
    make_table(tmp_path, NAME, rows(3, 3))
    harness = harness_of(tmp_path, watch=SECOND)
    assert watched(harness) == list(range(6))
    load_table(tmp_path, NAME).manage_snapshots().rollback_to_snapshot(first).commit()
    make_table(tmp_path, NAME, rows(6, 3))
    with pytest.raises(OperatorError, match="not in the history of the branch"):
        watched(harness)


def test_a_table_that_was_made_again_is_an_error(tmp_path):
    table = make_table(tmp_path, NAME, rows(0, 3))
    harness = harness_of(tmp_path, watch=SECOND)
    watched(harness)
    table.catalog.drop_table(NAME)
    make_table(tmp_path, NAME, rows(0, 3))
    with pytest.raises(OperatorError, match="dropped and made again"):
        watched(harness)


def test_columns_that_are_added_are_null_in_older_files_and_only_columns_that_are_wanted_are_read(tmp_path):
    make_table(tmp_path, NAME, rows(0, 2))
    with load_table(tmp_path, NAME).update_schema() as update:
        update.union_by_name(pa.schema([("total", pa.float64())]))
    more = rows(2, 2).append_column("total", pa.array([1.5, 2.5]))
    load_table(tmp_path, NAME).append(more)
    found = harness_of(tmp_path, columns=["total", "id"]).run_all()
    assert found.schema.names == ["total", "id"]
    assert sorted(found.to_pylist(), key=lambda row: row["id"]) == [
        {"total": None, "id": 0},
        {"total": None, "id": 1},
        {"total": 1.5, "id": 2},
        {"total": 2.5, "id": 3},
    ]


def test_files_are_dealt_to_all_subtasks(tmp_path):
    for first in range(0, 40, 5):
        make_table(tmp_path, NAME, rows(first, 5))
    run = harness_of(tmp_path).run(parallelism=4, rows=10)
    assert len(run.batches) >= 4
    assert run.table.num_rows == 40


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"start": "earliest"}, "unknown start"),
        ({"start": {"snapshot": 3051729675574597004}}, "write the id in quotes"),
        ({"start": {"snapshot": "12"}}, "has no snapshot 12"),
        ({"start": {"timestamp": "noon"}}, "is not a time"),
        ({"start": {"version": 3}}, "start is snapshot"),
        ({"columns": ["nme"]}, "no column 'nme'"),
        ({"event_time_field": "name"}, "not a timestamp"),
        ({"table": "rows"}, "with its namespace"),
        ({"table": "shop.other"}, "there is no table shop.other"),
    ],
)
def test_mistakes_are_found_when_it_is_planned(tmp_path, config: Mapping[str, Any], message):
    make_table(tmp_path, NAME, rows(0, 1))
    with pytest.raises(ConfigError, match=message):
        resolved(tmp_path, **config)
