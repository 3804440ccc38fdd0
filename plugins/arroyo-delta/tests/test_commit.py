"""A commit is whole and is there once, wherever it is interrupted, by whomever, and however often it is repeated."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from arroyo_delta import commit
from arroyo_delta.staging import LostFileError
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from arroyo_core.errors import ArroyoError, ExternalError, OperatorError, RetryHint, retry_hint

from .support.faults import Calls, Crash, Fault
from .support.sinks import Sink
from .support.tables import rows

pytestmark = pytest.mark.once

SCHEMA = pa.schema([("id", pa.int64()), ("place", pa.string()), ("n", pa.int64())])
MODES: dict[str, dict[str, Any]] = {
    "append": {},
    "partitions": {"partition_by": ["place"]},
    "overwrite_partitions": {"mode": "overwrite_partitions", "partition_by": ["place"]},
    "merge": {"mode": "merge", "keys": ["id"]},
}
EPOCHS = {
    1: [{"id": 1, "place": "x", "n": 1}, {"id": 2, "place": "y", "n": 1}, {"id": 3, "place": "z", "n": 1}],
    2: [{"id": 2, "place": "y", "n": 2}, {"id": 4, "place": "x", "n": 2}],
    3: [{"id": 2, "place": "y", "n": 3}, {"id": 5, "place": "z", "n": 3}],
}
#: What the table has before the job.
BEFORE = [{"id": 100, "place": "x", "n": 0}, {"id": 101, "place": "y", "n": 0}, {"id": 102, "place": "w", "n": 0}]


def expected(mode: str, last: int, *, is_new: bool = False) -> list[tuple[object, ...]]:
    """The rows of the table when so many epochs are committed."""
    written = [row for epoch in range(1, last + 1) for row in EPOCHS[epoch]]
    if mode == "merge":
        written = list({row["id"]: row for row in written}.values())
    touched = {row["place"] for row in written} if mode == "overwrite_partitions" else set()
    kept = [row for row in BEFORE if not is_new and row["place"] not in touched]
    return sorted(((row["id"], row["place"], row["n"]) for row in [*kept, *written]), key=repr)


def sink_on(folder: Path, mode: str = "append", *, is_new: bool = False) -> Sink:
    """A sink for a table that has rows of others, or is not there yet."""
    if not is_new:
        options: dict[str, Any] = {"partition_by": MODES[mode].get("partition_by")}
        write_deltalake(str(folder), pa.Table.from_pylist(BEFORE, schema=SCHEMA), **options)
    return Sink(folder, SCHEMA, **MODES[mode])


def found(sink: Sink) -> list[tuple[object, ...]]:
    """The rows of the table, whose log has each epoch once: files that are added again would not be seen otherwise."""
    committed = committed_epochs(sink.table)
    assert sorted(set(committed)) == committed
    return rows(sink.table, *SCHEMA.names)


def committed_epochs(table: Path) -> list[int]:
    """The epochs in the entries of the log, in the order of these."""
    actions = [
        json.loads(line)
        for entry in sorted((table / "_delta_log").glob("*.json"))
        for line in entry.read_text().splitlines()
    ]
    markers = [action["txn"] for action in actions if "txn" in action]
    return [each["version"] for each in markers if each["appId"].count("/") == 2]


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture(params=list(MODES))
def mode(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def attempt(commit: Callable[[], None]) -> BaseException | None:
    """Commit, and return what came of it."""
    try:
        commit()
    except (Crash, OperatorError, ArroyoError, OSError) as error:
        return error
    return None


def commit_at_once(gate: threading.Barrier, ended: list[BaseException | None], commit: Callable[[], None]) -> None:
    gate.wait()
    ended.append(attempt(commit))


def vacuum(table: Path) -> None:
    """Delete whatever the table does not refer to."""
    DeltaTable(str(table)).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True)


def count_calls(folder: Path, mode: str, *, epoch: int) -> int:
    """The calls of the commit of an epoch that nothing happens to."""
    calls = Calls()
    with sink_on(folder, mode, is_new=epoch == 1) as sink, pytest.MonkeyPatch.context() as patch:
        for before in range(1, epoch):
            sink.write(EPOCHS[before], epoch=before)
        staged = sink.stage(EPOCHS[epoch])
        calls.install(patch)
        sink.commit(staged, epoch=epoch)
    assert {"open", "sizes"} <= set(calls.names)
    return len(calls.names)


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("epoch", [1, 2])
def test_a_commit_that_is_interrupted_at_any_call_is_finished_by_the_next_driver(tmp_path, mode, fault, epoch):
    for number in range(1, count_calls(tmp_path / "plain", mode, epoch=epoch) + 1):
        calls = Calls()
        with sink_on(tmp_path / f"t{number}", mode, is_new=epoch == 1) as sink:
            for before in range(1, epoch):
                sink.write(EPOCHS[before], epoch=before)
            staged = sink.stage(EPOCHS[epoch])
            with pytest.MonkeyPatch.context() as patch:
                calls.install(patch)
                calls.fail(number, fault)
                interrupted = attempt(partial(sink.commit, staged, epoch=epoch))
            assert len(calls.names) >= number
            assert fault not in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER) or isinstance(interrupted, Crash)
            sink.commit(staged, epoch=epoch, generation=2)
            assert found(sink) == expected(mode, epoch, is_new=epoch == 1)
            sink.commit(staged, epoch=epoch, generation=2)
            sink.restore()
            sink.write(EPOCHS[epoch + 1], epoch=epoch + 1, generation=2)
            assert found(sink) == expected(mode, epoch + 1, is_new=epoch == 1)


def test_a_driver_that_is_replaced_at_any_call_of_its_commit_changes_nothing_any_more(tmp_path, mode):
    for number in range(1, count_calls(tmp_path / "plain", mode, epoch=2) + 1):
        calls = Calls()
        with sink_on(tmp_path / f"t{number}", mode) as sink:
            sink.write(EPOCHS[1], epoch=1)
            staged = sink.stage(EPOCHS[2])

            def take_over(sink: Sink = sink, staged: Any = staged) -> None:
                sink.commit(staged, epoch=2, generation=2)
                sink.restore()
                sink.write(EPOCHS[3], epoch=3, generation=2)

            with pytest.MonkeyPatch.context() as patch:
                calls.install(patch)
                calls.interrupt(number, take_over)
                ended = attempt(partial(sink.commit, staged, epoch=2, generation=1))
            assert found(sink) == expected(mode, 3)
            assert ended is None or "this driver must stop" in str(ended)


def test_a_driver_that_lost_the_job_is_refused(tmp_path, mode):
    with sink_on(tmp_path / "t", mode) as sink:
        first = sink.write(EPOCHS[1], epoch=1)
        second = sink.write(EPOCHS[2], epoch=2, generation=2)
        for staged, epoch in ((first, 1), (second, 2)):
            with pytest.raises(OperatorError, match="this driver must stop") as refused:
                sink.commit(staged, epoch=epoch, generation=1)
            assert retry_hint(refused.value) is RetryHint.NO_RETRY
        assert found(sink) == expected(mode, 2)


@pytest.mark.parametrize("generations", [(1, 1, 1), (1, 2, 3)])
def test_of_drivers_that_commit_at_once_one_does(tmp_path, mode, generations):
    for turn in range(4):
        with sink_on(tmp_path / f"t{turn}", mode, is_new=turn % 2 == 0) as sink:
            if turn % 2:
                sink.write(EPOCHS[1], epoch=1)
            epoch = 1 + turn % 2
            staged = sink.stage(EPOCHS[epoch])
            gate, ended = threading.Barrier(len(generations)), []
            drive = partial(commit_at_once, gate, ended)

            threads = [
                threading.Thread(target=drive, args=(partial(sink.commit, staged, epoch=epoch, generation=each),))
                for each in generations
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert all(each is None or "this driver must stop" in str(each) for each in ended), ended
            assert found(sink) == expected(mode, epoch, is_new=turn % 2 == 0)


def test_an_epoch_is_one_entry_of_the_log_with_its_marker(tmp_path, mode):
    with sink_on(tmp_path / "t", mode) as sink:
        sink.write(EPOCHS[1], epoch=1)
        before = DeltaTable(str(sink.table)).version()
        sink.write(EPOCHS[2], epoch=2)
        sink.write([], epoch=3)
        table = DeltaTable(str(sink.table))
        assert table.version() == before + 1
        entry = (sink.table / "_delta_log" / f"{table.version():020}.json").read_text().splitlines()
        markers = [json.loads(line)["txn"] for line in entry if "txn" in json.loads(line)]
        assert [(each["appId"].split("/")[0::3], each["version"]) for each in markers] == [
            (["arroyo"], 2),
            (["arroyo", "generation"], 1),
        ]


def test_a_commit_is_found_again_after_the_log_was_cleaned_and_the_table_compacted(tmp_path):
    with sink_on(tmp_path / "t") as sink:
        sink.write(EPOCHS[1], epoch=1)
        staged = sink.write(EPOCHS[2], epoch=2)
        DeltaTable(str(sink.table)).optimize.compact()
        vacuum(sink.table)
        DeltaTable(str(sink.table)).create_checkpoint()
        for entry in sorted((sink.table / "_delta_log").glob("*.json"))[:-1]:
            entry.unlink()
        sink.commit(staged, epoch=2, generation=2)
        found = pa.table(DeltaTable(str(sink.table)).scan())
        assert sorted(found["n"].to_pylist()) == [0, 0, 0, 1, 1, 1, 2, 2]


def test_a_file_that_is_gone_is_not_made_part_of_the_table(tmp_path, mode):
    with sink_on(tmp_path / "t", mode) as sink:
        sink.write(EPOCHS[1], epoch=1)
        staged = sink.stage(EPOCHS[2])
        DeltaTable(str(sink.table)).vacuum(
            retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True
        )
        with pytest.raises(OperatorError, match="rows were staged there") as lost:
            sink.commit(staged, epoch=2)
        assert isinstance(lost.value.__cause__, LostFileError)
        assert found(sink) == expected(mode, 1)


def test_what_dead_attempts_have_left_goes_with_the_commit(tmp_path, mode):
    with sink_on(tmp_path / "t", mode) as sink:
        sink.write(EPOCHS[1], epoch=1)
        for row in EPOCHS[2]:
            sink.harness.process(pa.RecordBatch.from_pylist([row], schema=SCHEMA))
        sink.harness.checkpoint(is_lost=True)
        sink.harness.crash()
        staged = sink.stage(EPOCHS[2])
        sink.commit(staged, epoch=2)
        assert found(sink) == expected(mode, 2)
        live = {path.split("/t/")[1] for path in DeltaTable(str(sink.table)).file_uris()}
        of_epoch = {str(path.relative_to(sink.table)) for path in (sink.table / "arroyo").glob("*/2/*")}
        assert of_epoch <= live


def test_changes_that_another_driver_has_merged_and_deleted_meanwhile_are_no_failure(tmp_path, monkeypatch):
    """Between the look at the files and the merge."""
    merge = commit.merge
    with sink_on(tmp_path / "t", "merge") as sink:
        staged = sink.stage(EPOCHS[1])

        def late(*args: Any) -> None:
            monkeypatch.setattr(commit, "merge", merge)
            sink.commit(staged, epoch=1)
            merge(*args)

        monkeypatch.setattr(commit, "merge", late)
        sink.commit(staged, epoch=1)
        assert found(sink) == expected("merge", 1)


def test_what_others_write_while_a_commit_is_made_is_seen_by_it(tmp_path, mode, calls):
    """A row with a key of the epoch, in a partition of the epoch."""
    theirs = {"id": 2, "place": "y", "n": -1}
    with sink_on(tmp_path / "t", mode) as sink:
        staged = sink.stage(EPOCHS[1])

        def write_too() -> None:
            write_deltalake(str(sink.table), pa.Table.from_pylist([theirs], schema=SCHEMA), mode="append")

        entry = 4
        with pytest.MonkeyPatch.context() as patch:
            calls.install(patch)
            calls.interrupt(entry, write_too)
            sink.commit(staged, epoch=1)
        assert calls.names[entry - 1] in ("create_write_transaction", "execute")
        is_kept = mode in ("append", "partitions")
        assert found(sink) == sorted([*expected(mode, 1), *([(2, "y", -1)] if is_kept else [])], key=repr)


def test_a_conflict_that_does_not_end_is_an_outage(tmp_path, monkeypatch):
    def refuse(*args: object, **options: object) -> None:
        raise CommitFailedError("somebody is always faster")

    monkeypatch.setattr(commit, "PATIENCE_S", 0.0)
    monkeypatch.setattr(DeltaTable, "create_write_transaction", refuse)
    with sink_on(tmp_path / "t") as sink:
        staged = sink.stage(EPOCHS[1])
        with pytest.raises(OperatorError, match="somebody is always faster") as failed:
            sink.commit(staged, epoch=1)
        assert isinstance(failed.value.__cause__, ExternalError)
