"""Small files that are committed become large ones: exactly, through crashes, and beside jobs and readers."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from arroyo_filesystem import compaction as compaction_module
from arroyo_filesystem.compacted import MARK, Records
from arroyo_filesystem.compaction import Compacted, Compaction
from arroyo_filesystem.listing import list_files
from arroyo_filesystem.location import open_location
from arroyo_filesystem.staging import StagedFile
from arroyo_testing import OperatorHarness
from arroyo_testing.crash_filesystem import running
from arroyo_testing.machine import Crash, Disk, Life

from arroyo_core.cli.main import main
from arroyo_core.errors import DataError, OperatorError, StateError

from .support.compacted import SCHEMA, STREAM, compaction, rows, shown, write
from .support.crashing_sink import ROOT, Epoch, crash_points, new_disk, run_epochs, visible_numbers


def manifest_files(read: Callable[[str], dict[str, bytes]]) -> list[str]:
    """What docs/read-output.md tells readers to do: records first, then manifests."""
    records = [json.loads(data) for name, data in read("_compacted").items() if name.endswith(".json")]
    manifests = [json.loads(data) for name, data in read("_committed").items() if name.endswith(".json")]
    merges = [merge for record in records for merge in record["merges"]]
    found = {file["path"] for manifest in manifests if manifest["complete"] for file in manifest["files"]}
    found |= {merge["path"] for merge in merges}
    return sorted(found - {path for merge in merges for path in merge["replaces"]})


def local(folder: Path) -> Callable[[str], dict[str, bytes]]:
    return lambda name: {path.name: path.read_bytes() for path in (folder / name).glob("*")}


@pytest.mark.parametrize("kind", ["parquet", "json", "arrow"])
def test_small_files_of_a_folder_become_one_with_rows_in_their_order(files: Any, tmp_path: Path, kind: str) -> None:
    epochs = [rows(number, number + 100, k="ab"[number % 2]) for number in range(6)]
    write(files, tmp_path, *epochs, format=kind, partition_by=["k"])
    assert compaction(tmp_path).run() == Compacted(6, 2, sum(path.stat().st_size for path in tmp_path.glob("k=*/*")))
    assert len(shown(tmp_path)) == 2
    for k, first in (("a", 0), ("b", 1)):
        (path,) = (tmp_path / f"k={k}").iterdir()
        expected = [n for number in range(first, 6, 2) for n in (number, number + 100)]
        assert ds.dataset(path, format=kind).to_table()["n"].to_pylist() == expected
        assert path.name.startswith(f"part-{first + 1:05}-000-0-")
    assert manifest_files(local(tmp_path)) == shown(tmp_path)
    assert sorted(files.read(tmp_path)["n"].to_pylist()) == sorted([*range(6), *range(100, 106)])
    assert not (tmp_path / "_arroyo_staging").exists()
    assert compaction(tmp_path).run() == Compacted()


def test_what_is_compacted_grows_with_what_comes_later(files: Any, tmp_path: Path) -> None:
    with files.sink(tmp_path, SCHEMA) as harness:
        for number in range(6):
            harness.process(rows(number))
            harness.commit(harness.checkpoint())
            harness.restore()
            if number % 2:
                assert compaction(tmp_path).run().files == 1
    (name,) = shown(tmp_path)
    # However often it is compacted, it has one mark.
    assert re.fullmatch(r"part-00001-000-0-[0-9a-f]{8}\.compacted\.[0-9a-f]{8}\.parquet", name)
    assert files.read(tmp_path)["n"].to_pylist() == [0, 1, 2, 3, 4, 5]


def test_files_of_different_writers_are_not_mixed(files: Any, tmp_path: Path) -> None:
    for incarnation in ("one", "two"):
        with OperatorHarness(lambda: files.make_sink(tmp_path), inputs=[STREAM], incarnation=incarnation) as harness:
            for number in range(3):
                harness.process(rows(number))
                harness.commit(harness.checkpoint())
                harness.restore()
    assert compaction(tmp_path).run().files == 2


def test_large_young_and_foreign_files_are_left_alone(files: Any, tmp_path: Path) -> None:
    write(files, tmp_path, rows(1), rows(*range(1000)), rows(2), rows(3))
    (tmp_path / "part-of-others.parquet").write_bytes(b"no parquet")
    before = shown(tmp_path)
    large = max(tmp_path.glob("part-0*"), key=lambda path: path.stat().st_size)
    now_us = time.time_ns() // 1000
    location = open_location(str(tmp_path), {}, field="path")
    size = large.stat().st_size * 2
    young = Compaction(location, {}, file_bytes=size, older_than_us=3_600_000_000, now_us=now_us)
    assert young.run() == Compacted()
    assert shown(tmp_path) == before
    for path in tmp_path.glob("part-0*"):
        os.utime(path, (1, 1))
    done = Compaction(location, {}, file_bytes=size, older_than_us=3_600_000_000, now_us=now_us).run()
    # The one before the large file has no neighbour.
    assert (done.merged, done.files) == (2, 1)
    assert large.exists()
    assert len(shown(tmp_path)) == 4


def test_files_with_other_columns_are_not_mixed(files: Any, tmp_path: Path) -> None:
    other = pa.record_batch({"n": pa.array([7, 8], pa.int64())})
    write(files, tmp_path, rows(1), rows(2))
    write(files, tmp_path, other, other)
    assert compaction(tmp_path).run().files == 2
    assert sorted(len(ds.dataset(path).schema) for path in tmp_path.glob("part-*")) == [1, 2]


def test_formats_that_cannot_be_joined_are_left_alone(files: Any, tmp_path: Path) -> None:
    write(files, tmp_path, rows(1), rows(2), format="csv")
    assert compaction(tmp_path).run() == Compacted()
    assert len(shown(tmp_path)) == 2


def test_rounds_follow_until_nothing_small_is_left(files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction_module, "ROUND_BYTES", 1)
    write(files, tmp_path, *(rows(number, k="abc"[number % 3]) for number in range(9)), partition_by=["k"])
    assert compaction(tmp_path).run().files == 3
    assert Records.read(open_location(str(tmp_path), {}, field="path")).last == 3


def test_a_commit_that_is_repeated_finds_its_rows_in_another_file(files: Any, folder: str) -> None:
    with files.sink(folder, SCHEMA) as harness:
        staged = []
        for number in range(3):
            harness.process(rows(number))
            staged.append((harness.checkpoint(), harness.last_token))
            harness.commit(staged[-1][0])
            harness.restore()
        assert compaction(folder).run().merged == 3
        for data, token in staged:
            harness.commit(data, token=token)
    assert files.read(folder)["n"].to_pylist() == [0, 1, 2]


def test_a_changed_file_is_not_taken_for_what_was_written(files: Any, tmp_path: Path) -> None:
    write(files, tmp_path, rows(1), rows(2))
    _, second = sorted(tmp_path.glob("part-*"))
    pq.write_table(pa.table({"n": [1, 2, 3], "k": ["a"] * 3}, schema=SCHEMA), second)
    with pytest.raises(DataError, match="4 rows, and their manifests say 2"):
        compaction(tmp_path).run()
    assert len(shown(tmp_path)) == 2


@pytest.mark.parametrize("place", ["_committed", "_compacted"])
def test_lists_that_lead_out_of_the_folder_are_refused(files: Any, tmp_path: Path, place: str) -> None:
    out = tmp_path / "out"
    victim = tmp_path / "victim.parquet"
    victim.write_bytes(b"of others")
    write(files, out, rows(1), rows(2))
    if place == "_compacted":
        compaction(out).run()
    for path in (out / place).iterdir():
        content = path.read_text()
        name = json.loads(content)
        path.write_text(content.replace((name.get("files") or name.get("merges"))[0]["path"], "../victim.parquet"))
    with pytest.raises(StateError, match="not a plain relative path"):
        compaction(out).run()
    assert victim.read_bytes() == b"of others"


def test_a_link_in_the_place_of_a_file_is_not_followed(files: Any, tmp_path: Path) -> None:
    write(files, tmp_path / "out", rows(1), rows(2))
    first = min((tmp_path / "out").glob("part-*"))
    first.rename(tmp_path / "elsewhere.parquet")
    first.symlink_to(tmp_path / "elsewhere.parquet")
    assert compaction(tmp_path / "out").run() == Compacted()
    assert first.is_symlink()
    assert (tmp_path / "elsewhere.parquet").exists()


def test_a_folder_that_is_compacted_cannot_be_watched(files: Any, tmp_path: Path) -> None:
    write(files, tmp_path, rows(1), rows(2))
    harness = files.source(tmp_path, watch=1_000_000, format="parquet", schema={"n": "int64", "k": "string"})
    with closing(harness):
        assert sorted(harness.run(ends_at_wait=True).table["n"].to_pylist()) == [1, 2]
        compaction(tmp_path).run()
        harness.clock.advance(2)
        with pytest.raises(OperatorError, match="cannot be watched"):
            harness.run(ends_at_wait=True)


def test_two_compactions_at_once_replace_each_file_once(
    files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one is done with its plan when the first one publishes; then it plans again."""
    write(files, tmp_path, *(rows(number) for number in range(4)))
    publish, other = Compaction._publish, []

    def lose(self: Compaction, record: Any) -> bool:
        if not other:
            other.append(None)
            assert compaction(tmp_path).run().merged == 4
        return publish(self, record)

    monkeypatch.setattr(Compaction, "_publish", lose)
    assert compaction(tmp_path).run() == Compacted()
    assert files.read(tmp_path)["n"].to_pylist() == [0, 1, 2, 3]
    assert len(shown(tmp_path)) == 1
    assert not (tmp_path / "_arroyo_staging").exists()


@pytest.mark.parametrize("is_moved", [False, True])
def test_a_round_that_is_decided_while_another_one_is_finished_is_finished_too(
    files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_moved: bool
) -> None:
    """Of two that finish the round of a dead one, the first goes on and dies: before its files are moved, or after."""
    monkeypatch.setattr(compaction_module, "ROUND_BYTES", 1)
    write(files, tmp_path, *(rows(number, k="abc"[number % 3]) for number in range(9)), partition_by=["k"])
    finish, move, finished = Compaction._finish, compaction_module.move_files, []

    def die(self: Compaction, record: Any) -> None:
        if is_moved and record.number == 2:
            location = self._location
            move(location, [StagedFile(each.staged, each.path, each.rows, each.bytes) for each in record.merges])
        raise Crash("before")

    def let_the_other_decide(self: Compaction, record: Any) -> None:
        finish(self, record)
        finished.append(record.number)
        if record.number == 1:
            monkeypatch.setattr(Compaction, "_finish", die)
            with pytest.raises(Crash):
                compaction(tmp_path).run()
            monkeypatch.setattr(Compaction, "_finish", let_the_other_decide)

    monkeypatch.setattr(Compaction, "_finish", die)
    with pytest.raises(Crash):
        compaction(tmp_path).run()
    monkeypatch.setattr(Compaction, "_finish", let_the_other_decide)
    compaction(tmp_path).run()
    assert finished == [1, 2, 3]
    assert sorted(files.read(tmp_path)["n"].to_pylist()) == list(range(9))
    assert manifest_files(local(tmp_path)) == shown(tmp_path)
    assert len(shown(tmp_path)) == 3


def test_the_command_says_what_it_does(files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    write(files, out, rows(1), rows(2), rows(3))
    assert main(["files", "compact", str(out), "--older-than", "0s", "--dry-run"]) == 0
    assert "3 files would become 1" in capsys.readouterr().out
    assert len(shown(out)) == 3
    assert main(["files", "compact", str(out)]) == 0
    assert capsys.readouterr().out == "nothing to compact\n"
    assert main(["files", "compact", str(out), "--older-than", "0s", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["merged"], told["files"], told["is_dry_run"]) == (3, 1, False)
    assert main(["files", "compact", str(tmp_path / "none")]) != 0
    assert "there is no" in capsys.readouterr().err


EPOCHS: list[Epoch] = [([rows(number, k="a"), rows(number + 100, k="b")], 0) for number in range(3)]
TRUTH = sorted([*range(3), *range(100, 103)])


def read_by_manifests(disk: Disk) -> list[int]:
    """As `manifest_files`; a record that is cut off, which no store does to an object, is not there yet."""

    def read(folder: str) -> dict[str, bytes]:
        prefix = f"{ROOT}/out/{folder}/"
        found = {name.removeprefix(prefix): data for name, data in disk.files.items() if name.startswith(prefix)}
        return {name: data for name, data in found.items() if data.endswith(b"\n")}

    chosen = {f"{ROOT}/out/{path}" for path in manifest_files(read)}
    assert chosen <= set(disk.files)
    return visible_numbers(Disk({name: disk.files[name] for name in chosen}))


@pytest.mark.parametrize("protocol", ["crash-object", "crash-folder"])
def test_a_crash_at_any_change_loses_and_doubles_nothing(files: Any, protocol: str) -> None:
    url = f"{protocol}://{ROOT}/out"
    written = new_disk()
    run_epochs(lambda: files.make_sink(url, partition_by=["k"]), STREAM, EPOCHS, written, Life())
    assert visible_numbers(written) == TRUTH

    def compact(disk: Disk, life: Life) -> None:
        with running(disk, life):
            compaction(url).run()

    def check(disk: Disk, where: str) -> None:
        assert read_by_manifests(disk) == TRUTH, where
        with running(disk, Life()):
            found = list_files(open_location(url, {}, field="path"), "parquet")
            chosen = {file.path for file in found}
            assert visible_numbers(Disk({name: disk.files[name] for name in chosen})) == TRUTH, where
        # Who lists files by himself finds some rows twice for a moment, and all of them always.
        assert set(visible_numbers(disk)) == set(TRUTH), where

    whole, disk = Life(), written.copy()
    compact(disk, whole)
    assert sum(MARK in name and "/_" not in name for name in disk.files) == 2
    check(disk, "whole")
    points = crash_points(whole)
    assert len(points) > 20
    for point in points:
        disk = written.copy()
        with pytest.raises(Crash):
            compact(disk, Life(point))
        check(disk, f"{point}: {whole.calls[point.call - 1]}")
        compact(disk, Life())
        check(disk, f"after {point}")
        assert visible_numbers(disk) == TRUTH, str(point)
        assert len([name for name in disk.files if "/k=" in name]) == 2, str(point)
        staged = [name for name in disk.files if "/_arroyo_staging/" in name]
        assert not staged, f"{point}: {staged}"


def test_a_crash_at_any_change_of_local_files_loses_and_doubles_nothing(
    files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dies at links, renames and deletes, which is where others see something change."""
    calls, dies_at = [0], [0]

    def dying(function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            calls[0] += 1
            if calls[0] == dies_at[0]:
                raise Crash("before")
            result = function(*args, **kwargs)
            if calls[0] == -dies_at[0]:
                raise Crash("after")
            return result

        return call

    def lifetimes(number: int, at: int) -> None:
        out = tmp_path / f"{number}" / "out"
        write(files, out, *(rows(n, k="ab"[n % 2]) for n in range(5)), partition_by=["k"])
        with monkeypatch.context() as patch:
            for owner, name in ((os, "link"), (Path, "replace"), (Path, "unlink"), (os, "remove")):
                patch.setattr(owner, name, dying(getattr(owner, name)))
            calls[0], dies_at[0] = 0, at
            if at:
                with pytest.raises(Crash):
                    compaction(out).run()
            else:
                compaction(out).run()
        assert sorted(files.read(out)["n"].to_pylist()) == [0, 1, 2, 3, 4]
        found = manifest_files(local(out))
        table = ds.dataset([str(out / path) for path in found], format="parquet").to_table()
        assert sorted(table["n"].to_pylist()) == [0, 1, 2, 3, 4]
        compaction(out).run()
        assert len(shown(out)) == 2
        assert manifest_files(local(out)) == shown(out)
        assert not list(out.glob("_arroyo_staging/compaction/*"))

    lifetimes(0, 0)
    total = calls[0]
    assert total > 8
    for number in range(1, total + 1):
        lifetimes(number, number)
        lifetimes(number + total, -number)
