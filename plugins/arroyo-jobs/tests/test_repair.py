"""`arroyo checkpoints verify` and `repair`, over a job's real checkpoints with real damage."""

from __future__ import annotations

import hashlib
import json
import os
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arroyo_jobs.checkpoints.repair import Repair, derive_repair
from arroyo_jobs.checkpoints.verification import Verdict, Verifier

from arroyo_core.cli.main import main
from arroyo_core.proto.state_pb2 import CheckpointMetadata
from arroyo_core.state import ParquetBackend, StorageProvider, paths
from arroyo_core.state.envelope import seal
from arroyo_core.state.failures import DamagedStateError, FencedError
from arroyo_core.state.offline import RunningJobError, check_quiet
from arroyo_core.state.protocol import JobFacts
from tests.unit.state.support.recording import DictDriver, RecordingDriver, dict_storage
from tests.unit.state.support.state_life import Life, contents, expected_at

MINUTE_US = 60_000_000


@pytest.fixture(scope="module")
def whole():
    driver = DictDriver()
    Life(StorageProvider("dict://", driver=driver)).run(4)
    return driver.files


@pytest.fixture
def folder(tmp_path, whole):
    """A job that has run four epochs."""
    for path, data in whole.items():
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return tmp_path


def backend_of(folder) -> ParquetBackend:
    return ParquetBackend(StorageProvider(str(folder)), "job")


def damage(folder, epoch: int, name: str = "table-op-latest*") -> str:
    """Change one byte of a data file that `epoch` wrote."""
    victim = sorted(folder.glob(f"job/checkpoints/{epoch}/{name}"))[0]
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(data)
    return victim.name


def run_repair(folder, *arguments: str) -> int:
    return main(["checkpoints", "repair", str(folder), "--force", *arguments])


def test_verify_names_the_file_and_who_needs_it(folder, capsys):
    victim = damage(folder, 4)
    assert main(["checkpoints", "verify", str(folder), "--format", "json"]) == 1
    verdicts = {verdict["epoch"]: verdict for verdict in json.loads(capsys.readouterr().out)}
    assert [epoch for epoch, verdict in verdicts.items() if not verdict["is_whole"]] == [4]
    (problem,) = verdicts[4]["problems"]
    assert victim in problem
    assert "does not match its checksum; table 'latest' of operator 'op' needs it" in problem
    assert main(["checkpoints", "verify", str(folder), "--epoch", "3"]) == 0
    assert main(["checkpoints", "verify", str(folder), "--latest"]) == 1
    assert main(["checkpoints", "verify", str(folder), "--all"]) == 1
    assert main(["checkpoints", "verify", str(folder), "--epoch", "77"]) == 2
    assert "has no checkpoint 77" in capsys.readouterr().err


def test_verify_reads_a_file_of_several_checkpoints_once(folder, monkeypatch):
    read = []
    backend = backend_of(folder)
    driver = backend.storage._driver
    read_file = driver.read
    monkeypatch.setattr(driver, "read", lambda path: read.append(path) or read_file(path))
    assert all(verdict.is_whole for verdict in Verifier(backend).verify_all())
    assert sorted(read) == sorted(set(read))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda t: t.slice(1), "rows, not"),
        (lambda t: t.drop_columns(["v"]), "has no column 'v'"),
        (lambda t: t.append_column("more", pa.nulls(t.num_rows)), "has a column 'more' that its table has not"),
        (
            lambda t: t.set_column(t.column_names.index("v"), "v", t.column("v").cast(pa.string())),
            "has a column 'v' of type string, not int64",
        ),
        (lambda t: t.replace_schema_metadata({b"version": b"0"}), "is of state format ?, not 1"),
        (
            lambda t: t.replace_schema_metadata({**t.schema.metadata, b"version": b"7"}),
            "holds version 7 of its values, not 0",
        ),
    ],
)
def test_verify_finds_files_that_are_not_what_the_metadata_says(folder, change, problem):
    """The checksum is that of the changed file: only what is inside is wrong."""
    backend = backend_of(folder)
    metadata = backend.load_checkpoint_metadata("job", 4)
    table = metadata.operators[0].table_checkpoint_metadata["windows"].expiring_keyed_time
    file = table.files[-1]
    path = folder / file.path
    out = pa.BufferOutputStream()
    pq.write_table(change(pq.read_table(path)), out)
    data = out.getvalue().to_pybytes()
    path.write_bytes(data)
    file.size_bytes, file.checksum = len(data), hashlib.sha256(data).digest()
    (folder / paths.checkpoint_metadata("job", 4)).write_bytes(seal(metadata))
    problems = Verifier(backend).verify(4).problems
    assert any(problem in found for found in problems), problems


def test_a_repair_says_what_it_would_do_and_changes_nothing(folder, capsys):
    damage(folder, 4)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert main(["checkpoints", "repair", str(folder)]) == 1
    said = capsys.readouterr().out
    assert "would move damaged checkpoints aside: 4" in said
    assert "would publish the state of epoch 3 as epoch 5, to go on from there" in said
    assert "what sinks committed after epoch 3 stays" in said
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_tools_read_what_a_repair_would_do_and_what_it_did(folder, capsys):
    damage(folder, 4)
    assert run_repair(folder, "--format", "json") == 1
    planned = json.loads(capsys.readouterr().out)
    assert (planned["is_needed"], planned["is_done"], planned["moved_to"]) == (True, False, None)
    assert (planned["moved_epochs"], planned["goes_on_from"], planned["republished_as"]) == ([4], 3, 5)
    assert run_repair(folder, "--format", "json", "--yes") == 0
    done = json.loads(capsys.readouterr().out)
    assert done["is_done"]
    assert (folder / done["moved_to"]).is_dir()
    assert run_repair(folder, "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["is_needed"] is False


def test_a_repaired_job_goes_on_from_the_last_whole_checkpoint(folder, capsys):
    with pytest.raises(DamagedStateError):
        _damaged_resume(folder)
    aside = {path.name: path.read_bytes() for path in (folder / "job/checkpoints/4").iterdir()}
    assert run_repair(folder, "--yes") == 0
    assert "published the state of epoch 3 as epoch 5" in capsys.readouterr().out
    backend = backend_of(folder)
    assert 4 not in backend.list_epochs()
    assert backend.list_epochs()[-1] == 5
    kept = {path.name: path.read_bytes() for path in folder.glob("job/damaged/*/checkpoints/4/*")}
    assert kept == aside, "nothing is lost"
    assert json.loads(next(folder.glob("job/damaged/*/repair.json")).read_text())["dropped"] == [4]
    life = Life(StorageProvider(str(folder)))
    life.job.resume(2)
    assert contents(life.job.managers, 3) == expected_at(3)
    assert not life.job.checkpoint.needs_commit
    life.run_epoch(life.job.epoch + 1)
    assert backend.list_epochs()[-1] == 6
    assert main(["checkpoints", "verify", str(folder)]) == 0
    assert run_repair(folder, "--yes") == 0
    assert "nothing to repair" in capsys.readouterr().out


def _damaged_resume(folder) -> None:
    sorted(folder.glob("job/checkpoints/4/table-op-latest*"))[0].unlink()
    Life(StorageProvider(str(folder))).run(5)


def test_metadata_that_cannot_be_read_is_moved_aside_too(folder, capsys):
    (folder / "job/checkpoints/4/checkpoint.metadata").write_bytes(b"nonsense")
    assert run_repair(folder, "--yes") == 0
    assert backend_of(folder).resolve_latest().checkpoint.epoch == 5
    assert next(folder.glob("job/damaged/*/checkpoints/4/checkpoint.metadata")).read_bytes() == b"nonsense"


def test_a_broken_checkpoint_before_a_whole_one_goes_without_a_new_one(folder, capsys):
    (folder / "job/checkpoints/3/checkpoint.metadata").write_bytes(b"nonsense")
    assert run_repair(folder, "--yes") == 0
    assert "the newest checkpoint, epoch 4, is whole" in capsys.readouterr().out
    backend = backend_of(folder)
    assert 3 not in backend.list_epochs()
    assert backend.list_epochs()[-1] == 4
    assert main(["checkpoints", "verify", str(folder)]) == 0, "files of epoch 3 that epoch 4 needs are still there"


def test_a_job_without_a_whole_checkpoint_is_left_alone(folder, capsys):
    for path in folder.glob("job/checkpoints/*/checkpoint.metadata"):
        path.write_bytes(b"nonsense")
    before = sorted(folder.rglob("*"))
    assert run_repair(folder, "--yes") == 2
    assert "is whole and committed: there is nothing to go back to" in capsys.readouterr().err
    assert [path for path in sorted(folder.rglob("*")) if path.suffix != ".claim"] == [
        path for path in before if path.suffix != ".claim"
    ]


def test_a_repair_waits_until_no_driver_can_be_running(folder, capsys):
    damage(folder, 4)
    assert main(["checkpoints", "repair", str(folder), "--yes"]) == 2
    said = capsys.readouterr().err
    assert "a driver of job 'job' (generation 1) may be running" in said
    assert "add --force" in said
    assert 4 in backend_of(folder).list_epochs()
    backend, later_us = backend_of(folder), time.time_ns() // 1000 + 11 * MINUTE_US
    check_quiet(backend, 10 * MINUTE_US, now_us=lambda: later_us)
    with pytest.raises(RunningJobError):
        check_quiet(backend, 12 * MINUTE_US, now_us=lambda: later_us)


def test_a_finished_job_need_not_be_waited_for(tmp_path):
    backend = backend_of(tmp_path)
    backend.claim_generation()
    backend.publish(CheckpointMetadata(job_id="job", epoch=1, is_final=True))
    check_quiet(backend, 10 * MINUTE_US)
    backend_of(tmp_path).claim_generation()
    with pytest.raises(RunningJobError, match="generation 2"):
        check_quiet(backend, 10 * MINUTE_US)


def test_a_driver_that_runs_all_the_same_can_publish_no_more(folder):
    driver = backend_of(folder)
    driver.generation = 1
    damage(folder, 4)
    assert run_repair(folder, "--yes") == 0
    with pytest.raises(FencedError):
        driver.publish(CheckpointMetadata(job_id="job", epoch=6, parent_epoch=4))


def test_old_orphans_are_deleted_and_young_ones_stay(folder, capsys):
    orphans = [folder / "job/checkpoints" / name for name in ("5/table-op-windows-0-aa.parquet", "2/.unfinished-x-bb")]
    for orphan in orphans:
        orphan.parent.mkdir(exist_ok=True)
        orphan.write_bytes(b"left behind")
    old = time.time() - 3 * 86_400
    os.utime(orphans[0], (old, old))
    assert run_repair(folder) == 0
    assert "nothing to repair" in capsys.readouterr().out
    assert run_repair(folder, "--orphans-older-than", "2d") == 1
    assert "would delete 1 files that no checkpoint needs" in capsys.readouterr().out
    assert run_repair(folder, "--orphans-older-than", "2d", "--yes") == 0
    assert [orphan.exists() for orphan in orphans] == [False, True]
    assert main(["checkpoints", "verify", str(folder)]) == 0
    with pytest.raises(SystemExit):
        run_repair(folder, "--orphans-older-than", "2 days")
    assert "has the unknown unit 'days'" in capsys.readouterr().err


def test_a_checkpoint_that_was_never_committed_is_not_gone_back_to():
    """The job had gone back from epoch 2 to epoch 1 and gone on: its output was never made visible."""

    def verdict(epoch: int, *problems: str) -> Verdict:
        metadata = CheckpointMetadata(job_id="job", epoch=epoch, needs_commit=True)
        return Verdict(epoch=epoch, problems=problems, metadata=metadata)

    files = tuple(paths.checkpoint_metadata("job", epoch) for epoch in (1, 2, 3))
    numbers = frozenset({1, 2, 3})
    facts = JobFacts(published=numbers, committed=frozenset({1, 3}), present=numbers, files=files)
    plan = derive_repair("job", facts, [verdict(1), verdict(2), verdict(3, "torn")])
    assert (plan.whole, plan.republished, plan.dropped) == (1, 4, (3,))


def test_a_crash_at_any_write_of_a_repair_leaves_a_job_that_can_be_repaired(whole):
    victim = next(path for path in sorted(whole) if path.startswith("job/checkpoints/4/table-op-latest"))
    recording = RecordingDriver(lambda: 4)
    recording.files = {**whole, victim: b"torn"}
    Repair(ParquetBackend(StorageProvider("dict://", driver=recording), "job")).carry_out()
    assert len(recording.points) > 10
    for point in recording.points:
        storage = dict_storage(point.files)
        backend = ParquetBackend(storage, "job")
        Repair(backend).carry_out()
        life = Life(storage)
        life.job.resume(1)
        assert contents(life.job.managers, 3) == expected_at(3), point.name
        assert life.job.epoch > 4, point.name
        assert b"torn" in storage._driver.files.values(), point.name
