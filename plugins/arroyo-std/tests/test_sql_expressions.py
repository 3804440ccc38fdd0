"""Random expressions over random batches give what DuckDB gives."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from arroyo_std.sql import Expression, check_expressions, compile_expressions
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import Registry

SCHEMA = pa.schema(
    {
        "a": pa.int64(),
        "B": pa.int64(),
        "x": pa.float64(),
        "s": pa.string(),
        "flag": pa.bool_(),
        "moment": pa.timestamp("us", tz="UTC"),
    }
)

# Small numbers: on overflow DataFusion wraps and DuckDB refuses.
_VALUES = {
    "a": st.integers(-100, 100),
    "B": st.integers(-100, 100),
    "x": st.integers(-400, 400).map(lambda quarters: quarters / 4),
    "s": st.text("abXY%_ ", max_size=4),
    "flag": st.booleans(),
    "moment": st.integers(0, 10**15),
}

rows = st.lists(st.fixed_dictionaries({name: st.none() | values for name, values in _VALUES.items()}), max_size=30)


def batch_of(listed: list[dict[str, object]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(listed, schema=SCHEMA)


integers = st.deferred(
    lambda: st.one_of(
        st.sampled_from(["a", "B", '"a"', "1", "-3", "0"]),
        st.builds("({} {} {})".format, integers, st.sampled_from("+-*"), st.sampled_from(["a", "B", "2", "7"])),
        st.builds("coalesce({}, {})".format, integers, integers),
        st.builds("(case when {} then {} else {} end)".format, booleans, integers, integers),
        st.builds("cast({} as bigint)".format, st.sampled_from(["flag", "a"])),
    )
)
floats = st.one_of(
    st.sampled_from(["x", "0.5", "abs(x)"]),
    st.builds("({} {} {})".format, st.just("x"), st.sampled_from("+-*"), st.sampled_from(["x", "2.0", "B"])),
)
texts = st.deferred(
    lambda: st.one_of(
        st.sampled_from(["s", "''", "'ab'", "upper(s)", "trim(s)"]),
        st.builds("({} || {})".format, texts, texts),
        st.builds("nullif({}, {})".format, texts, texts),
    )
)
comparisons = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from"])
booleans = st.deferred(
    lambda: st.one_of(
        st.sampled_from(["flag", "true", "false"]),
        st.builds("({} {} {})".format, integers, comparisons, integers),
        st.builds("({} {} {})".format, floats, comparisons, floats),
        st.builds("({} {} {})".format, texts, comparisons, texts),
        st.builds("({} {} {})".format, booleans, st.sampled_from(["and", "or"]), booleans),
        st.builds("(not {})".format, booleans),
        st.builds("({} is {} null)".format, st.one_of(integers, texts), st.sampled_from(["", "not"])),
        st.builds("({} {} (1, -3, {}))".format, integers, st.sampled_from(["in", "not in"]), integers),
        st.builds("({} between {} and {})".format, integers, integers, integers),
        st.builds("({} like {})".format, texts, st.sampled_from(["'a%'", "'%X'", "'_b'", "'ab'"])),
        st.just("(moment < timestamptz '1980-01-01 00:00:00+00')"),
    )
)
anything = st.one_of(integers, floats, texts, booleans)


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    return connection


def compile_all(sqls: list[str]):
    expressions = [Expression(name=f"e{number}", sql=sql, field="expressions") for number, sql in enumerate(sqls)]
    return check_expressions(expressions, SCHEMA, Registry())


@settings(max_examples=120, deadline=None)
@given(sqls=st.lists(anything, min_size=1, max_size=3), listed=rows)
def test_expressions_agree_with_duckdb(oracle, sqls, listed):
    batch = batch_of(listed)
    compiled = compile_all(sqls)
    result = compiled.evaluate(batch)
    assert result.schema == compiled.schema
    assert result.num_rows == batch.num_rows
    selected = ", ".join(f"{sql} as e{number}" for number, sql in enumerate(sqls))
    oracle.register("batch", pa.table(batch))
    expected = oracle.sql(f"select {selected} from batch").to_arrow_table()
    assert result.to_pylist() == [
        {name: float(value) if isinstance(result[name][place].as_py(), float) else value for name, value in row.items()}
        for place, row in enumerate(expected.to_pylist())
    ]


@settings(max_examples=40, deadline=None)
@given(sql=anything, listed=rows, cut=st.integers(0, 30))
def test_batches_do_not_see_one_another(sql, listed, cut):
    whole = batch_of(listed)
    parts = [whole.slice(0, cut), whole.slice(cut)] if cut <= len(listed) else [whole]
    compiled = compile_all([sql])
    together = compiled.evaluate(whole).to_pylist()
    assert [row for part in parts for row in compiled.evaluate(part).to_pylist()] == together


@settings(max_examples=25, deadline=None)
@given(sql=anything)
def test_compiling_again_gives_the_type_that_was_checked(sql):
    checked = compile_all([sql])
    again = compile_expressions([Expression(name="e0", sql=sql, field="expressions")], SCHEMA, Registry())
    assert again.schema == checked.schema
    assert again.copies == checked.copies


def test_an_evaluation_does_not_keep_the_batch_alive():
    compiled = compile_all(["a + 1"])
    before = pa.total_allocated_bytes()
    batch = batch_of([{"a": number} for number in range(10_000)])
    compiled.evaluate(batch)
    del batch
    assert pa.total_allocated_bytes() <= before


def test_wide_batches_stay_one_batch():
    batch = pa.RecordBatch.from_pydict({"a": pa.array(range(200_000))})
    compiled = check_expressions([Expression(name="b", sql="a % 7", field="b")], batch.schema, Registry())
    result = compiled.evaluate(batch)
    assert result.column(0).to_pylist() == [number % 7 for number in range(200_000)]
