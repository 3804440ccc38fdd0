"""A commit that is interrupted at any call, repeated, or done by a driver that lost the job: each row is there once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from arroyo_iceberg.sweeping import list_files

from arroyo_core.api import CommitToken
from arroyo_core.errors import OperatorError

from .support.faults import Calls, Crash, Fault
from .support.sinks import Sink

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
ROWS = 12
MODES: dict[str, dict[str, Any]] = {
    "append": {},
    "append to partitions": {"partition_by": ["bucket(2, id)"]},
    "merge": {"mode": "merge", "keys": ["name"]},
    "overwrite_partitions": {"mode": "overwrite_partitions", "partition_by": ["name"]},
    "append to a branch": {"branch": "audit"},
}


@pytest.fixture(params=list(MODES))
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def subtasks() -> int:
    return 2


@pytest.fixture
def sink(tmp_path: Path, mode: str, subtasks: int) -> Iterator[Sink]:
    with Sink(SCHEMA, folder=tmp_path, parallelism=subtasks, **MODES[mode]) as made:
        yield made


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    return Calls(monkeypatch)


class Numbers:
    """Rows with ids that no other row has, and which of them must be in the table."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._next = 0
        self._rows: list[tuple[int, str]] = []

    def take(self) -> list[dict[str, Any]]:
        """The rows of the next epoch; half of the names come again in each."""
        numbers = range(self._next, self._next + ROWS)
        self._next += ROWS
        rows = [(number, f"k{number % 6 + (number // ROWS) % 3 * 3}") for number in numbers]
        self._rows += rows
        return [{"id": number, "name": name} for number, name in rows]

    def check(self) -> None:
        """By pyiceberg, and by DuckDB from the files that the table lists."""
        rows = self._rows
        if self._sink.settings.keys:
            rows = [(number, name) for name, number in {name: number for number, name in rows}.items()]
        branch = self._sink.settings.branch
        head = self._sink.table.snapshot_by_name(branch)
        assert head is not None
        scan = self._sink.table.scan(snapshot_id=head.snapshot_id)
        found = [(row["id"], row["name"]) for row in scan.to_arrow().to_pylist()]
        assert Counter(found) == Counter(rows)
        files = [task.file.file_path for task in scan.plan_files()]
        assert Counter(duckdb.sql(f"select id, name from read_parquet({files})").fetchall()) == Counter(rows)


def count_calls(sink: Sink, numbers: Numbers, calls: Calls) -> int:
    sink.write(numbers.take())
    staged = sink.stage(numbers.take())
    with calls.watching():
        sink.commit(staged)
        assert {"load_table", "commit_table", "open", "create"} <= set(calls.names)
        count = len(calls.names)
    sink.harness.restore()
    return count


@pytest.mark.parametrize("fault", Fault)
def test_a_commit_that_is_interrupted_at_any_call_is_finished_by_the_next_driver(sink, calls, fault):
    numbers = Numbers(sink)
    count = count_calls(sink, numbers, calls)
    happened = 0
    for number in range(1, count + 1):
        staged = sink.stage(numbers.take())
        with calls.watching():
            calls.fail(number, fault)
            try:
                sink.commit(staged)
            except (Crash, OperatorError):
                happened += 1
        sink.harness.take_over()
        sink.commit(staged)
        sink.harness.restore()
    numbers.check()
    # Where the sweep at the end fails, the epoch is committed all the same.
    assert happened >= count - 3
    if fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER):
        assert happened == count


def attempt(sink: Sink, staged: Any, token: CommitToken) -> OperatorError | None:
    """Commit, and return what came of it."""
    try:
        sink.commit(staged, token=token)
    except OperatorError as error:
        return error
    return None


@pytest.mark.parametrize("subtasks", [1])
def test_a_driver_that_wakes_up_between_any_two_calls_changes_nothing(sink, calls):
    numbers = Numbers(sink)
    fenced = 0
    for number in range(1, count_calls(sink, numbers, calls) + 1):
        staged = sink.stage(numbers.take())
        token = sink.harness.last_token

        def at(now: int, name: str, call: Callable[[], Any], number: int = number, staged: Any = staged) -> Any:
            if now == number:
                # The second driver takes over while the first one is asleep, and goes on.
                with calls.as_another_process():
                    sink.harness.take_over()
                    sink.commit(staged)
                    sink.harness.restore()
                    sink.write(numbers.take())
            return call()

        with calls.watching():
            calls.at = at
            problem = attempt(sink, staged, token)
        if problem is not None:
            fenced += 1
            assert "this driver must stop" in str(problem)
            assert problem.cause_retry == "no_retry"
        sink.write(numbers.take())
    numbers.check()
    assert fenced


@pytest.mark.parametrize("mode", ["append", "merge"], indirect=True)
def test_of_two_drivers_at_once_one_commits_and_the_other_sees_the_marker(sink):
    numbers = Numbers(sink)
    for _ in range(5):
        sink.commit_at_once(sink.stage(numbers.take()), drivers=2)
    numbers.check()
    assert len(sink.table.metadata.snapshots) == 5


@pytest.mark.parametrize("mode", ["append", "merge"], indirect=True)
def test_a_commit_that_the_catalog_made_and_then_refused_keeps_its_files(sink, calls):
    """What pyiceberg deletes after a refusal would be the manifests of the table."""
    numbers = Numbers(sink)
    sink.write(numbers.take())
    staged = sink.stage(numbers.take())
    with calls.watching():
        calls.refuse_what_is_done()
        sink.commit(staged)
    sink.harness.restore()
    numbers.check()
    assert len(sink.table.metadata.snapshots) == 2


def test_another_writer_between_look_and_commit_is_kept(sink, calls, mode):
    numbers = Numbers(sink)
    sink.write(numbers.take())
    staged = sink.stage(numbers.take())
    others = pa.table({"id": pa.array([-1], pa.int64()), "name": ["of another writer"]})
    done = []

    def at(now: int, name: str, call: Callable[[], Any]) -> Any:
        if name == "commit_table" and not done:
            done.append(now)
            with calls.as_another_process():
                sink.table.append(others, branch=sink.settings.branch)
        return call()

    with calls.watching():
        calls.at = at
        sink.commit(staged)
        assert calls.names.count("commit_table") == 2
    numbers._rows.append((-1, "of another writer"))
    numbers.check()


def expire_all(sink: Sink) -> None:
    """As after days: only the newest snapshots are left."""
    table = sink.table
    heads = {ref.snapshot_id for ref in table.metadata.refs.values()}
    old = [each.snapshot_id for each in table.metadata.snapshots if each.snapshot_id not in heads]
    table.maintenance.expire_snapshots().by_ids(old).commit()


def test_a_commit_is_known_when_its_snapshot_has_expired(sink):
    """The driver died when the epoch was committed, and the job is started again after days."""
    numbers = Numbers(sink)
    sink.write(numbers.take())
    staged = sink.stage(numbers.take())
    sink.commit(staged)
    numbers._rows.append((-1, "of another writer"))
    sink.table.append(
        pa.table({"id": pa.array([-1], pa.int64()), "name": ["of another writer"]}), branch=sink.settings.branch
    )
    expire_all(sink)
    assert len(sink.table.metadata.snapshots) == len({ref.snapshot_id for ref in sink.table.metadata.refs.values()})
    sink.harness.take_over()
    sink.commit(staged)
    numbers.check()


@pytest.mark.parametrize("mode", ["append"], indirect=True)
def test_a_marker_in_the_snapshots_counts_where_the_property_is_gone(sink):
    numbers = Numbers(sink)
    sink.write(numbers.take())
    staged = sink.stage(numbers.take())
    sink.commit(staged)
    forget_property(sink)
    sink.harness.take_over()
    sink.commit(staged)
    numbers.check()


def forget_property(sink: Sink) -> None:
    table = sink.table
    with table.transaction() as transaction:
        transaction.remove_properties(*(name for name in table.properties if name.startswith("arroyo.")))


@pytest.mark.parametrize("mode", ["append"], indirect=True)
def test_a_lost_marker_stops_the_job_and_says_what_to_do(sink):
    numbers = Numbers(sink)
    sink.write(numbers.take())
    staged = sink.stage(numbers.take())
    sink.commit(staged)
    forget_property(sink)
    sink.table.append(pa.table({"id": pa.array([-1], pa.int64()), "name": ["x"]}))
    expire_all(sink)
    sink.harness.take_over()
    with pytest.raises(OperatorError, match=r"lost the marker.*Set the property again") as caught:
        sink.commit(staged)
    assert caught.value.cause_retry == "no_retry"
    name = "arroyo.00000000000000a1.operator"
    with sink.table.transaction() as transaction:
        transaction.set_properties({name: '{"generation":1,"epoch":2,"base":0}'})
    sink.commit(staged)
    numbers._rows.append((-1, "x"))
    numbers.check()


@pytest.mark.parametrize("mode", ["append"], indirect=True)
def test_a_table_that_was_made_again_gets_nothing_of_the_old_one(sink):
    numbers = Numbers(sink)
    staged = sink.stage(numbers.take())
    catalog = sink.settings.catalog.open()
    schema = sink.table.schema()
    catalog.drop_table(sink.settings.table.identifier)
    catalog.create_table(sink.settings.table.identifier, schema)
    with pytest.raises(OperatorError, match="dropped and made again"):
        sink.commit(staged)


@pytest.mark.parametrize("mode", ["append", "merge"], indirect=True)
def test_what_attempts_that_did_not_count_have_left_goes_with_the_commit(sink):
    numbers = Numbers(sink)
    sink.write(numbers.take())
    rows = pa.RecordBatch.from_pylist(numbers.take(), schema=SCHEMA)
    sink.harness.process(rows)
    sink.harness.checkpoint(is_lost=True)
    sink.harness.crash()
    staged = sink.stage(rows)
    data = sink.table.location_provider().data_path
    before = {path for path, _ in list_files(sink.table, data)}
    sink.commit(staged)
    numbers.check()
    files = {task.file.file_path for task in sink.table.scan().plan_files()}
    gone = before - {path for path, _ in list_files(sink.table, data)}
    assert len(gone) == 2
    assert not gone & files


@pytest.mark.parametrize("mode", ["append"], indirect=True)
def test_a_commit_that_always_meets_others_is_an_outage(sink, calls, monkeypatch):
    monkeypatch.setattr("arroyo_iceberg.commit.WAIT_SECONDS", 0.0)
    numbers = Numbers(sink)
    sink.write(numbers.take())
    staged = sink.stage(numbers.take())
    before = {path for path, _ in list_files(sink.table, sink.table.location_provider().metadata_path)}

    def at(now: int, name: str, call: Callable[[], Any]) -> Any:
        if name == "commit_table":
            with calls.as_another_process():
                sink.table.append(pa.table({"id": pa.array([-1], pa.int64()), "name": ["x"]}))
        return call()

    with calls.watching():
        calls.at = at
        with pytest.raises(OperatorError, match="other writers were faster 20 times") as caught:
            sink.commit(staged)
    assert caught.value.cause_retry == "with_backoff"
    table = sink.table
    known = {snapshot.manifest_list for snapshot in table.metadata.snapshots}
    known |= {
        manifest.manifest_path for snapshot in table.metadata.snapshots for manifest in snapshot.manifests(table.io)
    }
    known |= {table.metadata_location} | {entry.metadata_file for entry in table.metadata.metadata_log}
    after = {path for path, _ in list_files(table, table.location_provider().metadata_path)}
    assert after - before <= known, "manifests of refused commits are deleted"


def test_commit_data_of_others_add_no_file(tmp_path):
    with Sink(SCHEMA, folder=tmp_path) as sink:
        staged = sink.stage([{"id": 1, "name": "a"}])
        data = staged["files"][0].replace(b"/warehouse/", b"/elsewhere/")
        with pytest.raises(OperatorError, match="did not stage"):
            sink.commit({"files": {0: data}})
        assert sink.rows() == []
        sink.commit(staged)
        assert sink.rows() == [{"id": 1, "name": "a"}]


def test_a_staged_file_that_is_gone_is_not_added(tmp_path):
    with Sink(SCHEMA, folder=tmp_path) as sink:
        staged = sink.stage([{"id": 1, "name": "a"}])
        (path,) = [path for path, _ in list_files(sink.table, sink.table.location_provider().data_path)]
        Path(path).unlink()
        sink.harness.take_over()
        with pytest.raises(OperatorError, match="was staged, and is gone") as caught:
            sink.commit(staged)
        assert caught.value.cause_retry == "no_retry"
        assert sink.table.metadata.snapshots == []


def test_an_epoch_without_rows_makes_no_commit(tmp_path):
    with Sink(SCHEMA, folder=tmp_path) as sink:
        sink.write([])
        assert sink.table.metadata.snapshots == []
        assert datetime.fromtimestamp(sink.table.metadata.last_updated_ms / 1000, UTC) > datetime.now(UTC) - timedelta(
            1
        )
