import json
import sqlite3
from contextlib import closing

import pyarrow as pa
import pytest
from arroyo_template.config_pb2 import SqliteUpsertConfig
from arroyo_template.plugin import SqliteUpsertConstructor
from arroyo_testing import ParallelHarness

from arroyo_core.api import ArroyoSchema, Registry
from arroyo_core.errors import ConfigError, OperatorError, RetryHint, retry_hint

STREAM = ArroyoSchema(pa.schema([("word", pa.string()), ("n", pa.int64())]))


def construct(path, key="word"):
    return SqliteUpsertConstructor().with_config(SqliteUpsertConfig(path=str(path), key=key), Registry())


def sink(path, **settings):
    return ParallelHarness(lambda: construct(path), inputs=[STREAM], **settings)


def rows(**values):
    return pa.record_batch({"word": list(values), "n": pa.array(list(values.values()), pa.int64())})


def latest(path):
    with closing(sqlite3.connect(path)) as database:
        found = [json.loads(row) for (row,) in database.execute("select row from latest")]
    return {row["word"]: row["n"] for row in found}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "last.db"


def test_the_last_row_of_a_key_counts(path):
    with sink(path, parallelism=2) as harness:
        harness.process(rows(a=1, b=2))
        harness.process(rows(a=3))
        harness.commit(harness.checkpoint())
        assert latest(path) == {"a": 3, "b": 2}


def test_a_driver_that_lost_the_job_brings_nothing_back(path):
    with sink(path) as harness:
        harness.process(rows(a=1, b=1))
        staged, token = harness.checkpoint(), harness.last_token
        harness.take_over()
        harness.commit(staged)
        harness.process(rows(a=2))
        harness.commit(harness.checkpoint())
        with pytest.raises(OperatorError, match="has rows of a newer driver") as refused:
            harness.commit(staged, token=token)
        assert retry_hint(refused.value) is RetryHint.NO_RETRY
        assert latest(path) == {"a": 2, "b": 1}


def test_two_jobs_share_a_database(path):
    with sink(path, incarnation="a1") as one, sink(path, incarnation="b2") as other:
        for _ in range(3):
            one.process(rows(a=1))
            one.commit(one.checkpoint())
        other.process(rows(b=2))
        other.commit(other.checkpoint())
        assert latest(path) == {"a": 1, "b": 2}


def test_a_database_that_is_locked_may_be_free_later(path, monkeypatch):
    with sink(path) as harness, closing(sqlite3.connect(path)) as other:
        harness.process(rows(a=1))
        staged = harness.checkpoint()
        other.execute("begin exclusive")
        connect = sqlite3.connect
        monkeypatch.setattr(sqlite3, "connect", lambda place: connect(place, timeout=0))
        with pytest.raises(OperatorError, match="database is locked") as locked:
            harness.commit(staged)
        assert retry_hint(locked.value) is RetryHint.WITH_BACKOFF
        other.rollback()
        harness.commit(staged)
        assert latest(path) == {"a": 1}


def test_a_column_that_is_not_there_is_refused():
    with pytest.raises(ConfigError) as refused:
        construct("x.db", key="wrod").operator.output_schema([STREAM])
    assert refused.value.field == "key"
