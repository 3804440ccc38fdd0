"""std.lookup_join with a table that is asked by key: which keys are asked for, and what is kept of the answers."""

from __future__ import annotations

import threading
from itertools import count

import numpy as np
import pyarrow as pa
import pytest
from arroyo_std.joins import key_cache
from arroyo_std.joins.key_cache import ENTRY_BYTES, MAX_SEGMENTS, KeyCache
from arroyo_std.plugin import arroyo_register
from arroyo_testing import FakeClock, OperatorHarness
from google.protobuf import struct_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import (
    ArroyoSchema,
    ConstructedOperator,
    KeyedLookupTable,
    LookupConstructor,
    LookupSource,
    OperatorConstructor,
    Registry,
    SourceFinishType,
    SourceOperator,
)
from arroyo_core.errors import ConfigError, DataError, ExternalError, InvalidPipelineError, OperatorError
from arroyo_core.pipeline import plan_text
from arroyo_core.plugin import PluginSet

STREAM = ArroyoSchema(pa.schema({"id": pa.int64(), "n": pa.int64()}))
TABLE = pa.schema({"key": pa.int64(), "name": pa.string()})
_NAMES = count()


class Shelf(KeyedLookupTable):
    """Rows in memory; notes what it is asked for."""

    def __init__(self, rows=(), *, schema=TABLE):
        self.rows = list(rows)
        self.asked = []
        self.problem = None
        self.found_schema = schema
        # The cache is that of the process.
        self.key = next(_NAMES)

    def name(self):
        return "shelf"

    def cache_key(self):
        return ("shelf", self.key)

    def schema(self):
        return TABLE

    def check_keys(self, keys):
        if "name" in keys:
            raise ConfigError("a shelf is asked by key only", allowed=["key"])

    def find(self, keys, schema):
        if self.problem is not None:
            raise self.problem
        wanted = keys.column("key").to_pylist()
        self.asked.append(sorted(wanted))
        return pa.Table.from_pylist(
            [{"key": key, "name": name} for key, name in self.rows if key in wanted], schema=self.found_schema
        )


class ShelfConstructor(LookupConstructor):
    config_type = struct_pb2.Struct

    def __init__(self, shelf):
        self.shelf = shelf

    def with_config(self, config, registry):
        return self.shelf


class Rows(SourceOperator):
    def name(self):
        return "t.rows"

    def output_schema(self, inputs):
        return STREAM

    def run(self, ctx, collector):
        return SourceFinishType.FINAL


class RowsConstructor(OperatorConstructor):
    config_type = struct_pb2.Struct

    def with_config(self, config, registry):
        return ConstructedOperator.from_source(Rows())


def make(shelf, *, on="{left: id, right: key}", more="type: inner", cache="{ttl: 60s}"):
    registry = Registry()
    arroyo_register(registry)
    registry.add("t.rows", RowsConstructor())
    registry.add_lookup("t.shelf", ShelfConstructor(shelf))
    text = f"""
name: shelves
nodes:
  - id: rows
    operator: t.rows
  - id: joined
    operator: std.lookup_join
    inputs: [rows]
    config: {{on: [{on}], cache: {cache}, table: {{lookup: t.shelf}}, {more}}}
  - id: out
    operator: std.blackhole
    inputs: [joined]
"""
    plugins = PluginSet(registry, [])
    node = plan_text(text, plugins=plugins, environment={}).nodes["joined"]
    constructor = plugins.constructor("std.lookup_join")
    return constructor.with_config(constructor.config_type.FromString(node.config), registry).operator


def harness(shelf, **settings):
    clock = settings.pop("clock", None) or FakeClock(now_us=1_000_000)
    return OperatorHarness(lambda: make(shelf, **settings), inputs=[STREAM], clock=clock)


def batch(*ids):
    return pa.RecordBatch.from_pydict({"id": pa.array(ids, pa.int64()), "n": pa.array(range(len(ids)), pa.int64())})


def pairs(subtask):
    return [(row["id"], row["n"], row.get("name")) for row in subtask.output.to_pylist()]


def test_a_batch_asks_once_for_all_its_keys_each_once_and_not_for_null():
    shelf = Shelf([(1, "a"), (2, "b")])
    with harness(shelf) as subtask:
        subtask.feed(batch(2, 1, 2, None, 1))
        assert sorted(pairs(subtask)) == [(1, 1, "a"), (1, 4, "a"), (2, 0, "b"), (2, 2, "b")]
    assert shelf.asked == [[1, 2]]


def test_answers_are_kept_also_those_without_a_row():
    shelf = Shelf([(1, "a")])
    with harness(shelf, more="type: left") as subtask:
        subtask.feed(batch(1, 7))
        shelf.rows = [(1, "z"), (7, "z"), (8, "h")]
        subtask.feed(batch(1, 7, 8))
        assert sorted(pairs(subtask), key=str) == sorted(
            [(1, 0, "a"), (7, 1, None), (1, 0, "a"), (7, 1, None), (8, 2, "h")], key=str
        )
    assert shelf.asked == [[1, 7], [8]]


def test_an_answer_that_is_too_old_is_asked_for_again_and_only_that():
    shelf, clock = Shelf([(1, "a"), (2, "b")]), FakeClock(now_us=1_000_000)
    with harness(shelf, clock=clock) as subtask:
        subtask.feed(batch(1))
        clock.advance(30)
        subtask.feed(batch(2))
        shelf.rows = [(1, "new"), (2, "new")]
        clock.advance(30)
        subtask.feed(batch(1, 2))
        assert pairs(subtask)[-2:] == [(1, 0, "new"), (2, 1, "b")]
    assert shelf.asked == [[1], [2], [1]]


def test_a_key_with_several_rows_finds_them_all():
    shelf = Shelf([(1, "a"), (2, "x"), (1, "b")])
    with harness(shelf) as subtask:
        subtask.feed(batch(1))
        subtask.feed(batch(1, 2))
        assert sorted(pairs(subtask)) == [(1, 0, "a"), (1, 0, "a"), (1, 0, "b"), (1, 0, "b"), (2, 1, "x")]


@pytest.mark.parametrize(("kind", "expected"), [("semi", [(1, 0, None)]), ("anti", [(5, 1, None), (None, 2, None)])])
def test_semi_and_anti_joins_ask_too(kind, expected):
    with harness(Shelf([(1, "a"), (1, "b")]), more=f"type: {kind}") as subtask:
        subtask.feed(batch(1, 5, None))
        assert pairs(subtask) == expected


def test_a_condition_is_asked_of_what_is_found():
    with harness(Shelf([(1, "a"), (1, "b")]), more="type: left, condition: \"name = 'b'\"") as subtask:
        subtask.feed(batch(1))
        assert pairs(subtask) == [(1, 0, "b")]


def test_a_batch_without_a_key_asks_nobody():
    shelf = Shelf([(1, "a")])
    with harness(shelf, more="type: left") as subtask:
        subtask.feed(batch(None, None))
        assert pairs(subtask) == [(None, 0, None), (None, 1, None)]
    assert shelf.asked == []


def test_rows_of_keys_that_were_not_asked_for_are_left_out():
    class Generous(Shelf):
        def find(self, keys, schema):
            self.asked.append(keys.column("key").to_pylist())
            return pa.Table.from_pylist([{"key": key, "name": "x"} for key in (3, 1, 2)], schema=TABLE)

    shelf = Generous()
    with harness(shelf) as subtask:
        subtask.feed(batch(1))
        assert pairs(subtask) == [(1, 0, "x")]
        subtask.feed(batch(2))
    assert shelf.asked == [[1], [2]]


def test_subtasks_of_a_process_share_the_answers():
    shelf = Shelf([(1, "a")])
    for _ in range(2):
        with harness(shelf) as subtask:
            subtask.feed(batch(1))
    assert shelf.asked == [[1]]


def test_rows_come_in_plain_types():
    schema = pa.schema({"name": pa.dictionary(pa.int32(), pa.string()), "key": pa.int32()})
    with harness(Shelf([(1, "a")], schema=schema)) as subtask:
        subtask.feed(batch(1))
        assert pairs(subtask) == [(1, 0, "a")]


@pytest.mark.parametrize(
    ("problem", "schema", "words"),
    [
        (ExternalError("nobody is there"), TABLE, "nobody is there"),
        (DataError("it is broken"), TABLE, "it is broken"),
        (None, pa.schema({"key": pa.int64()}), "are not what the pipeline was planned with"),
    ],
)
def test_a_table_that_does_not_answer_stops_the_epoch(problem, schema, words):
    shelf = Shelf([(1, "a")], schema=schema)
    shelf.problem = problem
    with harness(shelf) as subtask, pytest.raises(OperatorError, match=words):
        subtask.feed(batch(1))


def test_keys_that_a_table_cannot_be_asked_by_are_refused_while_planning():
    stream_key = "{left: n, right: name}"
    with pytest.raises(InvalidPipelineError, match="keys must be of one type"):
        make(Shelf(), on=stream_key)

    class Named(Shelf):
        def check_keys(self, keys):
            raise ConfigError(f"no index on {', '.join(keys)}")

    with pytest.raises(InvalidPipelineError, match="no index on key") as refused:
        make(Named())
    (error,) = refused.value.errors
    assert (error.at.line, error.at.column) == (9, 18)


def test_a_lookup_that_is_neither_kind_is_refused():
    class Odd(LookupSource):
        name = cache_key = schema = lambda self: None

    with pytest.raises(InvalidPipelineError, match="can neither be read nor be asked by key"):
        make(Odd())


# -- the cache by itself


def find(cache, shelf, *keys, now_us=0, ttl_us=1000, max_bytes=1 << 30):
    asked = pa.RecordBatch.from_pydict({"key": pa.array(keys, pa.int64())})
    found = cache.find(shelf, asked, TABLE, now_us=now_us, ttl_us=ttl_us, max_bytes=max_bytes)
    return sorted((row["key"], row["name"]) for row in found.to_pylist())


def test_what_was_used_least_recently_goes_first():
    cache, shelf = KeyCache(), Shelf()
    for key in range(10):
        find(cache, shelf, key, max_bytes=ENTRY_BYTES * 10)
    find(cache, shelf, 0, max_bytes=ENTRY_BYTES * 10)
    find(cache, shelf, 10, max_bytes=ENTRY_BYTES * 10)
    shelf.asked.clear()
    find(cache, shelf, 0, 6, 7, 8, 9, 10, max_bytes=ENTRY_BYTES * 10)
    assert shelf.asked == [[6]]


def test_answers_take_no_more_than_they_may():
    cache, shelf = KeyCache(), Shelf([(key, "x" * 100) for key in range(3000)])
    for first in range(0, 3000, 50):
        keys = range(first, first + 50)
        assert find(cache, shelf, *keys, max_bytes=100_000) == [(key, "x" * 100) for key in keys]
        (answers,) = cache._tables.values()
        assert answers.size_bytes <= 100_000
    assert answers.keys > 50


def test_an_answer_that_is_larger_than_the_cache_is_given_and_not_kept():
    cache, shelf = KeyCache(), Shelf([(1, "x" * 1000)] * 10)
    for _ in range(2):
        assert len(find(cache, shelf, 1, max_bytes=5000)) == 10
    assert shelf.asked == [[1], [1]]


def test_many_small_answers_are_joined():
    cache, shelf = KeyCache(), Shelf([(key, str(key)) for key in range(5 * MAX_SEGMENTS)])
    for key in range(5 * MAX_SEGMENTS):
        find(cache, shelf, key)
    (answers,) = cache._tables.values()
    assert len(answers._segments) <= MAX_SEGMENTS + 1
    shelf.asked.clear()
    assert find(cache, shelf, *range(5 * MAX_SEGMENTS)) == sorted((key, str(key)) for key in range(5 * MAX_SEGMENTS))
    assert shelf.asked == []


def test_the_table_that_was_asked_first_goes_first(monkeypatch):
    monkeypatch.setattr(key_cache, "CACHED_TABLES", 2)
    cache, shelves = KeyCache(), [Shelf([(1, "a")]) for _ in range(3)]
    for shelf in [*shelves, *shelves]:
        find(cache, shelf, 1)
    assert [len(shelf.asked) for shelf in shelves] == [2, 2, 2]


def test_a_slow_table_does_not_hold_up_what_is_known():
    cache, asked, go_on = KeyCache(), threading.Event(), threading.Event()

    class Slow(Shelf):
        def find(self, keys, schema):
            if keys.column("key").to_pylist() == [2]:
                asked.set()
                assert go_on.wait(30)
            return super().find(keys, schema)

    shelf = Slow([(1, "a"), (2, "b")])
    find(cache, shelf, 1)
    other = threading.Thread(target=find, args=(cache, shelf, 2))
    other.start()
    assert asked.wait(30)
    assert find(cache, shelf, 1) == [(1, "a")]
    go_on.set()
    other.join()


@settings(max_examples=60, deadline=None)
@given(
    rounds=st.lists(
        st.tuples(st.lists(st.integers(0, 30), min_size=1, max_size=12, unique=True), st.integers(0, 20)), max_size=25
    ),
    copies=st.lists(st.integers(0, 3), min_size=31, max_size=31),
    max_bytes=st.sampled_from([1, 2000, 6000, 1 << 30]),
)
def test_answers_are_those_of_the_table_and_never_too_old(rounds, copies, max_bytes):
    """A row says when it was read: it must not be older than the TTL, whatever was dropped or joined meanwhile."""
    cache, now_us = KeyCache(), 0

    class Dated(Shelf):
        def find(self, keys, schema):
            self.rows = [(key, str(now_us)) for key in range(31) for _ in range(copies[key])]
            return super().find(keys, schema)

    shelf = Dated()
    for keys, step in rounds:
        now_us += step
        found = find(cache, shelf, *keys, now_us=now_us, ttl_us=15, max_bytes=max_bytes)
        assert [key for key, _ in found] == sorted(np.repeat(keys, [copies[key] for key in keys]).tolist())
        assert all(0 <= now_us - int(read_us) < 15 for _, read_us in found)
