"""Files that end by time: by that of the folder, when the watermark has passed it, and by the clock."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arroyo_filesystem.folder_times import FolderTimes
from arroyo_testing import OperatorHarness
from arroyo_testing.machine import Life

from arroyo_core.api import ArroyoSchema, Watermark
from arroyo_core.errors import ConfigError

from .support.crashing_sink import ROOT, Epoch, crash_points, new_disk, run_epochs, visible, visible_numbers

SCHEMA = pa.schema({"n": pa.int64(), "at": pa.timestamp("us", "UTC"), "other": pa.timestamp("us", "UTC")})
STREAM = ArroyoSchema(SCHEMA, "at")
HOUR = 3_600_000_000
LARGE = 2**20
BY_HOUR: dict[str, Any] = {"partition_by": ["hour(at)"], "min_file_size": LARGE, "close_at_watermark": True}


def rows(*numbers: int) -> pa.RecordBatch:
    """Rows of which each is one minute later than the one before it."""
    times = pa.array([number * 60_000_000 for number in numbers], SCHEMA.field("at").type)
    return pa.record_batch([pa.array(numbers, pa.int64()), times, times], schema=SCHEMA)


def make(files: Any, folder: str, **config: Any) -> OperatorHarness:
    return OperatorHarness(lambda: files.make_sink(folder, **config), inputs=[STREAM])


def epoch(harness: Any, *batches: pa.RecordBatch, until: int | None = None) -> None:
    """Rows, then a watermark of so many minutes, and the commit."""
    for batch in batches:
        harness.process(batch)
    if until is not None:
        harness.watermark(Watermark.event_time(until * 60_000_000))
    harness.commit(harness.checkpoint())


def shown(folder: str) -> list[list[int]]:
    """The numbers of each visible file, by their first."""
    fs, root = fsspec.core.url_to_fs(folder)
    found = []
    for path in fs.find(root) if fs.exists(root) else []:
        if not path.removeprefix(root).lstrip("/").startswith("_"):
            with fs.open(path) as stream:
                found.append(pq.ParquetFile(stream).read()["n"].to_pylist())
    return sorted(found)


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_folder_is_shown_when_the_watermark_has_passed_it(files: Any, folder: str, goes_on: bool) -> None:
    with make(files, folder, **BY_HOUR) as harness:
        epoch(harness, rows(1, 61), until=30)
        harness.go_on() if goes_on else harness.restore()
        epoch(harness, rows(2, 62), until=59)
        assert shown(folder) == []
        harness.go_on() if goes_on else harness.restore()
        epoch(harness, rows(59, 63), until=60)
        assert shown(folder) == [[1, 2, 59]]
        harness.go_on() if goes_on else harness.restore()
        epoch(harness, until=180)
        assert shown(folder) == [[1, 2, 59], [61, 62, 63]]


def test_late_rows_of_a_folder_are_shown_with_their_epoch_also_after_a_restart(files: Any, folder: str) -> None:
    with make(files, folder, **BY_HOUR) as harness:
        epoch(harness, rows(1), until=60)
        harness.restore()
        epoch(harness, rows(2), rows(61))
        assert shown(folder) == [[1], [2]]
        harness.restore()
        epoch(harness, rows(3))
        assert shown(folder) == [[1], [2], [3]]


def test_without_a_least_size_files_end_by_the_watermark_or_where_they_are_large(files: Any, folder: str) -> None:
    config = {"partition_by": ["day(at)"], "close_at_watermark": True, "format": "parquet"}
    with make(files, folder, **config) as harness:
        for number in range(4):
            epoch(harness, rows(number))
            harness.restore()
        assert shown(folder) == []
        epoch(harness, until=24 * 60)
        assert shown(folder) == [[0, 1, 2, 3]]


def test_a_folder_that_is_not_over_is_shown_when_it_is_held_for_long_enough(files: Any, folder: str) -> None:
    with make(files, folder, **BY_HOUR, max_hold=60_000_000) as harness:
        epoch(harness, rows(1), until=5)
        harness.restore()
        harness.clock.advance(60)
        epoch(harness, until=6)
        assert shown(folder) == [[1]]


def test_files_end_by_time_alone(files: Any, folder: str) -> None:
    with make(files, folder, max_hold=60_000_000) as harness:
        for number in range(6):
            epoch(harness, rows(number))
            harness.restore()
            harness.clock.advance(20)
        epoch(harness)
    assert shown(folder) == [[0, 1, 2, 3]]


def test_files_that_end_by_time_end_where_they_are_large(files: Any, folder: str) -> None:
    with make(files, folder, max_hold=HOUR, max_file_size=20_000) as harness:
        for number in range(10):
            epoch(harness, rows(*range(number * 1000, number * 1000 + 1000)))
            harness.restore()
        assert 1 <= len(shown(folder)) < 10
        harness.end_of_data()
        epoch(harness)
    assert sorted(number for some in shown(folder) for number in some) == list(range(10_000))


@pytest.mark.parametrize(
    ("unit", "value", "end"),
    [
        ("year", "2026", datetime(2027, 1, 1, tzinfo=UTC)),
        ("month", "2026-12", datetime(2027, 1, 1, tzinfo=UTC)),
        ("month", "2024-02", datetime(2024, 3, 1, tzinfo=UTC)),
        ("day", "2024-02-29", datetime(2024, 3, 1, tzinfo=UTC)),
        ("hour", "2026-12-31T23", datetime(2027, 1, 1, tzinfo=UTC)),
    ],
)
def test_the_end_of_a_folder_is_that_of_its_time(unit: str, value: str, end: datetime) -> None:
    times = FolderTimes.of(STREAM, [f"{unit}(at)"])
    end_us = round(end.timestamp()) * 1_000_000
    assert times.is_over(f"at_{unit}={value}", end_us)
    assert times.is_over(f"k=a/at_{unit}={value}/z=1", end_us)
    assert not times.is_over(f"at_{unit}={value}", end_us - 1)


@pytest.mark.parametrize("value", ["__HIVE_DEFAULT_PARTITION__", "9999", "x"])
def test_a_folder_without_an_end_is_never_over(value: str) -> None:
    assert not FolderTimes.of(STREAM, ["year(at)"]).is_over(f"at_year={value}", 2**62)


def test_of_several_parts_the_first_that_ends_counts() -> None:
    times = FolderTimes.of(STREAM, ["day(at)", "hour(at)", "year(other)"])
    assert times.is_over("at_day=1970-01-01/at_hour=1970-01-01T00/other_year=2026", HOUR)


@pytest.mark.parametrize(
    ("stream", "partition_by", "text"),
    [
        (STREAM, [], "no part of the event time 'at'"),
        (STREAM, ["n", "hour(other)"], "no part of the event time 'at'"),
        (ArroyoSchema(SCHEMA), ["hour(at)"], "no event time"),
    ],
)
def test_a_watermark_that_says_nothing_of_folders_is_refused(
    files: Any, tmp_path: Any, stream: ArroyoSchema, partition_by: list[str], text: str
) -> None:
    sink = files.make_sink(tmp_path, partition_by=partition_by, close_at_watermark=True)
    with pytest.raises(ConfigError, match=text) as caught:
        sink.inner.output_schema([stream])
    assert caught.value.field == "close_at_watermark"


EPOCHS: list[Epoch] = [
    ([rows(1, 2), rows(61)], 30 * 60_000_000),
    ([rows(3, 62)], 60 * 60_000_000),
    ([rows(4), rows(63, 121)], 61 * 60_000_000),
    ([rows(122)], 125 * 60_000_000),
]


@pytest.mark.parametrize("protocol", ["crash-object", "crash-folder"])
def test_a_crash_at_any_change_shows_each_row_once(files: Any, protocol: str) -> None:
    def run(life: Life) -> tuple[Any, list[int]]:
        disk, counts = new_disk(), []

        def look(number: int) -> None:
            numbers = visible_numbers(disk)
            assert len(set(numbers)) == len(numbers)
            counts.append(len(numbers))

        run_epochs(lambda: files.make_sink(f"{protocol}://{ROOT}/out", **BY_HOUR), STREAM, EPOCHS, disk, life, look)
        return disk, counts

    whole = Life()
    disk, counts = run(whole)
    # The first hour with the second epoch, a late row with the third, the second hour with the last but for its end.
    assert counts == [0, 3, 4, 9]
    truth = [1, 2, 3, 4, 61, 62, 63, 121, 122]
    points = crash_points(whole)
    assert len(points) > 60
    for point in points:
        disk, found = run(Life(point))
        assert visible_numbers(disk) == truth, str(point)
        assert found == counts, str(point)
        assert not [name for name in disk.files if "/_arroyo_staging/" in name], str(point)
        assert all(len({row["at"].hour for row in some}) == 1 for some in visible(disk).values())
