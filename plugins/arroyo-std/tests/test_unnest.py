from __future__ import annotations

import pyarrow as pa
import pytest
from arroyo_std import unnest
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema
from arroyo_core.errors import ConfigError

LIST_TYPES = [pa.list_(pa.int64()), pa.large_list(pa.int64())]


def test_a_list_becomes_one_row_per_element_in_place(make, run, events, events_schema):
    output = run(make("std.unnest", column="tags"), [events_schema]).feed(events).output
    assert output.column_names == events.schema.names
    assert output.select(["price", "tags"]).to_pylist() == [
        {"price": 10, "tags": "x"},
        {"price": 10, "tags": "y"},
        {"price": 40, "tags": "z"},
        {"price": 50, "tags": None},
        {"price": 60, "tags": "x"},
    ]


def test_outer_keeps_rows_without_elements(make, run, events, events_schema):
    operator = make("std.unnest", column="tags", **{"as": "tag"}, outer=True, ordinality="n")
    output = run(operator, [events_schema]).feed(events).output
    assert output.column_names == ["price", "Name", "unit price", "time", "tag", "n", "seller"]
    assert output.column("tag").to_pylist() == ["x", "y", None, None, "z", None, "x"]
    assert output.column("n").to_pylist() == [1, 2, None, None, 1, 1, 1]
    assert output.column("price").to_pylist() == [10, 10, 20, None, 40, 50, 60]


def test_a_struct_becomes_its_fields_and_null_becomes_nulls(make, run, events, events_schema):
    output = run(make("std.unnest", column="seller", **{"as": "seller_"}), [events_schema]).feed(events).output
    assert output.column_names == ["price", "Name", "unit price", "time", "tags", "seller_id", "seller_city"]
    assert output.column("seller_id").to_pylist() == [1, None, None, 4, 4, 4]
    assert output.column("seller_city").to_pylist() == ["Rome", None, "Oslo", None, None, None]


def test_sliced_batches_are_unnested_by_their_own_rows(make, run, events, events_schema):
    for column, expected in (("tags", [None, "x"]), ("seller", [4, 4])):
        output = run(make("std.unnest", column=column), [events_schema]).feed(events.slice(4)).output
        assert output.column("tags" if column == "tags" else "id").to_pylist() == expected


@pytest.mark.parametrize("column", ["tags", "seller"])
def test_event_time_and_keys_stay(make, events_schema, column):
    output = make("std.unnest", column=column).output_schema([events_schema])
    assert (output.timestamp_column, output.key_columns) == ("time", ("price",))


def test_a_key_that_is_unnested_is_a_key_no_longer(make, events_schema):
    output = make("std.unnest", column="seller").output_schema([events_schema.with_keys(("seller",))])
    assert output.key_columns is None


def test_a_stream_of_one_column_can_be_unnested(make, run):
    batch = pa.RecordBatch.from_pydict({"l": [[1, 2], [3]]})
    output = run(make("std.unnest", column="l"), [ArroyoSchema(batch.schema)]).feed(batch).output
    assert output.to_pylist() == [{"l": 1}, {"l": 2}, {"l": 3}]


@pytest.mark.parametrize("is_outer", [False, True])
def test_lists_of_fixed_size_lose_their_nulls(make, run, is_outer):
    batch = pa.RecordBatch.from_pydict({"l": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2))})
    output = run(make("std.unnest", column="l", outer=is_outer), [ArroyoSchema(batch.schema)]).feed(batch).output
    assert output.column("l").to_pylist() == ([1, 2, None, 3, 4] if is_outer else [1, 2, 3, 4])


def test_an_empty_batch_emits_no_rows(make, run, events, events_schema):
    for column in ("tags", "seller"):
        assert run(make("std.unnest", column=column), [events_schema]).feed(events.slice(0, 0)).output.num_rows == 0


def test_long_lists_are_cut_into_many_batches(make, run, monkeypatch):
    monkeypatch.setattr(unnest, "MAX_BATCH_ROWS", 10)
    batch = pa.RecordBatch.from_pydict({"id": [0, 1, 2, 3, 4], "l": [[0] * n for n in (4, 6, 25, 0, 3)]})
    subtask = run(make("std.unnest", column="l"), [ArroyoSchema(batch.schema)]).feed(batch)
    assert [each.num_rows for each in subtask.events] == [10, 25, 3]
    assert subtask.output.column("id").to_pylist() == [0] * 4 + [1] * 6 + [2] * 25 + [4] * 3


lists = st.lists(st.none() | st.lists(st.none() | st.integers(-5, 5), max_size=5), max_size=20)


@settings(max_examples=100, deadline=None)
@given(values=lists, list_type=st.sampled_from(LIST_TYPES), is_outer=st.booleans(), limit=st.integers(1, 8))
def test_unnesting_agrees_with_plain_loops(make, run, values, list_type, is_outer, limit):
    batch = pa.RecordBatch.from_pydict({"id": pa.array(range(len(values))), "l": pa.array(values, list_type)})
    expected = []
    for number, value in enumerate(values):
        elements = list(enumerate(value or [], start=1)) or ([(None, None)] if is_outer else [])
        expected += [{"id": number, "l": element, "n": place} for place, element in elements]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unnest, "MAX_BATCH_ROWS", limit)
        operator = make("std.unnest", column="l", outer=is_outer, ordinality="n")
        assert run(operator, [ArroyoSchema(batch.schema)]).feed(batch).output.to_pylist() == expected


@pytest.mark.parametrize(
    ("config", "field", "message"),
    [
        ({}, "column", "'column' is missing"),
        ({"column": "tag"}, "column", "no column 'tag'"),
        ({"column": "price"}, "column", "column 'price' is int64, neither a list nor a struct"),
        ({"column": "tags", "as": "price"}, "as", "there is a column 'price' already"),
        ({"column": "tags", "ordinality": "price"}, "ordinality", "there is a column 'price' already"),
        ({"column": "tags", "ordinality": "tags"}, "ordinality", "there is a column 'tags' already"),
        ({"column": "seller", "outer": True}, "outer", "'outer' is for lists"),
        ({"column": "seller", "ordinality": "n"}, "ordinality", "'ordinality' is for lists"),
    ],
)
def test_wrong_configs_name_the_field(make, events_schema, config, field, message):
    with pytest.raises(ConfigError, match=message) as caught:
        make("std.unnest", **config).output_schema([events_schema])
    assert caught.value.field == field


def test_a_column_that_cannot_be_unnested_lists_those_that_can(make, events_schema):
    with pytest.raises(ConfigError) as caught:
        make("std.unnest", column="price").output_schema([events_schema])
    assert caught.value.allowed == ("tags", "seller")


def test_fields_that_are_columns_already_need_a_prefix(make, events):
    stream = ArroyoSchema(events.schema.append(pa.field("id", pa.int64())))
    with pytest.raises(ConfigError, match="there is a column 'id' already") as caught:
        make("std.unnest", column="seller").output_schema([stream])
    assert caught.value.field == "as"
