"""Sources read each row of output that is being compacted once, whichever folder they are given."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from arroyo_filesystem.compaction import Compaction
from arroyo_filesystem.listing import list_files
from arroyo_filesystem.location import Location, open_location
from arroyo_testing.machine import Crash
from fsspec.implementations.local import LocalFileSystem

from arroyo_core.api.policy import PlanningPolicy, in_force
from arroyo_core.errors import ConfigError, ExternalError, OperatorError

from .support.compacted import compaction, rows, write

#: What a compaction dies at: its files have their names, and then also the record is complete.
STEPS = ["put_whole", "_delete"]


@pytest.fixture
def compact_partly(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, str], None]:
    def die(*args: Any, **kwargs: Any) -> None:
        raise Crash("before")

    def run(folder: Path, step: str) -> None:
        with monkeypatch.context() as patch:
            if step == "_delete":
                patch.setattr(Compaction, step, lambda self, paths: die() if paths else None)
            else:
                patch.setattr(f"arroyo_filesystem.compaction.{step}", die)
            with pytest.raises(Crash):
                compaction(folder).run()

    return run


def write_countries(files: Any, folder: Path) -> None:
    write(files, folder, *(rows(number, k="ab"[number % 2]) for number in range(6)), partition_by=["k"])


def numbers(files: Any, path: object) -> list[int]:
    return sorted(files.read(path)["n"].to_pylist())


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", ["out", "run=1", "year=1/run=1"])
def test_a_sink_in_a_folder_with_any_name_is_read_whole_and_by_partition(
    files: Any, tmp_path: Path, compact_partly: Any, name: str, step: str
) -> None:
    out = tmp_path / name
    write_countries(files, out)
    compact_partly(out, step)
    assert len(list(out.rglob("*.parquet"))) == 8
    assert numbers(files, out) == list(range(6))
    assert numbers(files, out / "k=a") == [0, 2, 4]
    assert numbers(files, out / "k=b" / "part-*.parquet") == [1, 3, 5]


@pytest.mark.parametrize("step", STEPS)
def test_sinks_below_the_path_are_each_read_by_their_records(
    files: Any, tmp_path: Path, compact_partly: Any, step: str
) -> None:
    for name in ("one", "two", "run=3"):
        write_countries(files, tmp_path / "x" / name)
    for name in ("two", "run=3"):
        compact_partly(tmp_path / "x" / name, step)
    assert numbers(files, tmp_path) == sorted([*range(6)] * 3)
    assert numbers(files, tmp_path / "x" / "*o*" / "k=a" / "*.parquet") == [0, 0, 2, 2, 4, 4]
    assert numbers(files, tmp_path / "x" / "**" / "*.parquet") == sorted([*range(6)] * 3)
    assert numbers(files, tmp_path / "x" / "r*" / "k=*" / "*.parquet") == [*range(6)]


def test_a_sink_below_the_path_that_is_compacted_for_the_first_time_is_listed_again(
    files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look is over when a round has deleted what it has found."""
    out = tmp_path / "x" / "out"
    write_countries(files, out)
    find, looks = LocalFileSystem.find, []

    def find_then_compact(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = find(self, *args, **kwargs)
        looks.append(found)
        if len(looks) == 1:
            assert compaction(out).run().merged == 6
        return found

    monkeypatch.setattr(LocalFileSystem, "find", find_then_compact)
    assert numbers(files, tmp_path) == list(range(6))


def test_an_untrusted_plan_sees_what_it_may_read(files: Any, tmp_path: Path, compact_partly: Any) -> None:
    out = tmp_path / "run=1"
    write_countries(files, out)
    compact_partly(out, "put_whole")

    def listed(path: Path, root: Path) -> int:
        with in_force(PlanningPolicy(is_untrusted=True, roots=(root,))):
            return len(list_files(open_location(str(path), {}, field="path"), "parquet"))

    assert listed(tmp_path, tmp_path) == listed(out, out) == listed(out, tmp_path) == 6
    assert listed(out / "k=a", tmp_path) == 3
    # The records are above what may be read.
    with pytest.raises(ExternalError, match=r"k=a/part.* replaces files that are still there"):
        listed(out / "k=a", out / "k=a")


class ClosedAbove(LocalFileSystem):
    """Storage whose policy allows to list one folder only."""

    def __init__(self, folder: Path) -> None:
        super().__init__(skip_instance_cache=True)
        self._folder = str(folder)

    def ls(self, path: Any, **kwargs: Any) -> Any:
        if not str(path).startswith(self._folder):
            raise PermissionError(f"Access Denied: {path}")
        return super().ls(path, **kwargs)


def test_a_partition_is_read_where_the_folders_above_may_not_be_listed(files: Any, tmp_path: Path) -> None:
    write_countries(files, tmp_path)
    folder = tmp_path / "k=a"
    location = Location(ClosedAbove(folder), str(folder), str(folder))
    assert len(list_files(location, "parquet")) == 3
    compaction(tmp_path).run()
    assert len(list_files(location, "parquet")) == 1
    closed = Location(ClosedAbove(tmp_path / "k=b"), str(folder), str(folder))
    with pytest.raises(ConfigError, match=r"cannot read .*k=a.*Access Denied"):
        list_files(closed, "parquet")


def test_a_partition_that_may_hold_rows_twice_is_refused_until_the_last_replaced_file_is_gone(
    files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two rounds; in each, after every delete, nobody can tell without the records what counts."""
    folder = tmp_path / "k=a"
    location = Location(ClosedAbove(folder), str(folder), str(folder))
    remove, seen = LocalFileSystem.rm_file, []

    def look_and_remove(self: Any, path: str) -> None:
        with pytest.raises(ExternalError, match="is done, or read the sink's folder"):
            list_files(location, "parquet")
        seen.append(path)
        remove(self, path)

    with files.sink(tmp_path, rows(1).schema, partition_by=["k"]) as harness:
        for number in range(6):
            harness.process(rows(number))
            harness.commit(harness.checkpoint())
            harness.restore()
            if number % 3 == 2:
                with monkeypatch.context() as patch:
                    patch.setattr(LocalFileSystem, "rm_file", look_and_remove)
                    compaction(tmp_path).run()
                assert len(list_files(location, "parquet")) == 1
    # Of the second round, what the first one has made is a file of it.
    assert len(seen) == 7


def test_a_folder_that_is_watched_may_have_files_with_names_like_compacted_ones(files: Any, tmp_path: Path) -> None:
    write_countries(files, tmp_path / "out")
    harness = files.source(tmp_path / "out", watch=1_000_000, format="parquet", schema={"n": "int64"})
    with closing(harness):
        assert sorted(harness.run(ends_at_wait=True).table["n"].to_pylist()) == list(range(6))
        foreign = tmp_path / "out" / "k=a" / "mine.compacted.1.parquet"
        foreign.write_bytes(next((tmp_path / "out" / "k=a").iterdir()).read_bytes())
        harness.clock.advance(2)
        harness.run(ends_at_wait=True)
        assert len(harness.run(ends_at_wait=True).table) == 1
        foreign.unlink()
        compaction(tmp_path / "out").run()
        harness.clock.advance(2)
        with pytest.raises(OperatorError, match="cannot be watched"):
            harness.run(ends_at_wait=True)
