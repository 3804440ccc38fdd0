"""Rows that are held over epochs, so that files are not small."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from arroyo_filesystem.staging import encode_files
from arroyo_testing import OperatorHarness, ParallelHarness

from arroyo_core.api import ArroyoSchema
from arroyo_core.errors import ConfigError, OperatorError

SCHEMA = pa.schema({"n": pa.int64(), "k": pa.string()})
MIB = 2**20


def rows(*numbers: int, k: str = "a") -> pa.RecordBatch:
    return pa.record_batch([pa.array(numbers, pa.int64()), pa.array([k] * len(numbers))], schema=SCHEMA)


def make(files: Any, path: object, **config: Any) -> OperatorHarness:
    return files.sink(path, SCHEMA, **{"min_file_size": MIB, **config})


def epoch(harness: Any, *batches: pa.RecordBatch) -> None:
    for batch in batches:
        harness.process(batch)
    harness.commit(harness.checkpoint())


def die(operators: Any) -> None:
    """What the end of a process does with its open files: they are as long as they are."""
    for operator in operators:
        for open_files in (operator._held, operator._files):
            for opened in open_files._open.values() if open_files is not None else ():
                opened.stream.stream.close()


def data(folder: str) -> list[str]:
    fs, root = fsspec.core.url_to_fs(folder)
    found = [path.removeprefix(root).lstrip("/") for path in fs.find(root)] if fs.exists(root) else []
    return sorted(name for name in found if not name.startswith("_"))


def held(folder: str) -> list[str]:
    fs, root = fsspec.core.url_to_fs(folder)
    return sorted(path for path in fs.find(root) if "/held/" in path) if fs.exists(root) else []


def numbers(folder: str) -> list[int]:
    fs, root = fsspec.core.url_to_fs(folder)
    found: list[int] = []
    for name in data(folder):
        with fs.open(f"{root}/{name}") as stream:
            found += pq.ParquetFile(stream).read()["n"].to_pylist()
    return found


@pytest.mark.parametrize("goes_on", [False, True])
def test_rows_of_many_epochs_become_one_file(files: Any, folder: str, goes_on: bool) -> None:
    with make(files, folder) as harness:
        for number in range(5):
            epoch(harness, rows(number))
            assert data(folder) == []
            assert len(held(folder)) == number + 1
            harness.go_on() if goes_on else harness.restore()
        harness.end_of_data()
        epoch(harness)
    assert len(data(folder)) == 1
    assert numbers(folder) == [0, 1, 2, 3, 4]
    assert held(folder) == []


def test_rows_are_shown_when_they_are_held_for_long_enough(files: Any, folder: str) -> None:
    with make(files, folder, max_hold=60_000_000) as harness:
        epoch(harness, rows(1), rows(2, k="b"))
        harness.restore()
        harness.clock.advance(30)
        epoch(harness, rows(3))
        harness.restore()
        assert data(folder) == []
        harness.clock.advance(30)
        epoch(harness)
    assert sorted(numbers(folder)) == [1, 2, 3]


def test_files_have_about_the_least_size_and_not_much_less(files: Any, tmp_path: Path) -> None:
    draw = random.Random(1)
    with files.sink(tmp_path, SCHEMA, min_file_size=200_000) as harness:
        for _ in range(60):
            epoch(harness, rows(*(draw.getrandbits(60) for _ in range(2500))))
            harness.restore()
        harness.end_of_data()
        epoch(harness)
    sizes = [path.stat().st_size for path in sorted(tmp_path.glob("part-*"))]
    # The first is made before anything is known of such files, the last of what is left.
    assert len(sizes) > 4
    assert min(sizes[1:-1]) >= 200_000
    assert max(sizes) < 400_000
    assert len(numbers(str(tmp_path))) == 60 * 2500


def test_enough_rows_of_one_epoch_are_not_held(files: Any, tmp_path: Path) -> None:
    with files.sink(tmp_path, SCHEMA, min_file_size=1000, max_file_size=4000, format="json") as harness:
        for number in range(40):
            harness.process(rows(*range(number * 100, number * 100 + 100)))
        harness.commit(harness.checkpoint())
        assert all(path.stat().st_size >= 1000 for path in tmp_path.glob("part-*"))
        assert len(list(tmp_path.glob("part-*"))) > 5
        harness.restore()
        harness.end_of_data()
        epoch(harness)
    found = ds.dataset(tmp_path, format="json").to_table()["n"].to_pylist()
    assert sorted(found) == list(range(4000))


def test_partitions_are_held_each_for_itself(files: Any, tmp_path: Path) -> None:
    with make(files, tmp_path, partition_by=["k"], max_open_files=1) as harness:
        epoch(harness, rows(1), rows(2, k="b"), rows(3), rows(4, k="b"))
        harness.restore()
        epoch(harness, rows(5), rows(6, k="b"))
        harness.restore()
        harness.end_of_data()
        epoch(harness)
    found = ds.dataset(tmp_path, partitioning="hive").to_table().sort_by("n")
    assert found.to_pydict() == {"n": [1, 2, 3, 4, 5, 6], "k": ["a", "b", "a", "b", "a", "b"]}
    assert held(str(tmp_path)) == []


def test_partitions_of_an_epoch_are_counted_and_not_those_that_were_held_before(files: Any, tmp_path: Path) -> None:
    with make(files, tmp_path, partition_by=["k"], max_partitions=2) as harness:
        for first in "ace":
            epoch(harness, rows(1, k=first), rows(2, k=chr(ord(first) + 1)))
            harness.restore()
        harness.process(rows(1, k="g"))
        harness.process(rows(1, k="h"))
        with pytest.raises(OperatorError, match="more than 2 folders in one epoch"):
            harness.process(rows(1, k="i"))
        die([harness.operator])
    with make(files, tmp_path / "other", partition_by=["k"], max_partitions=2) as harness:
        for first in "ace":
            epoch(harness, rows(1, k=first), rows(2, k=chr(ord(first) + 1)))
            harness.restore()
        harness.end_of_data()
        epoch(harness)
    assert len(list((tmp_path / "other").glob("k=*/part-*"))) == 6


def test_what_was_held_is_shown_where_nothing_is_held_any_more(files: Any, folder: str) -> None:
    config: dict[str, Any] = {"min_file_size": MIB}
    with OperatorHarness(lambda: files.make_sink(folder, **config), inputs=[ArroyoSchema(SCHEMA)]) as harness:
        epoch(harness, rows(1))
        config.clear()
        harness.restore()
        epoch(harness, rows(2))
    assert sorted(numbers(folder)) == [1, 2]
    assert held(folder) == []


def test_parts_with_other_columns_are_not_mixed(files: Any, tmp_path: Path) -> None:
    with make(files, tmp_path) as harness:
        epoch(harness, rows(1))
        harness._inputs = [ArroyoSchema(SCHEMA.append(pa.field("x", pa.int64())))]
        harness.restore()
        harness.end_of_data()
        with pytest.raises(OperatorError, match="run the pipeline as it was, stop it"):
            harness.checkpoint()


def test_a_part_that_is_gone_is_named(files: Any, tmp_path: Path) -> None:
    with make(files, tmp_path) as harness:
        epoch(harness, rows(1, 2))
        for path in held(str(tmp_path)):
            Path(path).unlink()
        harness.restore()
        harness.end_of_data()
        with pytest.raises(OperatorError, match="2 rows were held in"):
            harness.checkpoint()


def test_a_late_commit_takes_nothing_that_a_newer_driver_holds(files: Any, folder: str) -> None:
    with ParallelHarness(
        lambda: files.make_sink(folder, min_file_size=MIB), inputs=[ArroyoSchema(SCHEMA)], parallelism=2
    ) as harness:
        harness.process(rows(1))
        staged = harness.checkpoint()
        token = harness.last_token
        harness.commit(staged)
        harness.take_over()
        for number in (2, 3):
            harness.process(rows(number))
            harness.commit(harness.checkpoint())
            harness.restore()
        before = held(folder)
        harness.commit(staged, token=token)
        assert held(folder) == before
        harness.end_of_data()
        harness.commit(harness.checkpoint())
    assert sorted(numbers(folder)) == [1, 2, 3]


@pytest.mark.parametrize("seed", range(8))
def test_every_row_is_shown_once_whatever_happens(files: Any, folder: str, seed: int) -> None:
    """Crashes before the checkpoint, after it and within the commit, and changes of the parallelism."""
    draw = random.Random(seed)
    config = {"min_file_size": 3000, "max_hold": 50_000_000, "partition_by": ["k"], "max_open_files": 2}
    given: list[int] = []
    with ParallelHarness(
        lambda: files.make_sink(folder, **config), inputs=[ArroyoSchema(SCHEMA)], parallelism=2
    ) as harness:
        number = 0
        for _ in range(25):
            fed = []
            for _ in range(draw.randrange(4)):
                some = list(range(number, number + draw.randrange(1, 60)))
                number = some[-1] + 1
                fed += some
                harness.process(rows(*some, k=draw.choice("abc")))
            harness.clock.advance(draw.randrange(20))
            fate = draw.random()
            if fate < 0.15:
                die(harness.operators)
                harness.crash(draw.randrange(1, 4))
                continue
            if fate < 0.3:
                harness.checkpoint(is_lost=True)
                harness.crash(draw.randrange(1, 4))
                continue
            staged = harness.checkpoint()
            given += fed
            if fate < 0.5:
                with contextlib.suppress(OperatorError), failing_deletes(folder, draw.randrange(1, 4)):
                    harness.commit(staged)
            harness.commit(staged)
            assert len(set(numbers(folder))) == len(numbers(folder))
            harness.restore(draw.choice([1, 2, 2, 3]))
        harness.end_of_data()
        staged = harness.checkpoint()
        harness.commit(staged)
    assert sorted(numbers(folder)) == sorted(given)
    assert held(folder) == []


@contextlib.contextmanager
def failing_deletes(folder: str, at: int) -> Any:
    """The process dies at a delete, before or after it."""
    fs, _ = fsspec.core.url_to_fs(folder)
    delete, calls = type(fs).rm_file, [0]

    def die(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if calls[0] == at:
            if at % 2:
                delete(*args, **kwargs)
            raise RuntimeError("died")
        return delete(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(fs), "rm_file", die)
        yield


def test_a_sink_that_holds_nothing_has_commit_data_as_ever(files: Any, tmp_path: Path) -> None:
    with files.sink(tmp_path, SCHEMA) as harness:
        assert harness.checkpoint()["files"] == {0: encode_files([])} == {0: b"[]"}


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"min_file_size": 2 * MIB, "max_file_size": MIB}, "min_file_size"),
        ({"max_hold": 0}, "max_hold"),
        ({"max_file_rows": -1}, "max_file_rows"),
        ({"file_prefix": "a/b"}, "file_prefix"),
        ({"sort_by": ["n", "-n"]}, "sort_by[1]"),
    ],
)
def test_a_mistake_names_its_field(files: Any, tmp_path: Path, config: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        files.make_sink(tmp_path, **config)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"sort_by": ["x"]}, "sort_by[0]"),
        ({"sort_by": ["k"], "partition_by": ["k"]}, "sort_by[0]"),
        ({"sort_by": ["tags"]}, "sort_by[0]"),
        ({"partition_by": ["hour(n)"]}, "partition_by[0]"),
        ({"partition_by": ["hour(x)"]}, "partition_by[0]"),
        ({"partition_by": ["hour(d)"]}, "partition_by[0]"),
        ({"partition_by": ["k", "day(at)", "day(at)"]}, "partition_by[2]"),
        ({"partition_by": ["year(at)"]}, "partition_by[0]"),
    ],
)
def test_a_mistake_in_a_column_names_its_field(files: Any, tmp_path: Path, config: dict[str, Any], field: str) -> None:
    schema = SCHEMA.append(pa.field("at", pa.timestamp("us", "UTC"))).append(pa.field("d", pa.date32()))
    schema = schema.append(pa.field("at_year", pa.int64())).append(pa.field("tags", pa.list_(pa.string())))
    with pytest.raises(ConfigError) as caught:
        files.make_sink(tmp_path, **config).inner.output_schema([ArroyoSchema(schema)])
    assert caught.value.field == field


def test_folders_are_named_by_the_time_in_a_column_which_stays(files: Any, tmp_path: Path) -> None:
    hour = 3_600_000_000
    table = pa.table(
        {
            "at": pa.array([0, hour - 1, hour, 25 * hour, None], pa.timestamp("us", "Europe/Amsterdam")),
            "n": [1, 2, 3, 4, 5],
        }
    )
    files.write(tmp_path, table, partition_by=["day(at)", "hour(at)"], file_prefix="orders")
    found = {str(path.parent.relative_to(tmp_path)): pq.ParquetFile(path).read() for path in tmp_path.rglob("orders-*")}
    none = "__HIVE_DEFAULT_PARTITION__"
    assert {name: rows["n"].to_pylist() for name, rows in found.items()} == {
        "at_day=1970-01-01/at_hour=1970-01-01T00": [1, 2],
        "at_day=1970-01-01/at_hour=1970-01-01T01": [3],
        "at_day=1970-01-02/at_hour=1970-01-02T01": [4],
        f"at_day={none}/at_hour={none}": [5],
    }
    assert all(rows.column_names == ["at", "n"] for rows in found.values())


@pytest.mark.parametrize("kind", ["parquet", "json"])
def test_rows_of_each_file_are_sorted(files: Any, tmp_path: Path, kind: str) -> None:
    draw = random.Random(2)
    table = pa.table({"n": [draw.randrange(50) for _ in range(400)], "i": list(range(400))})
    with files.sink(tmp_path, table.schema, format=kind, sort_by=["-n", "i"], max_file_size=2000) as harness:
        for batch in table.to_batches(max_chunksize=40):
            harness.process(batch)
        harness.commit(harness.checkpoint())
    seen = []
    for path in tmp_path.glob("part-*"):
        found = [(-row["n"], row["i"]) for row in ds.dataset(path, format=kind).to_table().to_pylist()]
        assert found == sorted(found)
        seen += [i for _, i in found]
    assert sorted(seen) == list(range(400))
    assert len(list(tmp_path.glob("part-*"))) > 1


def test_a_file_has_so_many_rows_and_no_more(files: Any, tmp_path: Path) -> None:
    table = pa.table({"n": list(range(250))})
    files.write(tmp_path, table, max_file_rows=100)
    assert sorted(pq.ParquetFile(path).metadata.num_rows for path in tmp_path.glob("part-*")) == [50, 100, 100]
