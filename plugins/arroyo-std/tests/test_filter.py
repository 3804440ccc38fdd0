from __future__ import annotations

import pytest

from arroyo_core.api import ArroyoSchema
from arroyo_core.errors import ConfigError, OperatorError


def test_rows_with_a_true_predicate_pass_and_null_is_not_true(make, run, events, events_schema):
    subtask = run(make("std.filter", predicate="price > 20"), [events_schema]).feed(events)
    assert subtask.output.column("price").to_pylist() == [40, 50, 60]
    assert subtask.output.column("tags").to_pylist() == [["z"], [None], ["x"]]


def test_the_type_of_the_stream_stays(make, events_schema):
    assert make("std.filter", predicate="price > 20").output_schema([events_schema]) == events_schema


def test_a_batch_that_passes_whole_is_not_copied(make, run, events, events_schema):
    subtask = run(make("std.filter", predicate="true"), [events_schema]).feed(events)
    assert subtask.events == [events]
    assert subtask.events[0] is events


def test_a_batch_without_true_rows_emits_nothing(make, run, events, events_schema):
    subtask = run(make("std.filter", predicate="price > 100"), [events_schema]).feed(events, events.slice(0, 0))
    assert subtask.output.num_rows == 0


def test_batches_are_filtered_each_by_its_own_rows(make, run, events, events_schema):
    subtask = run(make("std.filter", predicate="price >= 20"), [events_schema])
    subtask.feed(*(events.slice(start, 2) for start in range(0, 6, 2)))
    assert subtask.output.column("price").to_pylist() == [20, 40, 50, 60]


def test_names_are_case_sensitive_and_can_be_quoted(make, run, events, events_schema):
    subtask = run(make("std.filter", predicate="\"unit price\" > 5 and Name = 'f'"), [events_schema]).feed(events)
    assert subtask.output.column("price").to_pylist() == [60]


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        ("price + 1", "the predicate is int64, not boolean"),
        ("Name", "the predicate is string, not boolean"),
        ("NULL", "NULL, without a type"),
    ],
)
def test_a_predicate_must_be_boolean(make, events_schema, predicate, message):
    with pytest.raises(ConfigError, match=message) as caught:
        make("std.filter", predicate=predicate).output_schema([events_schema])
    assert caught.value.field == "predicate"


def test_a_missing_predicate_is_refused(make):
    with pytest.raises(ConfigError, match="'predicate' is missing") as caught:
        make("std.filter")
    assert caught.value.field == "predicate"


def test_a_row_that_cannot_be_computed_names_the_expression(make, run, events, events_schema):
    subtask = run(make("std.filter", predicate="10 / (price - 40) > 1"), [events_schema])
    with pytest.raises(
        OperatorError, match=r"DataError: predicate: cannot compute '10 / \(price - 40\) > 1': divide by zero"
    ):
        subtask.feed(events)


def test_fields_that_claim_no_nulls_are_not_trusted_by_the_optimizer(make, run, events):
    schema = events.schema.set(0, events.schema.field("price").with_nullable(False))
    batch = events.from_arrays(events.columns, schema=schema)
    subtask = run(make("std.filter", predicate="price is null"), [ArroyoSchema(schema)]).feed(batch)
    assert subtask.output.num_rows == 1


def test_the_plan_shows_the_predicate(make):
    assert make("std.filter", predicate="a > 1").display().fields == [("predicate", "a > 1")]
