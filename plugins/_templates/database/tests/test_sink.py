import sqlite3
from contextlib import closing

import pyarrow as pa
import pytest
from arroyo_template_database import sink as sinks
from arroyo_template_database.config_pb2 import SinkConfig
from arroyo_template_database.plugin import SinkConstructor
from arroyo_testing import ParallelHarness

from arroyo_core.api import ArroyoSchema, Registry, with_defaults
from arroyo_core.errors import ConfigError, OperatorError, RetryHint, retry_hint

SCHEMA = pa.schema([("id", pa.int64()), ("gone", pa.bool_()), ('na"me', pa.string())])


def construct(path, **config):
    written = with_defaults(SinkConfig(path=str(path), table='my "rows"', **config))
    constructor = SinkConstructor()
    return constructor.with_config(constructor.resolve(written), Registry())


def sink(path, **config):
    return ParallelHarness(lambda: construct(path, **config), inputs=[ArroyoSchema(SCHEMA)], parallelism=2)


def rows(*values):
    return pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, value, strict=True)) for value in values], schema=SCHEMA)


def written(path):
    with closing(sqlite3.connect(path)) as database:
        return sorted(database.execute('select * from "my ""rows"""'))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "shop.db"


UPSERTS = {"mode": "upsert", "keys": ["id"], "deleted_column": "gone"}


def test_rows_of_all_subtasks_are_there_after_the_commit_and_not_before(path):
    with sink(path) as harness:
        harness.process(rows((1, False, "a"), (2, None, None)))
        staged = harness.checkpoint()
        assert not path.exists()
        harness.commit(staged)
    assert written(path) == [(1, 0, "a"), (2, None, None)]


def test_the_last_row_of_a_key_is_there_and_what_is_gone_is_not(path):
    with sink(path, **UPSERTS) as harness:
        for batch in (rows((1, False, "a"), (2, False, "b")), rows((2, True, None), (3, False, "c"), (1, False, "d"))):
            harness.process(batch)
            harness.commit(harness.checkpoint())
            harness.restore()
    assert written(path) == [(1, "d"), (3, "c")]


def test_a_transaction_that_breaks_in_the_middle_leaves_nothing_and_is_repeated(path, monkeypatch):
    write = sinks.TableWriter.add

    def broken(self, batch):
        write(self, batch)
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
        raise error

    with sink(path) as harness:
        harness.process(rows((1, False, "a")))
        staged = harness.checkpoint()
        with monkeypatch.context() as patch:
            patch.setattr(sinks.TableWriter, "add", broken)
            with pytest.raises(OperatorError, match="the database fails: disk I/O error") as failed:
                harness.commit(staged)
        assert retry_hint(failed.value) is RetryHint.WITH_BACKOFF
        harness.commit(staged)
        harness.commit(staged)
    assert written(path) == [(1, 0, "a")]


def test_a_table_with_other_columns_stops_the_job(path):
    with closing(sqlite3.connect(path)) as database:
        database.execute('create table "my ""rows""" (id bigint)')
    with sink(path) as harness:
        harness.process(rows((1, False, "a")))
        with pytest.raises(OperatorError, match="has no column named gone") as failed:
            harness.commit(harness.checkpoint())
    assert retry_hint(failed.value) is not RetryHint.WITH_BACKOFF


@pytest.mark.parametrize(
    ("kind", "config", "message"),
    [
        (pa.list_(pa.int64()), {}, "which the database has no type for"),
        (pa.uint64(), {}, "which the database has no type for"),
        (pa.int64(), {"mode": "merge"}, "unknown mode 'merge'"),
        (pa.int64(), {"keys": ["id"]}, "keys is for mode upsert"),
        (pa.int64(), {"mode": "upsert", "keys": ["none"]}, "no column 'none'"),
    ],
)
def test_mistakes_are_found_when_it_is_planned(path, kind, config, message):
    with pytest.raises(ConfigError, match=message):
        construct(path, **config).operator.output_schema([ArroyoSchema(pa.schema([("id", kind)]))])
