"""Files that are deleted or moved away once the epochs that read them are committed."""

from __future__ import annotations

import contextlib
import gzip
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from arroyo_filesystem import finished_files
from arroyo_filesystem.finished_files import FINISHED_TABLE, FinishedFile, FinishedFiles, encode_finished
from arroyo_filesystem.listing import list_files
from arroyo_filesystem.location import open_location
from arroyo_filesystem.watch_settings import AfterCommit, Order, WatchSettings

from arroyo_core.api import CommitToken
from arroyo_core.errors import ConfigError, UnsafePathError

from .support.watched import WATCH_US, Folder, numbers

Watch = Callable[..., Folder]


@pytest.fixture
def watch(files: Any, tmp_path: Path) -> Iterator[Watch]:
    made: list[Folder] = []

    def make(after_commit: str, **config: Any) -> Folder:
        (tmp_path / "in").mkdir()
        if after_commit == "archive":
            config["archive_path"] = str(tmp_path / "read")
        made.append(Folder(files, tmp_path / "in", after_commit=after_commit, **config))
        return made[-1]

    yield make
    for folder in made:
        folder.harness.close()


def archived(tmp_path: Path) -> list[str]:
    return sorted(str(path.relative_to(tmp_path / "read")) for path in (tmp_path / "read").rglob("*.jsonl"))


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("after_commit", ["archive", "delete"])
def test_a_file_goes_with_an_epoch_after_the_one_that_read_it(
    watch: Watch, tmp_path: Path, after_commit: str, parallelism: int
) -> None:
    folder = watch(after_commit)
    names = ["a.jsonl", "b.jsonl", "day=1/c.jsonl"]
    for number, name in enumerate(names):
        folder.write(name, number)
    folder.start()
    assert numbers(folder.run(parallelism=parallelism)) == [0, 1, 2]
    folder.harness.commit()
    assert folder.names() == names
    folder.run(parallelism=parallelism)
    assert folder.names() == names, "nothing goes before the commit"
    said = folder.harness.commit()
    assert folder.names() == []
    assert said.counters == {("archived_files" if after_commit == "archive" else "deleted_files"): 3}
    if after_commit == "archive":
        assert archived(tmp_path) == names
    assert folder.harness.commit().counters == {}
    assert folder.read(parallelism=parallelism) == []


@pytest.mark.parametrize("after_commit", ["archive", "delete"])
def test_a_file_that_is_not_read_to_its_end_stays(watch: Watch, after_commit: str) -> None:
    folder = watch(after_commit)
    folder.write("a.jsonl", *range(10))
    folder.start(batch_rows=2)
    rows: list[int] = []
    while len(rows) < 10:
        rows += numbers(folder.run(rows=2))
        folder.harness.commit()
        assert folder.names() == ["a.jsonl"]
    # An epoch sees the end of the file, and the next one knows that it is read.
    folder.run()
    folder.harness.commit()
    folder.run(is_lost=True)
    assert folder.names() == ["a.jsonl"]
    folder.run()
    folder.harness.commit()
    assert folder.names() == []


def test_a_damaged_file_stays(watch: Watch) -> None:
    folder = watch("delete", bad_data="drop")
    folder.write("a.jsonl", 1)
    whole = gzip.compress(b'{"n": 2}\n' * 1000)
    (folder.path / "b.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    folder.start()
    for _ in range(4):
        folder.look()
        folder.harness.commit()
    assert folder.names() == ["b.jsonl.gz"]
    assert not any(key.startswith(("damaged", "file")) for key in folder.state(("f", "s"))["f"])


def test_a_file_that_was_changed_since_it_was_read_stays(watch: Watch) -> None:
    folder = watch("delete")
    folder.write("a.jsonl", 1)
    folder.start()
    folder.run()
    folder.run()
    folder.write("a.jsonl", 1, 2)
    said = folder.harness.commit()
    assert folder.names() == ["a.jsonl"]
    assert said.counters == {"left_files": 1}
    (warning,) = said.warnings.values()
    assert "changed after they were read: a.jsonl" in warning


def test_a_link_stays(watch: Watch, tmp_path: Path) -> None:
    folder = watch("delete")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.jsonl").write_text('{"n": 1}\n')
    (folder.path / "a.jsonl").symlink_to(tmp_path / "other" / "a.jsonl")
    (folder.path / "sub").symlink_to(tmp_path / "other")
    folder.start()
    folder.run()
    folder.run()
    folder.harness.commit()
    assert (tmp_path / "other" / "a.jsonl").exists()
    assert (folder.path / "a.jsonl").is_symlink()


def test_a_file_of_another_path_than_now_stays(watch: Watch) -> None:
    """A person may allow a job to go on with another path."""
    folder = watch("delete")
    folder.write("a.jsonl", 1)
    folder.start()
    folder.run()
    folder.path = folder.path.parent / "other"
    folder.write("b.jsonl", 2)
    folder.start()
    done = folder.run()
    assert done.counters["left_files"] == 1
    folder.harness.commit()
    assert (folder.path.parent / "in" / "a.jsonl").exists()


def test_a_bounded_source_ends_after_its_last_files_are_gone(watch: Watch) -> None:
    folder = watch("delete", until="now")
    folder.write("a.jsonl", 1)
    folder.write("b.jsonl", 2)
    # The clock of the harness is behind that of the disk.
    folder.harness.clock.move_to(round(4e15))
    folder.start()
    for _ in range(6):
        done = folder.look(parallelism=2)
        folder.harness.commit()
        if done.is_final:
            break
    assert done.is_final
    assert folder.names() == []


def test_an_archived_file_takes_no_other_ones_name(watch: Watch, tmp_path: Path) -> None:
    folder = watch("archive")
    (tmp_path / "read").mkdir()
    (tmp_path / "read" / "a.jsonl").write_text("older\n")
    folder.write("a.jsonl", 1)
    folder.start()
    folder.run()
    folder.run()
    folder.harness.commit()
    first, second = archived(tmp_path)
    assert {(tmp_path / "read" / name).read_text() for name in (first, second)} == {"older\n", '{"n": 1}\n'}


def test_an_archive_inside_the_folder_is_hidden(files: Any, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n')
    for name in ("read", "."):
        with pytest.raises(ConfigError, match="would be read again") as caught:
            files.make_source(tmp_path, watch=WATCH_US, after_commit="archive", archive_path=str(tmp_path / name))
        assert caught.value.field == "archive_path"
    with pytest.raises(ConfigError, match="within one storage"):
        files.make_source(tmp_path, watch=WATCH_US, after_commit="archive", archive_path="memory://read")
    files.make_source(tmp_path, watch=WATCH_US, after_commit="archive", archive_path=str(tmp_path / "_read"))


class Context:
    """What a commit asks for."""

    class table_manager:  # noqa: N801
        state_id = "a1"

    token = CommitToken("x", 1, 7)

    def __init__(self) -> None:
        self.counters: dict[str, int] = {}

    def count(self, name: str, amount: int = 1) -> None:
        self.counters[name] = self.counters.get(name, 0) + amount

    def warn(self, message: str, *, topic: str | None = None) -> None:
        return


def settings(after_commit: AfterCommit, archive: Any) -> WatchSettings:
    return WatchSettings(
        interval_us=1,
        order=Order.NONE,
        is_start_new=False,
        lateness_us=0,
        max_remembered_files=1,
        until=None,
        after_commit=after_commit,
        archive=archive,
    )


class Crash(BaseException):
    """The process dies."""


@pytest.mark.parametrize("after_commit", [AfterCommit.ARCHIVE, AfterCommit.DELETE])
@pytest.mark.parametrize("answer_is_lost", [False, True])
def test_a_commit_that_dies_at_any_call_is_completed(
    folder: str, after_commit: AfterCommit, answer_is_lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each call that changes the storage, and after it."""
    calls = ("rm_file", "cp_file", "mv")
    for crash_at in range(12):
        fs, root = fsspec.core.url_to_fs(f"{folder}/{after_commit}-{crash_at}")
        names = ["a.jsonl", "k=1/b.jsonl", "c.jsonl"]
        for name in names:
            fs.makedirs(f"{root}/in/{name}".rpartition("/")[0], exist_ok=True)
            fs.pipe_file(f"{root}/in/{name}", name.encode())
        location = open_location(f"{folder}/{after_commit}-{crash_at}/in", {}, field="path")
        archive = open_location(f"{folder}/{after_commit}-{crash_at}/read", {}, field="path")
        listed = list_files(location, "json")
        staged = {
            0: encode_finished([FinishedFile(file.path[len(root) + 4 :], file.size, file.version) for file in listed])
        }
        commit = FinishedFiles(location, settings(after_commit, archive if after_commit == "archive" else None), "json")
        done = [0]

        def crashing(made: Any, done: list[int] = done, crash_at: int = crash_at) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                done[0] += 1
                if done[0] == crash_at and not answer_is_lost:
                    raise Crash
                result = made(*args, **kwargs)
                if done[0] == crash_at:
                    raise Crash
                return result

            return call

        with monkeypatch.context() as patch:
            patch.setattr(finished_files, "PARALLEL_MOVES", 1)
            for name in calls:
                patch.setattr(type(location.fs), name, crashing(getattr(type(location.fs), name)), raising=True)
            patch.setattr(Path, "rename", crashing(Path.rename))
            with contextlib.suppress(Crash):
                commit.commit(staged, Context())  # type: ignore[arg-type]
        commit.commit(staged, Context())  # type: ignore[arg-type]
        commit.commit(staged, Context())  # type: ignore[arg-type]
        left = {path.removeprefix(root).lstrip("/") for path in fs.find(root)}
        assert not any(path.startswith("in/") for path in left)
        if after_commit is AfterCommit.ARCHIVE:
            assert {fs.cat_file(f"{root}/{path}") for path in left} == {name.encode() for name in names}
            # A copy that was not told of may be there twice, and nothing is lost.
            assert {f"read/{name}" for name in names} <= left
    assert done[0] < 12


FORGED = ["../victim.jsonl", "/etc/x.jsonl", "_hidden/a.jsonl", "a.txt", ".a.jsonl", "k/../../v.jsonl", "", "a\0.jsonl"]


@pytest.mark.parametrize("name", FORGED)
@pytest.mark.parametrize("url", ["in", "in/*.jsonl"])
def test_forged_names_touch_nothing(tmp_path: Path, name: str, url: str) -> None:
    """Who can write to the checkpoint storage can write commit data."""
    (tmp_path / "in").mkdir()
    (tmp_path / "victim.jsonl").write_text("x")
    (tmp_path / "in" / "a.txt").write_text("x")
    (tmp_path / "in" / "b.jsonl").write_text("x")
    before = sorted(tmp_path.rglob("*"))
    location = open_location(str(tmp_path / url), {}, field="path")
    files = FinishedFiles(location, settings(AfterCommit.DELETE, None), "json")
    staged = {0: encode_finished([FinishedFile("b.jsonl", 1, ""), FinishedFile(name, 1, "")])}
    with pytest.raises(UnsafePathError, match="Nothing was touched"):
        files.commit(staged, Context())  # type: ignore[arg-type]
    assert sorted(tmp_path.rglob("*")) == before


def test_a_glob_is_not_left(tmp_path: Path) -> None:
    (tmp_path / "k=1").mkdir()
    (tmp_path / "k=1" / "b.jsonl").write_text("x")
    location = open_location(str(tmp_path / "*.jsonl"), {}, field="path")
    files = FinishedFiles(location, settings(AfterCommit.DELETE, None), "json")
    with pytest.raises(UnsafePathError):
        files.commit({0: encode_finished([FinishedFile("k=1/b.jsonl", 1, "")])}, Context())  # type: ignore[arg-type]
    os.rename(tmp_path / "k=1" / "b.jsonl", tmp_path / "b.jsonl")  # noqa: PTH104
    files.commit({0: encode_finished([FinishedFile("b.jsonl", 1, "")])}, Context())  # type: ignore[arg-type]
    assert not (tmp_path / "b.jsonl").exists()
    assert FINISHED_TABLE == "finished"
