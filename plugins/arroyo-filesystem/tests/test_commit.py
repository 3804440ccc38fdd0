from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.fs
import pytest
from arroyo_filesystem import commit
from arroyo_filesystem.file_names import FileNames
from arroyo_filesystem.location import Location, open_location
from arroyo_filesystem.patience import PatientFileSystem
from arroyo_filesystem.staging import StagedFile, Staging, decode_files, encode_files
from arroyo_testing import FakeClock
from fsspec.implementations.arrow import ArrowFSWrapper

from arroyo_core.api import TaskInfo
from arroyo_core.errors import RetryHint, StateError, retry_hint

Names = Callable[[str], list[str]]

STATE = "a1"


def commit_epoch(location: Location, epoch: int, staged: Mapping[int, bytes], info: TaskInfo) -> int:
    return commit.commit_epoch(location, epoch, staged, info, state_id=STATE)


def task(task_index: int = 0, *, job_id: str = "job", operator_id: str = "out") -> TaskInfo:
    return TaskInfo(
        job_id=job_id, operator_id=operator_id, operator_name="filesystem.sink", task_index=task_index, parallelism=2
    )


def stage(
    location: Location,
    info: TaskInfo,
    epoch: int,
    contents: list[bytes],
    folder: str = "",
    *,
    state_id: str = STATE,
) -> bytes:
    staging = Staging(location, info, epoch, FakeClock(), state_id=state_id)
    staged = []
    for content in contents:
        stream = staging.begin(FileNames(), extension="txt", folder=folder)
        stream.stream.write(content)
        staged.append(stream.close(len(content)))
    return encode_files(staged)


def contents(url: str) -> list[bytes]:
    fs, root = fsspec.core.url_to_fs(url)
    return sorted(fs.cat_file(path) for path in fs.find(root) if "_arroyo_staging" not in path)


@pytest.fixture
def location(folder: str) -> Location:
    return open_location(folder, {}, field="path")


def test_nothing_is_visible_before_the_commit_and_everything_after(
    folder: str, location: Location, names: Names
) -> None:
    data = {index: stage(location, task(index), 7, [b"a%d" % index, b"b%d" % index]) for index in (0, 1)}
    assert all(name.startswith("_arroyo_staging/job.out.a1/7/") for name in names(folder))
    assert commit_epoch(location, 7, data, task()) == 4
    assert contents(folder) == [b"a0", b"a1", b"b0", b"b1"]
    assert [name[:16] for name in names(folder)] == [f"part-00007-00{i}-{n}" for i in (0, 1) for n in (0, 1)]


def test_a_commit_can_be_repeated(folder: str, location: Location, names: Names) -> None:
    data = {0: stage(location, task(), 1, [b"x", b"y"], folder="k=1")}
    for _ in range(3):
        commit_epoch(location, 1, data, task())
    assert contents(folder) == [b"x", b"y"]
    assert all(name.startswith("k=1/part-") for name in names(folder))


@pytest.mark.parametrize("moved", range(4))
def test_a_commit_that_crashed_between_two_moves_is_completed(folder: str, location: Location, moved: int) -> None:
    data = stage(location, task(), 1, [b"x", b"y", b"z"])
    commit.move_files(location, decode_files(data)[:moved])
    commit_epoch(location, 1, {0: data}, task())
    assert contents(folder) == [b"x", b"y", b"z"]


def test_a_copy_whose_original_was_not_deleted_is_completed(folder: str, location: Location) -> None:
    data = stage(location, task(), 1, [b"x"])
    (file,) = decode_files(data)
    location.fs.cp_file(location.child(file.staged), location.child(file.final))
    commit_epoch(location, 1, {0: data}, task())
    assert contents(folder) == [b"x"]
    assert not location.fs.exists(location.child(file.staged))


def test_a_lost_file_is_named_and_not_tried_again(location: Location) -> None:
    data = stage(location, task(), 1, [b"x"])
    (file,) = decode_files(data)
    location.fs.rm_file(location.child(file.staged))
    with pytest.raises(StateError) as raised:
        commit_epoch(location, 1, {0: data}, task())
    assert file.final in str(raised.value)
    assert file.staged in str(raised.value)
    assert retry_hint(raised.value) is RetryHint.NO_RETRY


def test_a_sweep_takes_dead_attempts_and_nothing_else(folder: str, location: Location, names: Names) -> None:
    stage(location, task(), 1, [b"dead attempt of an earlier epoch"])
    stage(location, task(1), 2, [b"dead attempt of this epoch"])
    data = stage(location, task(), 2, [b"mine"])
    later = stage(location, task(), 3, [b"later"])
    other = stage(location, task(operator_id="out2"), 1, [b"of another sink"])
    foreign = stage(location, task(job_id="job2"), 1, [b"of another job"])
    fork = stage(location, task(), 2, [b"of a fork with the same name"], state_id="b2")
    commit_epoch(location, 2, {0: data}, task())
    kept = {decode_files(kept)[0].staged for kept in (later, other, foreign, fork)}
    assert {name for name in names(folder) if name.startswith("_arroyo_staging")} == kept
    assert contents(folder) == [b"mine"]


def test_a_sweep_leaves_a_folder_to_a_driver_that_still_stages_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = open_location(str(tmp_path), {}, field="path")
    data = stage(location, task(), 1, [b"x"])
    rmdir = os.rmdir

    def stage_late(path: Any, **options: Any) -> None:
        monkeypatch.setattr(os, "rmdir", rmdir)
        stage(location, task(1), 1, [b"late"])
        rmdir(path, **options)

    monkeypatch.setattr(os, "rmdir", stage_late)
    commit_epoch(location, 1, {0: data}, task())
    assert contents(str(tmp_path)) == [b"x"]


def test_a_sweep_leaves_what_is_staged_where_removing_a_folder_takes_its_files_along(tmp_path: Path) -> None:
    """As on HDFS, whose filesystem is Arrow's."""
    fs = PatientFileSystem(ArrowFSWrapper(pa.fs.LocalFileSystem()))
    location = Location(fs, str(tmp_path), str(tmp_path))
    data = {0: stage(location, task(), 1, [b"x"])}
    later = {0: stage(location, task(), 2, [b"y"])}
    other = stage(location, task(operator_id="out2"), 1, [b"of another sink"])
    commit_epoch(location, 1, data, task())
    assert (tmp_path / decode_files(other)[0].staged).exists()
    for _ in range(2):
        commit_epoch(location, 2, later, task())
    assert contents(str(tmp_path)) == [b"x", b"y"]


def test_folders_are_durable_before_the_files_in_them_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: set[str] = set()
    sync = os.fsync

    def note(number: int) -> None:
        synced.add(str(Path(f"/proc/self/fd/{number}").readlink()))
        sync(number)

    monkeypatch.setattr(os, "fsync", note)
    location = open_location(str(tmp_path / "out"), {}, field="path")
    stage(location, task(), 1, [b"x"])
    (staged,) = (tmp_path / "out").rglob("*.txt")
    assert {str(path) for path in (staged, *staged.parents) if path.is_relative_to(tmp_path)} <= synced


def test_the_staging_folder_goes_when_it_is_empty(tmp_path: Path) -> None:
    location = open_location(str(tmp_path), {}, field="path")
    commit_epoch(location, 1, {0: stage(location, task(), 1, [b"x"])}, task())
    assert not (tmp_path / "_arroyo_staging").exists()


def test_an_epoch_without_files_commits_nothing(folder: str, location: Location, names: Names) -> None:
    assert commit_epoch(location, 1, {0: encode_files([])}, task()) == 0
    assert names(folder) == []


def test_an_aborted_file_leaves_nothing(folder: str, location: Location, names: Names) -> None:
    stream = Staging(location, task(), 1, FakeClock(), state_id=STATE).begin(FileNames(), extension="txt")
    stream.stream.write(b"x")
    stream.abort()
    assert names(folder) == []


def test_staging_survives_the_sweep_of_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    location = open_location(str(tmp_path), {}, field="path")
    open_file, failures = Path.open, [FileNotFoundError("swept")]

    def flaky(path: Path, *args: Any, **kwargs: Any) -> Any:
        if failures:
            raise failures.pop()
        return open_file(path, *args, **kwargs)

    monkeypatch.setattr(Path, "open", flaky)
    assert decode_files(stage(location, task(), 1, [b"x"]))[0].size == 1


def test_two_runs_never_choose_the_same_name(location: Location) -> None:
    first, second = (decode_files(stage(location, task(), 1, [b"x"]))[0] for _ in range(2))
    assert first.final != second.final
    assert first.staged != second.staged


def test_the_list_survives_its_encoding() -> None:
    files = [StagedFile("a", "b=%20/c", 3, 2**40)]
    assert decode_files(encode_files(files)) == files


def test_restarted_sink_commits_what_the_dead_driver_staged(files: Any, folder: str) -> None:
    table = pa.table({"a": [1, 2]})
    with files.sink(folder, table.schema) as harness:
        harness.process(table.to_batches()[0])
        harness.end_of_data()
        staged = harness.checkpoint()
        harness.restore()
        harness.commit(staged)
    assert files.read(folder).equals(table)


class TestOtherUsers:
    @pytest.fixture(autouse=True)
    def usual_umask(self):
        before = os.umask(0o022)
        yield
        os.umask(before)

    def test_staged_rows_are_for_this_user_alone_and_committed_ones_follow_the_umask(self, tmp_path):
        location = open_location(str(tmp_path / "out"), {}, field="path")
        staged = Staging(location, task(), 1, FakeClock(), state_id=STATE).begin(FileNames(), extension="txt")
        staged.close(0)
        folder = Path(staged.path).parent
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(Path(staged.path).stat().st_mode) == 0o644
        assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o755

    def test_the_group_of_a_folder_that_it_shares_reads_staged_rows(self, tmp_path):
        (tmp_path / "out").mkdir()
        (tmp_path / "out").chmod(0o2775)
        location = open_location(str(tmp_path / "out"), {}, field="path")
        staged = Staging(location, task(), 1, FakeClock(), state_id=STATE).begin(FileNames(), extension="txt")
        staged.close(0)
        assert stat.S_IMODE(Path(staged.path).parent.stat().st_mode) == 0o2770
