"""The same over a catalog in PostgreSQL, which the tests start."""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from arroyo_core.errors import ConfigError, OperatorError

from .support.faults import Calls, Crash, Fault
from .support.postgres import PASSWORD, USER, find_postgres, postgres_server
from .support.sinks import Sink

pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    programs = find_postgres()
    if programs is None or importlib.util.find_spec("psycopg") is None:
        missing = "there is no PostgreSQL for tests: install the server, and arroyo-iceberg[postgres]"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    with postgres_server(programs) as found:
        yield found


@pytest.fixture
def catalog(port: int, tmp_path: Path) -> dict[str, Any]:
    return {
        "uri": f"postgresql+psycopg://{USER}@127.0.0.1:{port}/postgres",
        "name": tmp_path.name,
        "password": PASSWORD,
        "warehouse": str(tmp_path / "warehouse"),
    }


def rows(first: int) -> list[dict[str, Any]]:
    return [{"id": number, "name": f"k{number}"} for number in range(first, first + 4)]


def found(sink: Sink) -> Counter[int]:
    return Counter(row["id"] for row in sink.rows())


@pytest.mark.parametrize("fault", Fault)
def test_a_commit_that_is_interrupted_at_any_call_is_finished_by_the_next_driver(catalog, monkeypatch, fault):
    calls = Calls(monkeypatch)
    with Sink(SCHEMA, catalog=catalog, parallelism=2) as sink:
        sink.write(rows(0))
        staged = sink.stage(rows(4))
        with calls.watching():
            sink.commit(staged)
            count = len(calls.names)
        sink.harness.restore()
        for number in range(1, count + 1):
            staged = sink.stage(rows(4 + 4 * number))
            with calls.watching():
                calls.fail(number, fault)
                with contextlib.suppress(Crash, OperatorError):
                    sink.commit(staged)
            sink.harness.take_over()
            sink.commit(staged)
            sink.harness.restore()
        assert found(sink) == Counter(range(4 * (count + 2)))


def test_of_several_drivers_at_once_one_commits_and_the_others_see_the_marker(catalog):
    with Sink(SCHEMA, catalog=catalog) as sink:
        for number in range(5):
            sink.commit_at_once(sink.stage(rows(4 * number)), drivers=4)
        assert found(sink) == Counter(range(20))
        assert len(sink.table.metadata.snapshots) == 5


def test_a_wrong_password_is_an_outage_that_does_not_show_it(catalog):
    wrong = {**catalog, "password": "not the word"}
    with Sink(SCHEMA, catalog=wrong, if_missing="fail") as sink:
        with pytest.raises((OperatorError, ConfigError), match="password authentication failed") as caught:
            sink.write(rows(0))
        assert "not the word" not in str(caught.value)
