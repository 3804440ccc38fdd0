"""Who can write to the checkpoint storage can write commit data; it must not move anything but what was staged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import fsspec
import msgspec
import pytest
from arroyo_filesystem.commit import commit_epoch
from arroyo_filesystem.file_names import FileNames
from arroyo_filesystem.location import Location, open_location
from arroyo_filesystem.staging import StagedFile, Staging, decode_files, encode_files
from arroyo_testing import FakeClock

from arroyo_core.api import TaskInfo
from arroyo_core.errors import ArroyoError, RetryHint, UnsafePathError, retry_hint

STATE = "a1"
TASK = TaskInfo(job_id="job", operator_id="out", operator_name="filesystem.sink", task_index=0, parallelism=1)

Forgery = Callable[[StagedFile, Path], StagedFile]


def stage(location: Location, content: bytes = b"staged", *, folder: str = "", state_id: str = STATE) -> StagedFile:
    stream = Staging(location, TASK, 1, FakeClock(), state_id=state_id).begin(
        FileNames(), extension="txt", folder=folder
    )
    stream.stream.write(content)
    return stream.close(1)


def commit(location: Location, *files: StagedFile) -> int:
    return commit_epoch(location, 1, {0: encode_files(files)}, TASK, state_id=STATE, has_manifest=True)


def renamed(file: StagedFile, **names: str) -> StagedFile:
    return msgspec.structs.replace(file, **names)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "victim.txt").write_bytes(b"secret")
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


@pytest.fixture
def location(out: Path) -> Location:
    return open_location(str(out), {}, field="path")


FORGERIES: dict[str, Forgery] = {
    "a staged file above the sink": lambda file, _: renamed(file, staged="../victim.txt"),
    "a staged file by its path": lambda file, top: renamed(file, staged=f"/../../{top}/victim.txt"),
    "a final name above the sink": lambda file, _: renamed(file, final="../taken.txt"),
    "a final name that goes up inside": lambda file, _: renamed(file, final=f"k=1/../../{file.final}"),
    "a final name in the folder of manifests": lambda file, _: renamed(file, final=f"_committed/{file.final}"),
    "a final name in the folder of compactions": lambda file, _: renamed(file, final=f"_compacted/{file.final}"),
    "a final name in the staging folder": lambda file, _: renamed(file, final=f"_arroyo_staging/x/{file.final}"),
    "a final name of something else": lambda file, _: renamed(file, final="part-00001-000-0-00000000.txt"),
    "another name altogether": lambda file, _: renamed(file, final="index.html"),
    "an empty name": lambda file, _: renamed(file, final=""),
    "a NUL": lambda file, _: renamed(file, final=f"a\0/{file.final}"),
    "another protocol": lambda file, _: renamed(file, final=f"s3://bucket/{file.final}"),
    "another operator's file": lambda file, _: renamed(file, staged=file.staged.replace("job.out.", "job.out2.")),
    "another job's file": lambda file, _: renamed(file, staged=file.staged.replace("job.out.", "job2.out.")),
    "what is not staged": lambda file, _: renamed(file, staged=file.final),
}


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES)
def test_forged_names_move_nothing_and_are_not_tried_again(
    tmp_path: Path, out: Path, location: Location, forgery: Forgery
) -> None:
    honest = stage(location)
    forged = forgery(stage(location, b"also staged"), tmp_path)
    source = out / forged.staged
    if "\0" not in forged.staged and not source.exists():
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_bytes(b"of somebody else")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(UnsafePathError) as raised:
        commit(location, honest, forged)
    assert retry_hint(raised.value) is RetryHint.NO_RETRY
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_staged_file_that_is_a_link_is_not_moved(tmp_path: Path, out: Path, location: Location) -> None:
    file = stage(location)
    (out / file.staged).unlink()
    (out / file.staged).symlink_to(tmp_path / "victim.txt")
    with pytest.raises(UnsafePathError, match="not a regular file"):
        commit(location, file)
    assert not (out / file.final).is_symlink()


def test_a_staged_folder_is_not_moved(out: Path, location: Location) -> None:
    file = stage(location)
    (out / file.staged).unlink()
    (out / file.staged).mkdir()
    with pytest.raises(UnsafePathError, match="not a regular file"):
        commit(location, file)


def test_a_staging_folder_that_is_a_link_gives_up_nothing(tmp_path: Path, out: Path, location: Location) -> None:
    file = stage(location)
    folder = (out / file.staged).parent
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafePathError, match="by a link"):
        commit(location, file)
    assert (tmp_path / "elsewhere" / Path(file.staged).name).exists()


def test_a_file_does_not_leave_the_sink_by_a_link(tmp_path: Path, out: Path, location: Location) -> None:
    file = stage(location, folder="k=1")
    (tmp_path / "elsewhere").mkdir()
    (out / "k=1").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafePathError, match="by a link"):
        commit(location, file)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_sweep_does_not_follow_links(tmp_path: Path, out: Path, location: Location) -> None:
    kept = tmp_path / "elsewhere" / "1" / "kept.txt"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"kept")
    (out / "_arroyo_staging").mkdir()
    (out / f"_arroyo_staging/job.out.{STATE}").symlink_to(tmp_path / "elsewhere")
    commit(location)
    assert kept.exists()


def test_links_that_stay_in_the_sink_and_a_sink_that_is_a_link_are_fine(tmp_path: Path, out: Path) -> None:
    (tmp_path / "name").symlink_to(out)
    (out / "k=2").mkdir()
    (out / "k=1").symlink_to(out / "k=2")
    location = open_location(str(tmp_path / "name"), {}, field="path")
    file = stage(location, folder="k=1")
    commit(location, file)
    assert (out / file.final).read_bytes() == b"staged"


@pytest.mark.parametrize("state_id", ["86bc46b70ab9", ""])
def test_what_a_former_version_staged_is_committed(out: Path, location: Location, state_id: str) -> None:
    """The checkpoint URL may be spelled otherwise since then, and names of before had no id of the state."""
    file = stage(location, folder="k=%2F", state_id=state_id or "none")
    if not state_id:
        folder = (out / file.staged).parent.parent
        folder.rename(folder.with_name("job.out"))
        file = renamed(file, staged=file.staged.replace("job.out.none", "job.out"))
    assert commit(location, file) == 1
    assert (out / file.final).read_bytes() == b"staged"


def test_remote_names_are_held_to_their_folder_too() -> None:
    location = open_location("memory://confined/out", {}, field="path")
    file = stage(location)
    fsspec.filesystem("memory").pipe_file("/confined/out/victim.txt", b"of somebody else")
    with pytest.raises(UnsafePathError):
        commit(location, renamed(file, staged="victim.txt"))
    assert location.fs.exists("/confined/out/victim.txt")
    assert commit(location, file) == 1


@pytest.mark.parametrize("data", [b"", b"[", b"{}", b'[{"staged": 1}]', b"[" * 100_000])
def test_commit_data_that_are_no_list_of_files_are_a_lasting_error(location: Location, data: bytes) -> None:
    with pytest.raises(ArroyoError, match="commit data") as raised:
        commit_epoch(location, 1, {0: data}, TASK, state_id=STATE)
    assert retry_hint(raised.value) is RetryHint.NO_RETRY


def test_names_of_long_partitions_are_read(location: Location) -> None:
    file = stage(location, folder="/".join(f"{name}={'x' * 200}" for name in "abcdefgh"))
    assert decode_files(encode_files([file])) == [file]
    assert commit(location, file) == 1
