"""The sink over a target in memory that may fail at any call: epochs are there once, older drivers are refused."""

from __future__ import annotations

from contextlib import contextmanager
from copy import deepcopy

import pyarrow as pa
import pytest
from arroyo_connectors import Committed, Mode, Target, TransactionalSink, Writer, staging
from arroyo_connectors.staging import StagedEpoch, StagedWriter
from arroyo_testing import ParallelHarness

from arroyo_core.api import ArroyoSchema
from arroyo_core.api.updating import make_updates, row_ids, with_updating
from arroyo_core.errors import ExternalError, OperatorError, RetryHint, StateError, retry_hint

STREAM = ArroyoSchema(pa.schema({"key": pa.string(), "n": pa.int64()}))


class OutageError(Exception):
    """What the client library raises."""


class Store:
    """Rows and tokens, and at which call of a transaction it fails: before the call, or after it."""

    def __init__(self):
        self.rows, self.tokens = [], {}
        self.calls, self.fail_at, self.is_late = 0, None, False

    @contextmanager
    def call(self):
        self.calls += 1
        is_failing = self.calls == self.fail_at
        if is_failing and not self.is_late:
            raise OutageError("gone")
        yield
        if is_failing:
            raise OutageError("no answer")


class StoreTarget(Target):
    def __init__(self, store, schema):
        self.store, self.schema = store, schema

    def name(self):
        return "the store"

    @contextmanager
    def transaction(self):
        store = self.store
        with store.call():
            inside = deepcopy((store.rows, store.tokens))
        yield StoreWriter(store, *inside)
        with store.call():
            store.rows, store.tokens = inside

    def translate(self, error):
        return ExternalError(f"cannot write: {error}") if isinstance(error, OutageError) else None


class StoreWriter(Writer):
    def __init__(self, store, rows, tokens):
        self.store, self.rows, self.tokens = store, rows, tokens

    def lock_token(self, key):
        with self.store.call():
            return self.tokens.get(key)

    def write_token(self, key, committed, *, is_new):
        with self.store.call():
            assert is_new == (key not in self.tokens)
            self.tokens[key] = committed

    def add(self, rows):
        with self.store.call():
            self.rows += rows.to_pylist()

    def replace(self, rows):
        with self.store.call():
            names = rows.column("key").to_pylist()
            self.rows[:] = [row for row in self.rows if row["key"] not in names] + rows.to_pylist()

    def remove(self, keys):
        with self.store.call():
            assert keys.schema.names == ["key"]
            gone = keys.column("key").to_pylist()
            self.rows[:] = [row for row in self.rows if row["key"] not in gone]


class StoreSink(TransactionalSink):
    def __init__(self, store, **settings):
        super().__init__(**settings)
        self.store = store

    def name(self):
        return "t.store"

    def target(self, schema):
        return StoreTarget(self.store, schema)

    def token_place(self):
        return "the store"


def rows(*items):
    return pa.RecordBatch.from_pylist([{"key": key, "n": n} for key, n in items], STREAM.schema)


def sink(store, *, parallelism=1, stream=STREAM, incarnation="a1", **settings):
    return ParallelHarness(
        lambda: StoreSink(store, **settings), inputs=[stream], parallelism=parallelism, incarnation=incarnation
    )


def found(store):
    return sorted((row["key"], row["n"]) for row in store.rows)


UPSERT = {"mode": Mode.UPSERT, "keys": ["key"]}
FIRST, SECOND = rows(("a", 1), ("b", 2)), rows(("a", 3), ("c", 4))


def test_rows_are_there_after_their_commit_and_counted():
    store = Store()
    with sink(store, parallelism=3) as harness:
        harness.process(FIRST)
        staged = harness.checkpoint()
        assert found(store) == []
        harness.commit(staged)
        assert found(store) == [("a", 1), ("b", 2)]
        assert harness.counters == {"written_rows": 2}


def test_an_epoch_without_rows_reaches_nobody():
    store = Store()
    with sink(store, **UPSERT) as harness:
        harness.commit(harness.checkpoint())
    assert store.calls == 0


def test_changes_replace_and_remove_rows():
    store = Store()
    stream = with_updating(STREAM)
    with sink(store, stream=stream, parallelism=2, **UPSERT) as harness:
        for batch, is_retract in ((FIRST, False), (rows(("b", 2)), True), (rows(("a", 9)), False)):
            harness.process(make_updates(batch, is_retract=is_retract, ids=row_ids(batch, ["key"])))
            harness.commit(harness.checkpoint())
            harness.go_on()
        assert harness.counters == {"written_rows": 3, "deleted_rows": 1}
    assert found(store) == [("a", 9)]


@pytest.mark.parametrize("settings", [{}, UPSERT], ids=["append", "upsert"])
@pytest.mark.parametrize("is_late", [False, True], ids=["before", "answer lost"])
def test_a_failure_at_any_call_of_a_commit_neither_loses_nor_doubles_rows(settings, is_late):
    expected = [("a", 3), ("b", 2), ("c", 4)] if settings else [("a", 1), ("a", 3), ("b", 2), ("c", 4)]
    failures, hints = 0, set()
    for fail_at in range(1, 30):
        store = Store()
        with sink(store, **settings) as harness:
            for batch in (FIRST, SECOND):
                harness.process(batch)
                staged = harness.checkpoint()
                store.fail_at, store.is_late = (store.calls + fail_at if batch is SECOND else None), is_late
                try:
                    harness.commit(staged)
                except OperatorError as error:
                    hints.add(retry_hint(error))
                    failures += 1
                    harness.take_over()
                    harness.commit(staged)
                harness.restore()
        assert found(store) == expected
    assert failures >= 5
    assert hints == {RetryHint.WITH_BACKOFF}


def test_a_driver_that_lost_the_job_is_refused_whatever_it_brings():
    store = Store()
    with sink(store, **UPSERT) as harness:
        harness.process(FIRST)
        staged, token = harness.checkpoint(), harness.last_token
        harness.take_over()
        harness.commit(staged)
        with pytest.raises(OperatorError, match="generation 2 of this job has written to the store") as refused:
            harness.commit(staged, token=token)
        assert retry_hint(refused.value) is RetryHint.NO_RETRY
    assert found(store) == [("a", 1), ("b", 2)]


def test_a_driver_that_finds_its_epoch_committed_still_refuses_the_one_before():
    store = Store()
    with sink(store) as harness:
        harness.process(FIRST)
        staged, token = harness.checkpoint(), harness.last_token
        harness.commit(staged)
        harness.take_over()
        harness.commit(staged)
        assert list(store.tokens.values()) == [Committed(token.generation + 1, token.epoch)]
        with pytest.raises(OperatorError, match="must stop"):
            harness.commit(staged, token=token)
    assert found(store) == [("a", 1), ("b", 2)]


def test_another_job_counts_from_one_again():
    store = Store()
    for incarnation in ("a1", "b2"):
        with sink(store, incarnation=incarnation) as harness:
            harness.process(FIRST)
            harness.commit(harness.checkpoint())
    assert len(store.rows) == 4


def test_what_a_target_cannot_do_is_said(monkeypatch):
    monkeypatch.setattr(StoreWriter, "replace", Writer.replace)
    with sink(Store(), **UPSERT) as harness:
        harness.process(FIRST)
        with pytest.raises(OperatorError, match="StoreWriter cannot replace rows"):
            harness.commit(harness.checkpoint())


def test_the_place_of_the_tokens_is_a_setting_of_the_state():
    assert StoreSink(Store()).state_settings([STREAM]) == {"tokens": "the store"}


def test_large_epochs_are_staged_in_parts(monkeypatch):
    monkeypatch.setattr(staging, "BATCH_ROWS", 100)
    writer = StagedWriter(STREAM.schema, staging.Staged(mode=Mode.APPEND))
    for start in (0, 250, 500):
        writer.write(rows(*((str(n), n) for n in range(start, start + 250))))
    parts = [batch.rows for batch in StagedEpoch({0: writer.close()}).batches()]
    assert max(part.num_rows for part in parts) <= 100
    assert [n for part in parts for n in part.column("n").to_pylist()] == list(range(750))


def test_what_a_newer_version_staged_is_not_guessed(monkeypatch):
    writer = StagedWriter(STREAM.schema, staging.Staged(mode=Mode.APPEND, version=2))
    writer.write(FIRST)
    with pytest.raises(StateError, match="newer arroyo-connectors"):
        list(StagedEpoch({0: writer.close()}).batches())
