"""Passing failures of a remote store are waited out; lasting ones are told at once, and outages restart the job."""

from __future__ import annotations

import gzip
import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arroyo_filesystem.commit import commit_epoch
from arroyo_filesystem.file_names import FileNames
from arroyo_filesystem.location import Location
from arroyo_filesystem.patience import ATTEMPTS, HELD_BYTES, PatientFileSystem
from arroyo_filesystem.staging import Staging, encode_files
from arroyo_testing import FakeClock
from fsspec.implementations.memory import MemoryFileSystem

from arroyo_core.api import TaskInfo
from arroyo_core.errors import ExternalError, RetryHint, StateError, retry_hint

TASK = TaskInfo(job_id="job", operator_id="out", operator_name="filesystem.sink", task_index=0, parallelism=1)


class ReadTimeoutError(Exception):
    """Named as the one of an HTTP client, which is neither an OSError nor a TimeoutError."""


class Flaky:
    """A filesystem in memory; the next calls fail as `before` says."""

    protocol = "flaky"

    def __init__(self) -> None:
        self._fs = MemoryFileSystem(skip_instance_cache=True)
        self._fs.store = {}
        self._fs.pseudo_dirs = [""]
        self.before: list[Exception] = []
        self.calls: list[str] = []
        #: The number of a call, counted from 0, whose answer is lost.
        self.loses: int | None = None
        #: The number of a call that is not done.
        self.refuses: int | None = None

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._fs, name)
        if not callable(call):
            return call

        def flaky(*arguments: Any, **options: Any) -> Any:
            number = len(self.calls)
            self.calls.append(name)
            if self.before:
                raise self.before.pop(0)
            if number == self.refuses:
                raise ConnectionResetError
            result = call(*arguments, **options)
            if number == self.loses:
                raise ConnectionResetError
            return result

        return flaky


@pytest.fixture
def store() -> Flaky:
    return Flaky()


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def patient(store: Flaky, waits: list[float]) -> PatientFileSystem:
    return PatientFileSystem(store, sleep=waits.append)


def test_a_call_that_fails_in_passing_is_made_again_after_longer_and_longer_waits(
    store: Flaky, patient: PatientFileSystem, waits: list[float]
) -> None:
    store._fs.pipe_file("/a", b"xyz")
    store.before = [ReadTimeoutError(), ConnectionResetError(), OSError(16, "busy")]
    assert patient.size("/a") == 3
    assert store.calls == ["info"] * 4
    assert len(waits) == 3
    assert waits[0] < waits[2]


def test_an_outage_is_told_as_one_and_the_job_goes_on_later(store: Flaky, patient: PatientFileSystem) -> None:
    store.before = [ReadTimeoutError("no answer")] * ATTEMPTS
    with pytest.raises(ExternalError, match=r"cannot look at /a: no answer \(tried 5 times\)") as raised:
        patient.info("/a")
    assert retry_hint(raised.value) is RetryHint.WITH_BACKOFF


@pytest.mark.parametrize("error", [PermissionError("no"), ValueError("what"), FileNotFoundError("/a")])
def test_an_answer_is_not_asked_for_again(store: Flaky, patient: PatientFileSystem, error: Exception) -> None:
    store.before = [error]
    with pytest.raises(type(error)):
        patient.ls("/a", detail=False)
    assert store.calls == ["ls"]


def test_a_file_that_nobody_can_look_for_is_not_taken_for_missing(store: Flaky, patient: PatientFileSystem) -> None:
    store.before = [ReadTimeoutError()] * ATTEMPTS
    with pytest.raises(ExternalError):
        patient.exists("/a")
    assert not patient.exists("/a")


class BrokenReads(io.BytesIO):
    """Every second read moves on and then fails."""

    reads = 0

    def read(self, size: int | None = -1) -> bytes:
        self.reads += 1
        data = super().read(size)
        if self.reads % 2:
            raise ReadTimeoutError
        return data


def broken_reader(data: bytes, **options: Any) -> Any:
    store = Flaky()
    store._fs.open = lambda *_, **__: BrokenReads(data)
    return PatientFileSystem(store, sleep=lambda _: None).open("/a", "rb", **options)


def test_a_broken_read_is_made_again_from_where_it_began() -> None:
    with broken_reader(b"0123456789") as file:
        assert [file.read(4), file.read(4), file.read()] == [b"0123", b"4567", b"89"]


def test_compressed_files_are_read_patiently() -> None:
    assert broken_reader(gzip.compress(b"abc" * 1000), compression="gzip").read() == b"abc" * 1000


def test_parquet_is_read_patiently() -> None:
    table = pa.table({"a": list(range(1000))})
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=100)
    assert pq.ParquetFile(broken_reader(sink.getvalue())).read().equals(table)


def test_a_small_file_is_sent_until_it_has_arrived(store: Flaky, patient: PatientFileSystem) -> None:
    writer = patient.open("/a", "wb")
    writer.write(b"xy")
    writer.write(pa.py_buffer(b"z"))
    assert writer.tell() == 3
    assert store.calls == []
    store.before = [ReadTimeoutError(), ReadTimeoutError()]
    writer.close()
    writer.close()
    assert store.calls == ["pipe_file"] * 3
    assert store._fs.cat_file("/a") == b"xyz"


def test_a_large_file_is_sent_in_parts(store: Flaky, patient: PatientFileSystem) -> None:
    writer = patient.open("/a", "wb")
    part = bytes(HELD_BYTES // 2)
    for number in range(3):
        writer.write(part)
        assert store.calls == (["open"] if number == 2 else [])
    writer.close()
    assert writer.tell() == store._fs.size("/a") == 3 * len(part)


def test_a_large_file_whose_end_did_not_arrive_is_given_up_as_an_outage(
    store: Flaky, patient: PatientFileSystem
) -> None:
    class Unclosable(io.BytesIO):
        def close(self) -> None:
            if not self.closed:
                super().close()
                raise ReadTimeoutError("lost")

    store._fs.open = lambda *_, **__: Unclosable()
    writer = patient.open("/a", "wb")
    writer.write(bytes(HELD_BYTES + 1))
    with pytest.raises(ExternalError, match="cannot write /a: lost"):
        writer.close()


def stage(location: Location) -> bytes:
    stream = Staging(location, TASK, 1, FakeClock(), state_id="a1").begin(FileNames(), extension="txt")
    stream.stream.write(b"x")
    return encode_files([stream.close(1)])


@pytest.mark.parametrize("is_done", [True, False])
# Call 0 forgets a cache, which asks nobody.
@pytest.mark.parametrize("call", range(1, 8))
@pytest.mark.parametrize("protocol", ["memory", "hdfs"])
def test_any_call_of_a_commit_may_fail_or_lose_its_answer(protocol: str, call: int, is_done: bool) -> None:
    store = Flaky()
    store.protocol = protocol
    location = Location(PatientFileSystem(store, sleep=lambda _: None), "/out", f"{protocol}:///out")
    data = stage(location)
    store.calls.clear()
    store.loses, store.refuses = (call, None) if is_done else (None, call)
    commit_epoch(location, 1, {0: data}, TASK, state_id="a1")
    (name,) = store._fs.find("/out")
    assert name.startswith("/out/part-")
    assert store._fs.cat_file(name) == b"x"


@pytest.mark.parametrize("protocol", ["memory", "hdfs"])
def test_two_drivers_may_commit_the_same_epoch_at_once(protocol: str) -> None:
    store = Flaky()
    store.protocol = protocol
    location = Location(PatientFileSystem(store, sleep=lambda _: None), "/out", f"{protocol}:///out")
    data = stage(location)
    for name in ("cp_file", "mv", "rm_file", "makedirs", "ls"):
        done = getattr(store._fs, name)

        def after_the_other(*arguments: Any, name: str = name, done: Any = done, **options: Any) -> Any:
            setattr(store._fs, name, done)
            commit_epoch(location, 1, {0: data}, TASK, state_id="a1")
            return done(*arguments, **options)

        setattr(store._fs, name, after_the_other)
    commit_epoch(location, 1, {0: data}, TASK, state_id="a1")
    (name,) = store._fs.find("/out")
    assert store._fs.cat_file(name) == b"x"


def test_a_file_that_is_nowhere_is_an_error(store: Flaky, patient: PatientFileSystem) -> None:
    location = Location(patient, "/out", "flaky:///out")
    data = stage(location)
    store._fs.rm("/out", recursive=True)
    with pytest.raises(StateError, match="neither file exists"):
        commit_epoch(location, 1, {0: data}, TASK, state_id="a1")
