from __future__ import annotations

import pyarrow as pa
import pytest

from arroyo_core.api import ArroyoSchema
from arroyo_core.errors import ConfigError, OperatorError


def project(make, **config):
    expressions = [{"name": name, "sql": sql} for name, sql in config.pop("expressions", {}).items()]
    return make("std.project", expressions=expressions, **config)


def test_expressions_alone_are_the_output_in_the_order_written(make, run, events, events_schema):
    operator = project(make, expressions={"total": "price * 2", "Name": "upper(Name)", "price": "price"})
    output = run(operator, [events_schema]).feed(events).output
    assert output.column_names == ["total", "Name", "price"]
    assert output.column("total").to_pylist() == [20, 40, None, 80, 100, 120]
    assert output.column("Name").to_pylist() == ["A", None, "C", "D", "", "F"]


def test_kept_columns_come_first_in_the_order_written(make, run, events, events_schema):
    operator = project(make, keep=["time", "price"], expressions={"double": "price * 2"})
    output = run(operator, [events_schema]).feed(events).output
    assert output.column_names == ["time", "price", "double"]


def test_dropped_columns_go_and_a_replaced_one_stays_in_place(make, run, events, events_schema):
    operator = project(make, drop=["tags", "seller"], expressions={"one": "1", "Name": "lower(Name)"})
    output = run(operator, [events_schema]).feed(events).output
    assert output.column_names == ["price", "Name", "unit price", "time", "one"]
    assert output.column("one").to_pylist() == [1] * 6


def test_expressions_see_the_input_and_not_one_another(make, run, events, events_schema):
    operator = project(make, expressions={"price": "price + 1", "next": "price + 2"})
    output = run(operator, [events_schema]).feed(events.slice(0, 1)).output
    assert output.to_pylist() == [{"price": 11, "next": 12}]


def test_copied_columns_share_the_input_s_memory(make, run, events, events_schema):
    operator = project(make, expressions={"cost": "price"}, keep=["Name"])
    output = run(operator, [events_schema]).feed(events).output
    addresses = [buffer.address for buffer in output.column("cost").chunk(0).buffers() if buffer]
    assert addresses == [buffer.address for buffer in events.column("price").buffers() if buffer]


@pytest.mark.parametrize("expressions", [{"price": "price"}, {"price": "price", "x": "price + 1"}])
def test_an_empty_batch_is_projected_to_an_empty_batch(make, run, events, events_schema, expressions):
    operator = project(make, expressions=expressions)
    output = run(operator, [events_schema]).feed(events.slice(0, 0)).output
    assert output.num_rows == 0
    assert output.column_names == list(expressions)


@pytest.mark.parametrize(
    ("config", "timestamp", "keys"),
    [
        ({"keep": ["time", "price"]}, "time", ("price",)),
        ({"keep": ["time"]}, "time", None),
        ({"drop": ["time"]}, None, ("price",)),
        ({"expressions": {"time": "time", "price": "price"}}, "time", ("price",)),
        ({"expressions": {"at": "time", "cost": "price"}}, "at", ("cost",)),
        ({"expressions": {"at": "time", "time": "time"}}, "time", None),
        ({"keep": ["time", "price"], "expressions": {"price": "price + 1"}}, "time", None),
        ({"keep": ["time", "price"], "expressions": {"time": "date_trunc('minute', time)"}}, None, ("price",)),
        ({"expressions": {"time": "price", "price": "time"}}, "price", ("time",)),
    ],
)
def test_event_time_and_keys_follow_unchanged_columns(make, events_schema, config, timestamp, keys):
    output = project(make, **config).output_schema([events_schema])
    assert (output.timestamp_column, output.key_columns) == (timestamp, keys)


def test_one_global_group_stays_one(make, events_schema):
    output = project(make, keep=["Name"]).output_schema([events_schema.with_keys(())])
    assert output.key_columns == ()


def test_views_and_dictionaries_of_expressions_become_plain(make, run):
    batch = pa.RecordBatch.from_pydict(
        {
            "view": pa.array(["a", None]).cast(pa.string_view()),
            "word": pa.array(["x", "y"]).dictionary_encode(),
        }
    )
    operator = project(
        make,
        expressions={
            "upper": "upper(view)",
            "list": "make_array(view)",
            "coded": "arrow_cast(view, 'Dictionary(Int32, Utf8)')",
            "bytes": "arrow_cast(view, 'BinaryView')",
            "both": "word || view",
        },
    )
    output = run(operator, [ArroyoSchema(batch.schema)]).feed(batch).output
    assert output.schema.types == [pa.string(), pa.list_(pa.string()), pa.string(), pa.binary(), pa.string()]
    assert output.to_pylist()[0] == {"upper": "A", "list": ["a"], "coded": "a", "bytes": b"a", "both": "xa"}


def test_computed_columns_are_nullable(make, events_schema):
    output = project(make, expressions={"one": "1", "now": "now()"}).output_schema([events_schema])
    assert all(field.nullable for field in output.schema)


@pytest.mark.parametrize(
    ("config", "field", "message"),
    [
        ({}, None, "nothing to project"),
        ({"keep": ["price"], "drop": ["time"]}, "drop", "exclude each other"),
        ({"keep": ["price", "prise"]}, "keep[1]", "no column 'prise'"),
        ({"drop": ["TIME"]}, "drop[0]", "no column 'TIME'"),
        ({"keep": ["price", "price"]}, "keep[1]", "listed twice"),
        ({"expressions": {"a": "1", "total": "prise * 2"}}, "expressions.total", "no column 'prise'"),
        ({"expressions": {"a": "sum(price)"}}, "expressions.a", "aggregate"),
        ({"expressions": {"": "price"}}, "expressions", "needs a name"),
        ({"expressions": {"a": " "}}, "expressions.a", "empty"),
        ({"drop": ["price", "Name", "unit price", "time", "tags", "seller"]}, "drop", "no column is left"),
    ],
)
def test_wrong_configs_name_the_field(make, events_schema, config, field, message):
    with pytest.raises(ConfigError, match=message) as caught:
        project(make, **config).output_schema([events_schema])
    assert caught.value.field == field


def test_a_name_given_twice_is_refused(make, events_schema):
    operator = make("std.project", expressions=[{"name": "a", "sql": "1"}, {"name": "a", "sql": "2"}])
    with pytest.raises(ConfigError, match="computed twice") as caught:
        operator.output_schema([events_schema])
    assert caught.value.field == "expressions.a"


def test_a_misspelt_column_gets_a_suggestion(make, events_schema):
    with pytest.raises(ConfigError) as caught:
        project(make, keep=["Price"]).output_schema([events_schema])
    assert caught.value.suggestion == "price"
    assert "Name" in caught.value.allowed


def test_a_row_that_cannot_be_computed_names_its_expression_among_many(make, run, events, events_schema):
    operator = project(make, expressions={"fine": "price + 1", "number": "cast(Name as int)"})
    with pytest.raises(OperatorError, match=r"DataError: expressions\.number: cannot compute .*cannot cast string 'a'"):
        run(operator, [events_schema]).feed(events)


def test_the_plan_shows_every_expression(make):
    operator = project(make, keep=["a", "b"], expressions={"c": "a + b"})
    assert operator.display().fields == [("keep", "a, b"), ("c", "a + b")]


def test_a_column_that_is_named_is_needed_though_its_values_are_not(make):
    schema = pa.schema({"a": pa.int64(), "b": pa.int64(), "x": pa.int64()})
    sql = "get_field(named_struct('x', a, 'y', b), 'x')"
    for operator, config in (
        ("std.project", {"expressions": [{"name": "found", "sql": sql}]}),
        ("std.filter", {"predicate": f"{sql} > 1"}),
        ("std.sql", {"query": f"SELECT {sql} AS found FROM input"}),
    ):
        made = make(operator, **config)
        (needed,) = made.needed_columns([ArroyoSchema(schema)], {"found"} if operator != "std.filter" else set())
        assert needed == {"a", "b"}
        left = pa.schema([field for field in schema if field.name in needed])
        assert made.output_schema([ArroyoSchema(left)]).names
