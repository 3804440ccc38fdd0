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
from arroyo_std.ranking import OrderBy
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


def order(*columns: str, **options: bool) -> tuple[OrderBy, ...]:
    return tuple(
        OrderBy(column=column, field=f"aggregates[0].order_by[{place}]", **options)
        for place, column in enumerate(columns)
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
    **{
        f"regr_{name}": (
            {"function": f"regr_{name}", "column": "f", "other": "y"},
            f"case when count(f) filter (y is not null) > 0 then regr_{name}(f, y) else {empty} end",
        )
        for name, empty in [("count", "0"), *((each, "null") for each in ("avgx", "avgy", "sxx", "syy", "sxy"))]
    },
    **{
        f"regr_{name}": (
            {"function": f"regr_{name}", "column": "f", "other": "y", "filter": "b"},
            f"case when (var_pop(y) filter (b and f is not null)) > 0 then regr_{name}(f, y) filter (b) end",
        )
        for name in ("slope", "intercept")
    },
    "regr_r2": (
        {"function": "regr_r2", "column": "f", "other": "y"},
        "case when (var_pop(y) filter (f is not null)) > 0 then "
        "case when (var_pop(f) filter (y is not null)) > 0 then regr_r2(f, y) else 1 end end",
    ),
    "percentile_cont": ({"function": "percentile_cont", "column": "f", "percentile": 0.3}, "quantile_cont(f, 0.3)"),
    "percentile_last": ({"function": "percentile_cont", "column": "i", "percentile": 1}, "quantile_cont(i, 1.0)"),
    "percentile_distinct": (
        {"function": "percentile_cont", "column": "i", "percentile": 0.75, "is_distinct": True},
        "list_aggregate(list_distinct(list(i)), 'quantile_cont', 0.75)",
    ),
    "sum_distinct": ({"function": "sum", "column": "i", "is_distinct": True}, "sum(distinct i)::bigint"),
    "mean_distinct": (
        {"function": "mean", "column": "d", "is_distinct": True, "filter": "b"},
        "avg(distinct d) filter (b)",
    ),
    "count_distinct_too": ({"function": "count", "column": "s", "is_distinct": True}, "count(distinct s)"),
    "max_distinct": ({"function": "max", "column": "s", "is_distinct": True}, "max(distinct s)"),
    "bit_xor_distinct": ({"function": "bit_xor", "column": "i", "is_distinct": True}, "bit_xor(distinct i)"),
    "list_distinct": (
        {"function": "list", "column": "i", "is_distinct": True},
        "list(distinct i)",
    ),
    "string_agg": (
        {"function": "string_agg", "column": "s", "separator": "; ", "order_by": order("s", is_descending=True)},
        "string_agg(s, '; ' order by s desc)",
    ),
    "string_agg_distinct": (
        {"function": "string_agg", "column": "s", "is_distinct": True, "order_by": order("s"), "filter": "b"},
        "string_agg(distinct s, ',' order by s) filter (b)",
    ),
    "first_by_value": (
        {"function": "first", "column": "i", "order_by": order("f", "i")},
        "first(i order by f nulls last, i nulls last)",
    ),
    "last_by_value": (
        {"function": "last", "column": "s", "order_by": order("f", is_descending=True), "filter": "b"},
        "last(s order by f desc nulls last, s nulls last) filter (b)",
    ),
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


#: Lists whose order counts, and the same in DuckDB's SQL; rows that are equal in the order are ordered by value.
IN_ORDER: dict[str, tuple[dict[str, Any], str]] = {
    "ascending": (
        {"function": "list", "column": "i", "order_by": order("f")},
        "list(i order by f nulls last, i nulls last)",
    ),
    "descending": (
        {"function": "list", "column": "s", "order_by": order("i", "t", is_descending=True, nulls_last=False)},
        "list(s order by i desc nulls first, t desc nulls first, s nulls last)",
    ),
    "distinct": (
        {"function": "list", "column": "i", "is_distinct": True, "order_by": order("i", is_descending=True)},
        "list(distinct i order by i desc nulls last)",
    ),
    "filtered": (
        {"function": "list", "column": "d", "order_by": order("d"), "filter": "b"},
        "list(d order by d nulls last) filter (b)",
    ),
}


@settings(max_examples=30, deadline=None)
@given(parts=batches(), is_updating=st.booleans())
def test_lists_in_an_order_are_those_of_duckdb(parts, is_updating):
    plan = plan_of({name: config for name, (config, _) in IN_ORDER.items()}, is_updating=is_updating)
    found = results(plan, merge(plan, [partial(plan, part) for part in parts]))
    with duckdb.connect() as connection:
        connection.register("rows", pa.Table.from_batches(parts))
        wanted = ", ".join(f'{sql} as "{name}"' for name, (_, sql) in IN_ORDER.items())
        expected = connection.sql(f"select k, {wanted} from rows group by k").to_arrow_table().to_pylist()
    assert found == {row.pop("k"): row for row in expected}


def test_a_weighted_percentile_is_that_of_values_repeated_as_often():
    values, weights = [1.0, 2.0, 4.0, 8.0, None, 16.0, 32.0], [1, 0, 3, 2, 5, None, -2]
    rows = rows_of(i=[1] * 7, f=values, y=[None if each is None else float(each) for each in weights])
    for percentile, wanted in ((0, 1), (0.1, 1), (0.2, 4), (0.5, 4), (0.66, 4), (0.7, 8), (1, 8)):
        config = {"function": "approx_percentile_with_weight", "column": "f", "other": "y", "percentile": percentile}
        plan = plan_of({"found": config})
        assert only(plan, rows.slice(0, 3), rows.slice(3)) == pytest.approx(wanted, rel=0.01)
        assert only(plan_of({"found": config}, is_updating=True), rows) == pytest.approx(wanted, rel=0.01)


def test_a_small_weight_counts_beside_a_group_of_large_ones():
    config = {"function": "approx_percentile_with_weight", "column": "f", "other": "y", "percentile": 0.5}
    plan = plan_of({"found": config})
    rows = rows_of(k=[0, 1, 1, 2], f=[1.0, 5.0, 9.0, None], y=[1e300, 1e-9, 3e-9, 1.0])
    found = {key: row["found"] for key, row in results(plan, partial(plan, rows)).items()}
    assert found == {0: pytest.approx(1, rel=0.01), 1: pytest.approx(9, rel=0.01), 2: None}


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
        ({"function": "sum", "column": "f", "order_by": order("i")}, "order_by", "takes no 'order_by'"),
        ({"function": "list", "column": "f", "separator": "-"}, "separator", "takes no 'separator'"),
        ({"function": "string_agg", "column": "i"}, "column", "takes a text"),
        ({"function": "first", "column": "i", "is_distinct": True}, "distinct", "takes no 'distinct'"),
        ({"function": "count", "is_distinct": True}, "column", "needs a column"),
        ({"function": "percentile_cont", "column": "i"}, "percentile", "needs 'percentile'"),
        ({"function": "count", "filter": "i + 1"}, "filter", "the filter is int64, not boolean"),
        ({"function": "count", "filter": "nope > 1"}, "filter", "nope"),
    ],
)
def test_a_wrong_aggregate_is_an_error_at_its_field(config, field, message):
    with pytest.raises(ConfigError) as raised:
        plan_of({"a": {"function": "count"}, "b": config})
    assert raised.value.field == f"aggregates[1].{field}"
    assert message in raised.value.message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order_by": (OrderBy(column="nope", field="aggregates[0].order_by[0]"),)}, "no column 'nope'"),
        (
            {"is_distinct": True, "order_by": (OrderBy(column="f", field="aggregates[0].order_by[0]"),)},
            "ordered by nothing but themselves: 'i'",
        ),
    ],
)
def test_a_wrong_order_is_an_error_at_its_column(options, message):
    with pytest.raises(ConfigError) as raised:
        plan_of({"a": {"function": "list", "column": "i", **options}})
    assert raised.value.field == "aggregates[0].order_by[0].column"
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
