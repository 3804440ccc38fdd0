from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest

from arroyo_core.api import ArroyoSchema
from arroyo_core.errors import ConfigError

ONE = pa.schema({"a": pa.int64(), "at": pa.timestamp("us", tz="UTC")})


def test_key_by_asks_for_its_keys_and_passes_rows_on(make, run, events, events_schema):
    operator = make("std.key_by", keys=["Name", "price"])
    assert operator.output_schema([events_schema]).key_columns == ("Name", "price")
    assert operator.output_schema([events_schema]).timestamp_column == "time"
    assert operator.routing_keys([events_schema]) == [("Name", "price")]
    assert run(operator, [events_schema]).feed(events).events == [events]


@pytest.mark.parametrize(
    ("keys", "field", "message"),
    [
        ([], "keys", "'keys' is missing"),
        (["price", "nam"], "keys[1]", "no column 'nam'"),
        (["price", "price"], "keys[1]", "listed twice"),
    ],
)
def test_wrong_keys_name_their_place(make, events_schema, keys, field, message):
    with pytest.raises(ConfigError, match=message) as caught:
        make("std.key_by", keys=keys).output_schema([events_schema])
    assert caught.value.field == field


def test_a_misspelt_key_gets_a_suggestion(make, events_schema):
    with pytest.raises(ConfigError) as caught:
        make("std.key_by", keys=["nam"]).output_schema([events_schema])
    assert caught.value.suggestion == "Name"


def test_union_takes_two_inputs_or_more(make):
    assert make("std.union").input_count() == (2, None)


def test_union_passes_on_the_rows_of_all_inputs(make, run, events, events_schema):
    subtask = run(make("std.union"), [events_schema] * 3)
    for index in range(3):
        subtask.feed(events.slice(index, 1), index=index)
    assert subtask.output.column("price").to_pylist() == [10, 20, None]


def test_union_output_is_nullable_where_any_input_is(make, run):
    strict = pa.schema([ONE.field("a").with_nullable(False), ONE.field("at")], metadata={"from": "elsewhere"})
    operator = make("std.union")
    subtask = run(operator, [ArroyoSchema(strict), ArroyoSchema(ONE)])
    subtask.feed(pa.RecordBatch.from_pylist([{"a": 1}], schema=strict), index=0)
    subtask.feed(pa.RecordBatch.from_pylist([{"a": None}], schema=ONE), index=1)
    assert subtask.output.column("a").to_pylist() == [1, None]


def test_union_gives_every_batch_the_declared_schema(make):
    strict = pa.schema([ONE.field("a").with_nullable(False), ONE.field("at")], metadata={"from": "elsewhere"})
    operator = make("std.union")
    declared = operator.output_schema([ArroyoSchema(strict), ArroyoSchema(ONE)])
    collected = []
    operator.process_batch(
        pa.RecordBatch.from_pylist([{"a": 1}], schema=strict),
        SimpleNamespace(output_schema=declared),
        SimpleNamespace(collect=collected.append),
    )
    assert collected[0].schema.equals(declared.schema, check_metadata=True)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [((("a",), ("a",)), ("a",)), ((("a",), ("at",)), None), ((("a",), None), None), (((), ()), ())],
)
def test_union_is_keyed_where_all_inputs_are_keyed_alike(make, keys, expected):
    inputs = [ArroyoSchema(ONE, "at", each) for each in keys]
    assert make("std.union").output_schema(inputs).key_columns == expected


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            ArroyoSchema(pa.schema({"a": pa.int32(), "at": ONE.field("at").type}), "at"),
            "input 1 has column 'a' of type int64 in place 1, input 2 has column 'a' of type int32 in place 1",
        ),
        (
            ArroyoSchema(pa.schema([ONE.field("at"), ONE.field("a")]), "at"),
            "input 1 has column 'a' of type int64 in place 1, input 2 has column 'at'",
        ),
        (
            ArroyoSchema(ONE.append(pa.field("more", pa.string())), "at"),
            "input 1 has no column 3, input 2 has column 'more' of type string in place 3",
        ),
        (ArroyoSchema(ONE), "input 1 has event time 'at', input 2 has no event time"),
    ],
)
def test_union_names_the_first_difference(make, other, message):
    with pytest.raises(ConfigError) as caught:
        make("std.union").output_schema([ArroyoSchema(ONE, "at"), other])
    assert message in caught.value.message
