"""Aggregate functions: in any number of steps the answer is DuckDB's."""

from __future__ import annotations

import itertools
import math
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from arroyo_std.aggregates.groups import Groups
from arroyo_std.aggregates.plan import AggregatePlan
from arroyo_std.aggregates.registry import AggregateSpec
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import Registry
from arroyo_core.errors import ConfigError, DataError

SCHEMA = pa.schema(
    {
        "k": pa.int64(),
        "i": pa.int64(),
        "f": pa.float64(),
        "y": pa.float64(),
        "s": pa.string(),
        "b": pa.bool_(),
        "d": pa.decimal128(10, 2),
        "t": pa.timestamp("us"),
    }
)

#: Function, config, and the same in DuckDB's SQL.
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "count": ({"function": "count"}, "count(*)"),
    "count_column": ({"function": "count", "column": "i"}, "count(i)"),
    "count_filter": ({"function": "count", "filter": "i > 0"}, "count(*) filter (i > 0)"),
    "sum": ({"function": "sum", "column": "i"}, "sum(i)::bigint"),
    "sum_filter": ({"function": "sum", "column": "i", "filter": "b"}, "(sum(i) filter (b))::bigint"),
    "sum_float": ({"function": "sum", "column": "f"}, "sum(f)"),
    "sum_decimal": ({"function": "sum", "column": "d"}, "sum(d)"),
    "min": ({"function": "min", "column": "i"}, "min(i)"),
    "max": ({"function": "max", "column": "f"}, "max(f)"),
    "min_string": ({"function": "min", "column": "s"}, "min(s)"),
    "max_time": ({"function": "max", "column": "t", "filter": "i <= 3"}, "max(t) filter (i <= 3)"),
    "mean": ({"function": "mean", "column": "i"}, "avg(i)"),
    "mean_decimal": ({"function": "mean", "column": "d"}, "avg(d)"),
    "count_distinct": ({"function": "count_distinct", "column": "s"}, "count(distinct s)"),
    "count_distinct_filter": (
        {"function": "count_distinct", "column": "i", "filter": "b"},
        "count(distinct i) filter (b)",
    ),
    "stddev_pop": ({"function": "stddev_pop", "column": "f"}, "stddev_pop(f)"),
    "stddev_samp": ({"function": "stddev_samp", "column": "i"}, "stddev_samp(i)"),
    "var_pop": ({"function": "var_pop", "column": "d"}, "var_pop(d)"),
    "var_samp": ({"function": "var_samp", "column": "f", "filter": "b"}, "var_samp(f) filter (b)"),
    "any": ({"function": "any", "column": "b"}, "bool_or(b)"),
    "all": ({"function": "all", "column": "b"}, "bool_and(b)"),
    "median": ({"function": "median", "column": "i"}, "median(i)"),
    "median_filter": ({"function": "median", "column": "f", "filter": "b"}, "median(f) filter (b)"),
    "bit_and": ({"function": "bit_and", "column": "i"}, "bit_and(i)"),
    "bit_or": ({"function": "bit_or", "column": "i"}, "bit_or(i)"),
    "bit_xor": ({"function": "bit_xor", "column": "i", "filter": "b"}, "bit_xor(i) filter (b)"),
    "covar_pop": ({"function": "covar_pop", "column": "f", "other": "y"}, "covar_pop(f, y)"),
    "covar_samp": ({"function": "covar_samp", "column": "f", "other": "y"}, "covar_samp(f, y)"),
    "corr": (
        {"function": "corr", "column": "f", "other": "y"},
        "case when var_pop(f) filter (y is not null) > 0 and var_pop(y) filter (f is not null) > 0 then corr(f, y) end",
    ),
    "first": ({"function": "first", "column": "s"}, "first(s order by t, n)"),
    "last": ({"function": "last", "column": "s"}, "last(s order by t, n)"),
    "first_filter": ({"function": "first", "column": "i", "filter": "b"}, "first(i order by t, n) filter (b)"),
    "list": ({"function": "list", "column": "i"}, "list_sort(list(i))"),
    "list_filter": ({"function": "list", "column": "s", "filter": "b"}, "list_sort(list(s) filter (b))"),
}


def spec(config: dict[str, Any], name: str, place: int = 0) -> AggregateSpec:
    options = {("alias" if key == "as" else key): value for key, value in config.items()}
    return AggregateSpec(**{"alias": name, "field": f"aggregates[{place}]", **options})


def plan_of(cases: dict[str, dict[str, Any]], schema: pa.Schema = SCHEMA, **options: Any) -> AggregatePlan:
    plan = AggregatePlan(
        [spec(case, name, place) for place, (name, case) in enumerate(cases.items())], schema, Registry(), **options
    )
    plan.check()
    plan.start()
    return plan


def partial(plan: AggregatePlan, batch: pa.RecordBatch, first_arrival: int = 0) -> pa.RecordBatch:
    """One state row per key."""
    groups = Groups.of_columns([batch.column("k")], batch.num_rows)
    states = plan.partial(
        batch,
        groups,
        times_us=batch.column("t").cast(pa.int64()).to_numpy(),
        arrivals=np.arange(first_arrival, first_arrival + batch.num_rows),
    )
    keys = batch.column("k").take(pa.array(groups.first_rows()))
    return pa.RecordBatch.from_arrays(
        [keys, *states], schema=pa.schema([pa.field("k", pa.int64()), *plan.state_fields])
    )


def merge(plan: AggregatePlan, parts: list[pa.RecordBatch]) -> pa.RecordBatch:
    joined = pa.Table.from_batches(parts).combine_chunks().to_batches()[0]
    groups = Groups.of_columns([joined.column("k")], joined.num_rows)
    keys = joined.column("k").take(pa.array(groups.first_rows()))
    return pa.RecordBatch.from_arrays([keys, *plan.merge(joined.columns[1:], groups)], schema=joined.schema)


def results(plan: AggregatePlan, states: pa.RecordBatch) -> dict[Any, dict[str, Any]]:
    columns = plan.finish(states.columns[1:])
    for column, field in zip(columns, plan.output_fields, strict=True):
        column.validate(full=True)
        assert column.type == field.type, field
    rows = pa.Table.from_arrays(columns, schema=pa.schema(plan.output_fields)).to_pylist()
    return dict(zip(states.column("k").to_pylist(), rows, strict=True))


def is_same(left: Any, right: Any) -> bool:
    if isinstance(left, list) and isinstance(right, list):
        return sorted(left, key=repr) == sorted(right, key=repr)
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-7)
    return bool(left == right)


@st.composite
def batches(draw: st.DrawFn) -> list[pa.RecordBatch]:
    """Rows with nulls, few keys, many ties, times before 1970; cut into batches."""
    row = st.tuples(
        st.none() | st.integers(0, 2),
        st.none() | st.integers(-4, 4),
        st.none() | st.floats(-5, 5).map(lambda value: round(value, 2)),
        st.none() | st.sampled_from([0.0, 1.5, -2.0]),
        st.none() | st.sampled_from(["", "a", "bb"]),
        st.none() | st.booleans(),
        st.none() | st.decimals(-9, 9, places=2),
        st.integers(-3, 3),
    )
    rows = draw(st.lists(row, min_size=1, max_size=24))
    cuts = sorted({0, len(rows), *draw(st.lists(st.integers(0, len(rows)), max_size=4))})
    columns = [list(column) for column in zip(*rows, strict=True)]
    whole = pa.RecordBatch.from_arrays(
        [
            *(pa.array(values, field.type) for values, field in zip(columns[:-1], list(SCHEMA)[:-1], strict=True)),
            pa.array(columns[-1], pa.int64()).cast(SCHEMA.field("t").type),
        ],
        schema=SCHEMA,
    )
    return [whole.slice(start, end - start) for start, end in itertools.pairwise(cuts)]


def duckdb_answer(parts: list[pa.RecordBatch]) -> dict[Any, dict[str, Any]]:
    table = pa.Table.from_batches(parts)
    rows = table.append_column("n", pa.array(np.arange(table.num_rows)))
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        wanted = ", ".join(f'{sql} as "{name}"' for name, (_, sql) in CASES.items())
        found = connection.sql(f"select k, {wanted} from rows group by k").to_arrow_table().to_pylist()
    return {row.pop("k"): row for row in found}


ALL = plan_of({name: config for name, (config, _) in CASES.items()})
RETRACTABLE = plan_of({name: config for name, (config, _) in CASES.items()}, is_updating=True)


@settings(max_examples=30, deadline=None)
@given(parts=batches(), swap=st.booleans())
def test_states_of_any_cuts_merged_in_any_order_give_what_duckdb_gives(parts, swap):
    starts = np.cumsum([0, *(part.num_rows for part in parts)])
    states = [partial(ALL, part, int(start)) for part, start in zip(parts, starts, strict=False)]
    if swap:
        states = [merge(ALL, states[1::2] + states[:1]), *states[2::2]] if len(states) > 1 else states
    found = results(ALL, merge(ALL, states))
    expected = duckdb_answer(parts)
    assert found.keys() == expected.keys()
    for key, row in expected.items():
        for name, value in row.items():
            assert is_same(found[key][name], value), (key, name, found[key][name], value)


@settings(max_examples=30, deadline=None)
@given(parts=batches())
def test_rows_that_are_taken_back_leave_no_trace(parts):
    plan = RETRACTABLE
    kept, gone = parts[::2], parts[1::2]
    states = merge(plan, [partial(plan, part) for part in parts])
    if gone:
        back = merge(plan, [partial(plan, part) for part in gone])
        empty = partial(plan, pa.Table.from_batches(kept).combine_chunks().to_batches()[0].slice(0, 0))
        keys = states.column("k").to_pylist()
        place = {key: number for number, key in enumerate(back.column("k").to_pylist())}
        assert place.keys() <= set(keys)
        own = [number for number, key in enumerate(keys) if key in place]
        others = back.take(pa.array([place[keys[number]] for number in own]))
        left = plan.subtract(states.take(pa.array(own)).columns[1:], others.columns[1:])
        part = pa.RecordBatch.from_arrays([others.column("k"), *left], schema=states.schema)
        untouched = states.take(pa.array([n for n in range(len(keys)) if n not in own], pa.int64()))
        states = merge(plan, [empty, part, untouched])
    found = results(plan, states)
    expected = results(plan, merge(plan, [partial(plan, part) for part in kept]))
    for key, row in expected.items():
        for name, value in row.items():
            if name in ("first", "last", "first_filter"):
                continue
            assert is_same(found[key][name], value), (key, name, found[key][name], value)


def rows_of(**columns: Any) -> pa.RecordBatch:
    length = len(next(iter(columns.values())))
    given = {
        field.name: pa.array(columns.get(field.name, [0 if field.name in ("k", "t") else None] * length), field.type)
        for field in SCHEMA
    }
    return pa.RecordBatch.from_pydict(given, schema=SCHEMA)


def only(plan: AggregatePlan, *parts: pa.RecordBatch) -> Any:
    found = results(plan, merge(plan, [partial(plan, part) for part in parts]))
    return next(iter(found[0].values()))


def test_a_sum_of_integers_that_overflows_is_an_error_and_not_a_wrong_number():
    plan = plan_of({"total": {"function": "sum", "column": "i"}})
    assert only(plan, rows_of(i=[2**62, -(2**62)]), rows_of(i=[2**62, 5])) == 2**62 + 5
    with pytest.raises(DataError, match=r"aggregates\[0\]: a sum does not fit in int64"):
        only(plan, rows_of(i=[2**62, 2**62]))
    with pytest.raises(DataError, match="does not fit"):
        only(plan, rows_of(i=[2**62]), rows_of(i=[2**62]))


def test_variance_keeps_a_small_spread_around_a_large_mean():
    plan = plan_of({"spread": {"function": "var_pop", "column": "f"}})
    parts = [rows_of(f=[1e9 + offset for offset in (0.0, 1.0)]), rows_of(f=[1e9 + offset for offset in (2.0, 3.0)])]
    assert only(plan, *parts) == pytest.approx(1.25, rel=1e-12)


@pytest.mark.parametrize("constant", [0.1, 0.3, 1e-200, 7.7e15, 0.0])
def test_a_column_that_does_not_vary_has_no_correlation_whatever_its_mean_is_rounded_to(constant):
    plan = plan_of({"corr": {"function": "corr", "column": "f", "other": "y"}})
    parts = [rows_of(f=[constant] * size, y=[float(n) for n in range(size)]) for size in (3, 7, 10)]
    assert only(plan, *parts) is None


def test_nan_is_no_minimum_and_no_maximum_unless_there_is_nothing_else():
    plan = plan_of({"least": {"function": "min", "column": "f"}})
    assert only(plan, rows_of(f=[math.nan, 2.0]), rows_of(f=[math.nan])) == 2.0
    assert math.isnan(only(plan, rows_of(f=[math.nan]), rows_of(f=[math.nan])))


@pytest.mark.parametrize("distinct", [0, 1, 10, 1000, 50_000])
def test_approx_count_distinct_is_within_a_few_percent(distinct):
    plan = plan_of({"about": {"function": "approx_count_distinct", "column": "i"}})
    numbers = np.arange(distinct)
    parts = [rows_of(i=[*list(numbers), None]), rows_of(i=[*list(numbers[::2]), None])]
    assert only(plan, *parts) == pytest.approx(distinct, rel=0.06, abs=0.5)


@pytest.mark.parametrize("percentile", [0.0, 0.5, 0.95, 1.0])
@given(values=st.lists(st.floats(-1e6, 1e6) | st.just(0.0), min_size=1, max_size=50))
@settings(max_examples=40, deadline=None)
def test_approx_percentile_is_within_one_percent_of_the_value_at_that_rank(percentile, values):
    plan = plan_of({"p": {"function": "approx_percentile", "column": "f", "percentile": percentile}})
    middle = len(values) // 2
    found = only(plan, rows_of(f=[*values[:middle], None, math.nan]), rows_of(f=values[middle:]))
    exact = sorted(values)[math.floor(percentile * (len(values) - 1))]
    assert found == pytest.approx(exact, rel=0.0100001, abs=1e-300)


def test_an_empty_percentile_and_an_empty_median_are_null():
    plan = plan_of(
        {
            "p": {"function": "approx_percentile", "column": "f", "percentile": 0.5},
            "m": {"function": "median", "column": "f"},
        }
    )
    assert results(plan, partial(plan, rows_of(f=[None])))[0] == {"p": None, "m": None}


@pytest.mark.parametrize(
    ("config", "field", "message"),
    [
        ({"function": "summ", "column": "i"}, "function", "no aggregate function 'summ'"),
        ({"function": "sum"}, "column", "sum needs a column"),
        ({"function": "sum", "column": "I"}, "column", "no column 'I'"),
        ({"function": "sum", "column": "s"}, "column", "sum takes a number; column 's' is string"),
        ({"function": "any", "column": "i"}, "column", "any takes a boolean"),
        ({"function": "bit_and", "column": "f"}, "column", "takes an integer"),
        ({"function": "corr", "column": "f"}, "other", "needs a second column"),
        ({"function": "sum", "column": "i", "other": "f"}, "other", "takes no second column"),
        ({"function": "corr", "column": "f", "other": "s"}, "other", "column 's' is string"),
        ({"function": "approx_percentile", "column": "f"}, "percentile", "needs 'percentile'"),
        ({"function": "max", "column": "f", "percentile": 0.5}, "percentile", "takes no 'percentile'"),
        ({"function": "approx_percentile", "column": "f", "percentile": 95}, "percentile", "between 0 and 1"),
        ({"function": "count", "filter": "i + 1"}, "filter", "the filter is int64, not boolean"),
        ({"function": "count", "filter": "nope > 1"}, "filter", "nope"),
    ],
)
def test_a_wrong_aggregate_is_an_error_at_its_field(config, field, message):
    with pytest.raises(ConfigError) as raised:
        plan_of({"a": {"function": "count"}, "b": config})
    assert raised.value.field == f"aggregates[1].{field}"
    assert message in raised.value.message


def test_a_misspelled_function_has_a_suggestion():
    with pytest.raises(ConfigError) as raised:
        plan_of({"a": {"function": "count_distint", "column": "i"}})
    assert raised.value.suggestion == "count_distinct"


def unknown(plan: AggregatePlan, states: pa.RecordBatch) -> pa.RecordBatch:
    """States of the same keys from before the aggregates were there."""
    nulls = [pa.nulls(states.num_rows, field.type) for field in plan.state_fields]
    return pa.RecordBatch.from_arrays([states.column("k"), *nulls], schema=states.schema)


@settings(max_examples=20, deadline=None)
@given(parts=batches())
@pytest.mark.parametrize("plan", [ALL, RETRACTABLE], ids=["appended", "retractable"])
def test_states_from_before_an_aggregate_was_there_are_those_of_no_rows(plan, parts):
    states = merge(plan, [partial(plan, part) for part in parts])
    before = unknown(plan, states)
    assert same_results(results(plan, merge(plan, [before, states, before])), results(plan, states))
    nothing = plan.partial(
        parts[0].slice(0, 0),
        Groups(np.empty(0, dtype=np.int64), states.num_rows, has_empty=True),
        times_us=np.empty(0, dtype=np.int64),
        arrivals=np.empty(0, dtype=np.int64),
    )
    empty = pa.RecordBatch.from_arrays([states.column("k"), *nothing], schema=states.schema)
    assert same_results(results(plan, merge(plan, [before, before])), results(plan, empty))
    assert same_results(results(plan, before), results(plan, empty))


@settings(max_examples=20, deadline=None)
@given(parts=batches())
def test_results_from_before_an_aggregate_was_there_were_sent_without_it(parts):
    states = merge(ALL, [partial(ALL, part) for part in parts])
    before = merge(ALL, [unknown(ALL, states), unknown(ALL, states)])
    assert all(column.null_count == len(column) for column in ALL.finish_sent(before.columns[1:]))
    mixed = merge(ALL, [unknown(ALL, states), states])
    for sent, result in zip(ALL.finish_sent(mixed.columns[1:]), ALL.finish(mixed.columns[1:]), strict=True):
        assert sent.equals(result) or is_same(sent.to_pylist(), result.to_pylist())


def same_results(left: dict[Any, dict[str, Any]], right: dict[Any, dict[str, Any]]) -> bool:
    return left.keys() == right.keys() and all(
        is_same(value, right[key][name]) for key, row in left.items() for name, value in row.items()
    )
