"""Who reads by manifests sees whole epochs only, whatever becomes of the drivers that commit them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.fs
import pytest
from arroyo_filesystem import commit
from arroyo_filesystem.file_names import FileNames
from arroyo_filesystem.location import Location, open_location
from arroyo_filesystem.manifests import derive_manifest
from arroyo_filesystem.patience import PatientFileSystem
from arroyo_filesystem.staging import Staging, decode_files, encode_files
from arroyo_testing import FakeClock
from fsspec.implementations.arrow import ArrowFSWrapper

from arroyo_core.api import TaskInfo
from arroyo_core.errors import StateError

TASK = TaskInfo(job_id="job", operator_id="out", operator_name="filesystem.sink", task_index=0, parallelism=2)


class Died(BaseException):
    """The driver is gone."""


@pytest.fixture(params=["local", "memory", "folders"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Location]:
    """A folder on each kind of storage: local, of objects, and of others."""
    if request.param == "memory":
        name = uuid.uuid4().hex
        yield open_location(f"memory://{name}", {}, field="path")
        memory = fsspec.filesystem("memory")
        if memory.exists(name):
            memory.rm(name, recursive=True)
    elif request.param == "local":
        yield open_location(str(tmp_path / "data"), {}, field="path")
    else:
        yield Location(PatientFileSystem(ArrowFSWrapper(pa.fs.LocalFileSystem())), str(tmp_path / "data"), "")


def stage(location: Location, epoch: int, contents: list[bytes], *, folder: str = "", task_index: int = 0) -> bytes:
    task = TaskInfo(
        job_id="job", operator_id="out", operator_name="filesystem.sink", task_index=task_index, parallelism=2
    )
    staging = Staging(location, task, epoch, FakeClock(), state_id="a1")
    staged = []
    for content in contents:
        stream = staging.begin(FileNames(), extension="txt", folder=folder)
        stream.stream.write(content)
        staged.append(stream.close(len(content)))
    return encode_files(staged)


def commit_epoch(location: Location, epoch: int, *staged: bytes) -> None:
    data = dict(enumerate(staged))
    commit.commit_epoch(location, epoch, data, TASK, state_id="a1", has_manifest=True)


def files_below(location: Location, folder: str = "") -> dict[str, bytes]:
    fs = location.fs._fs if isinstance(location.fs, PatientFileSystem) else location.fs
    root = location.child(folder).rstrip("/")
    fs.invalidate_cache()
    found = fs.find(root) if fs.exists(root) else []
    return {path.removeprefix(root).lstrip("/"): fs.cat_file(path) for path in found}


def listed(location: Location, ending: str = "json") -> dict[int, dict[str, Any]]:
    """The manifests of this ending, by epoch."""
    found = files_below(location, "_committed")
    manifests = [json.loads(data) for name, data in found.items() if name.endswith(f".{ending}")]
    return {manifest["epoch"]: manifest for manifest in manifests}


def seen(location: Location) -> list[bytes]:
    """What a reader of manifests sees: every file that is listed must be there."""
    files = files_below(location)
    return sorted(files[file["path"]] for manifest in listed(location).values() for file in manifest["files"])


def visible(location: Location) -> list[bytes]:
    """What a reader of the folder sees."""
    return sorted(data for name, data in files_below(location).items() if not name.startswith("_"))


def test_a_manifest_lists_the_files_of_all_subtasks(location: Location) -> None:
    first, second = stage(location, 7, [b"bb", b"a"], folder="k=x%20y"), stage(location, 7, [b"ccc"], task_index=1)
    commit_epoch(location, 7, first, second)
    ((name, data),) = files_below(location, "_committed").items()
    assert name == "job.out.a1-00000007.json"
    assert data.endswith(b"}\n")
    assert data.count(b"\n") == 1
    manifest = json.loads(data)
    files = manifest.pop("files")
    assert manifest == {
        "job": "job",
        "node": "out",
        "state_id": "a1",
        "epoch": 7,
        "complete": True,
        "rows": 6,
        "bytes": 6,
    }
    assert [(file["rows"], file["bytes"]) for file in files] == [(2, 2), (1, 1), (3, 3)]
    assert files[0]["path"].startswith("k=x%20y/part-00007-000-0-")
    assert seen(location) == visible(location) == [b"a", b"bb", b"ccc"]


def test_an_epoch_without_files_has_no_manifest(location: Location) -> None:
    commit_epoch(location, 1, encode_files([]))
    assert files_below(location) == {}


@pytest.mark.parametrize("moved", range(3))
def test_a_commit_that_dies_between_two_moves_shows_nothing_of_its_epoch(
    location: Location, moved: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_epoch(location, 1, stage(location, 1, [b"old"]))
    data = stage(location, 2, [b"x", b"y", b"z"])
    with monkeypatch.context() as patch:
        die_after(moved, patch)
        with pytest.raises(Died):
            commit_epoch(location, 2, data)
    # Who lists the folder sees a part of epoch 2; it is known which files these are.
    assert len(visible(location)) == 1 + moved
    assert seen(location) == [b"old"]
    assert listed(location, "begun")[2]["complete"] is False
    assert len(listed(location, "begun")[2]["files"]) == 3
    commit_epoch(location, 2, data)
    assert seen(location) == visible(location) == [b"old", b"x", b"y", b"z"]
    assert listed(location, "begun") == {}


def die_after(moved: int, patch: pytest.MonkeyPatch) -> None:
    """The driver dies when it has moved so many data files."""
    left = [moved]

    def dying(move: Callable[[Location, Any], None]) -> Callable[[Location, Any], None]:
        def call(location: Location, file: Any) -> None:
            if not file.final.startswith("_committed/"):
                if left[0] == 0:
                    raise Died
                left[0] -= 1
            move(location, file)

        return call

    patch.setattr(commit, "PARALLEL_MOVES", 1)
    for name in ("_move_local", "_move_remote"):
        patch.setattr(commit, name, dying(getattr(commit, name)))


STEPS = ("put_manifest", "move_files", "remove_manifest", "sweep")


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", range(5))
def test_a_commit_that_dies_at_any_step_is_repeated_to_the_same_end(
    location: Location, number: int, is_done: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_epoch(location, 1, stage(location, 1, [b"old"]))
    data = stage(location, 2, [b"x", b"y"])
    with monkeypatch.context() as patch:
        calls = iter(range(100))

        def dying(step: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **options: Any) -> None:
                is_last = next(calls) == number
                if is_last and not is_done:
                    raise Died
                step(*args, **options)
                if is_last:
                    raise Died

            return call

        for name in STEPS:
            patch.setattr(commit, name, dying(getattr(commit, name)))
        with pytest.raises(Died):
            commit_epoch(location, 2, data)
    assert seen(location) in ([b"old"], [b"old", b"x", b"y"])
    for _ in range(2):
        commit_epoch(location, 2, data)
        assert seen(location) == visible(location) == [b"old", b"x", b"y"]
        assert sorted(listed(location)) == [1, 2]
        assert [
            name for name in files_below(location) if not name.startswith(("part-", "_committed/job.out.a1-"))
        ] == []
        assert listed(location, "begun") == {}


def test_a_driver_that_comes_back_late_does_not_take_a_complete_epoch_back(location: Location) -> None:
    """It may be paused between any two calls, for as long as another one needs to do all of them, and then die."""
    data = stage(location, 1, [b"x", b"y"])
    begun = derive_manifest(decode_files(data), TASK, 1, state_id="a1")
    commit_epoch(location, 1, data)
    (complete,) = files_below(location, "_committed").values()
    commit.put_manifest(location, begun, folder="_arroyo_staging/job.out.a1/1")
    assert seen(location) == [b"x", b"y"]
    # The one that has the job goes on; whoever commits that epoch once more tidies up.
    commit_epoch(location, 2, stage(location, 2, [b"z"]))
    assert seen(location) == [b"x", b"y", b"z"]
    commit_epoch(location, 1, data)
    assert listed(location, "begun") == {}
    assert complete in files_below(location, "_committed").values()


@pytest.mark.parametrize("step", ["_move_local", "_move_remote", "make_folder"])
@pytest.mark.parametrize("number", range(6))
def test_two_drivers_may_commit_one_epoch_at_once(
    location: Location, step: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one does all of its commit between two steps of the first, and sweeps what that one has staged."""
    data = stage(location, 1, [b"x", b"y"])
    do, calls = getattr(commit, step), iter(range(100))

    def interrupted(*args: Any) -> None:
        if next(calls) == number:
            with monkeypatch.context() as patch:
                patch.setattr(commit, step, do)
                commit_epoch(location, 1, data)
        do(*args)

    monkeypatch.setattr(commit, step, interrupted)
    commit_epoch(location, 1, data)
    assert seen(location) == visible(location) == [b"x", b"y"]
    assert listed(location, "begun") == {}
    assert list(listed(location)) == [1]


def test_a_lost_file_leaves_its_epoch_incomplete(location: Location) -> None:
    data = stage(location, 1, [b"x"])
    location.fs.rm_file(location.child(decode_files(data)[0].staged))
    with pytest.raises(StateError):
        commit_epoch(location, 1, data)
    assert seen(location) == []
    assert list(listed(location, "begun")) == [1]


@pytest.mark.parametrize("kind", ["parquet", "json"])
@pytest.mark.parametrize("pattern", ["", "/**/*"])
def test_the_source_does_not_read_manifests(files: Any, tmp_path: Path, kind: str, pattern: str) -> None:
    table = pa.table({"n": [1, 2, 3]})
    out = tmp_path / "out"
    files.write(out, table, format=kind)
    (manifest,) = (out / "_committed").iterdir()
    assert json.loads(manifest.read_bytes())["rows"] == 3
    assert files.read(f"{out}{pattern}", format=kind)["n"].to_pylist() == [1, 2, 3]


def test_a_folder_with_manifests_alone_has_no_files_of_others(files: Any, tmp_path: Path) -> None:
    (tmp_path / "out" / "_committed").mkdir(parents=True)
    (tmp_path / "out" / "_committed" / "old.json").write_text("{}\n")
    files.write(tmp_path / "out", pa.table({"n": [1]}), if_exists="fail")
    assert files.read(tmp_path / "out")["n"].to_pylist() == [1]


def test_bad_lines_need_no_manifest(files: Any, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("n\n1\nx\n")
    config = {"schema": {"n": "int64"}, "bad_data": "dead_letter", "dead_letter": str(tmp_path / "bad")}
    files.read(tmp_path / "in.csv", **config)
    assert not (tmp_path / "bad" / "_committed").exists()


def test_manifests_of_one_node_are_in_the_order_of_epochs(location: Location) -> None:
    for epoch in (9, 10, 100):
        commit_epoch(location, epoch, stage(location, epoch, [b"x"]))
    names = sorted(files_below(location, "_committed"))
    assert [json.loads(files_below(location, "_committed")[name])["epoch"] for name in names] == [9, 10, 100]
