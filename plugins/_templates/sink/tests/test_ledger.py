import json
import sqlite3
from contextlib import closing

import pyarrow as pa
import pytest
from arroyo_template_sink import ledger
from arroyo_template_sink.config_pb2 import LedgerConfig
from arroyo_template_sink.plugin import LedgerConstructor
from arroyo_testing import ParallelHarness

from arroyo_core.api import ArroyoSchema, Registry, with_defaults
from arroyo_core.errors import ConfigError, OperatorError, RetryHint, retry_hint

STREAM = ArroyoSchema(pa.schema([("n", pa.int64())]))


def construct(path, **config):
    return LedgerConstructor().with_config(with_defaults(LedgerConfig(path=str(path), **config)), Registry())


def sink(path, **settings):
    return ParallelHarness(lambda: construct(path), inputs=[STREAM], **settings)


def rows(*numbers):
    return pa.record_batch({"n": pa.array(numbers, pa.int64())})


def written(path):
    with closing(sqlite3.connect(path)) as database:
        return sorted(json.loads(row)["n"] for (row,) in database.execute("select row from rows"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def test_rows_of_all_subtasks_are_there_after_the_commit_and_not_before(path):
    with sink(path, parallelism=2) as harness:
        harness.process(rows(1, 2, 3))
        staged = harness.checkpoint()
        assert not path.exists()
        harness.commit(staged)
        assert written(path) == [1, 2, 3]


def test_a_commit_that_is_repeated_adds_nothing(path):
    with sink(path) as harness:
        harness.process(rows(1, 2))
        staged = harness.checkpoint()
        harness.commit(staged)
        harness.commit(staged)
        assert written(path) == [1, 2]


def test_a_commit_by_the_driver_that_took_over_counts_once(path):
    with sink(path) as harness:
        harness.process(rows(1, 2))
        staged, token = harness.checkpoint(), harness.last_token
        harness.take_over()
        harness.commit(staged)
        # The first driver wakes up.
        harness.commit(staged, token=token)
        assert written(path) == [1, 2]


def test_another_job_is_another_incarnation_with_epochs_of_its_own(path):
    with sink(path, incarnation="a1") as one, sink(path, incarnation="b2") as other:
        for harness, number in ((one, 1), (other, 2)):
            harness.process(rows(number))
            harness.commit(harness.checkpoint())
        assert written(path) == [1, 2]


def test_a_database_that_is_locked_may_be_free_later(path, monkeypatch):
    monkeypatch.setattr(ledger, "TIMEOUT_S", 0.0)
    with sink(path) as harness, closing(sqlite3.connect(path)) as other:
        harness.process(rows(1))
        staged = harness.checkpoint()
        other.execute("begin exclusive")
        with pytest.raises(OperatorError, match="database is locked") as locked:
            harness.commit(staged)
        assert retry_hint(locked.value) is RetryHint.WITH_BACKOFF
        other.rollback()
        harness.commit(staged)
        assert written(path) == [1]


@pytest.mark.parametrize("table", ["a b", "1st", "x;drop table rows", ledger.EPOCHS])
def test_a_table_that_cannot_be_named_so_is_refused(path, table):
    with pytest.raises(ConfigError) as refused:
        construct(path, table=table)
    assert refused.value.field == "table"
