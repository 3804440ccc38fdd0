"""User functions in SQL: typed at validation, run with their own errors."""

from __future__ import annotations

import itertools
import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from arroyo_std.sql import Expression, check_expressions, open_session
from arroyo_std.sql_query import CompiledQuery, check_query
from arroyo_std.window_function import WindowFunction
from arroyo_testing import OperatorHarness
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema, Registry, Watermark
from arroyo_core.errors import ConfigError, DataError, PluginError, UdfError
from arroyo_core.udf import SourceKind, UdfSource, async_udf, batch_udf, udaf, udf

SCHEMA = pa.schema(
    {
        "price": pa.int64(),
        "small": pa.int32(),
        "rate": pa.float64(),
        "name": pa.string(),
        "time": pa.timestamp("us", tz="UTC"),
        "kind": pa.dictionary(pa.int32(), pa.string()),
    }
)


@udf
def clean(text: str) -> str:
    return text.strip().lower()


@udf
def twice(number: pa.Int64Array) -> pa.Int64Array:
    return pc.multiply(number, 2)


@udf
def ratio(a: float, b: float | None) -> float:
    return a / (b if b is not None else 1.0)


@udf(name="Odd")
def odd(number: int) -> bool:
    return number % 2 == 1


@udf
def refuse(number: int) -> int:
    raise ValueError(f"not {number}")


ROLLS = itertools.count()


@udf(volatility="volatile")
def roll(sides: int) -> int:
    return next(ROLLS) % sides


@udaf
class Longest:
    def init(self) -> str:
        return ""

    def update(self, state: str, text: str) -> str:
        return max(state, text, key=len)

    def merge(self, first: str, second: str) -> str:
        return max(first, second, key=len)

    def finish(self, state: str) -> str:
        return state


@async_udf
async def look_up(key: str) -> str:
    return key


@batch_udf
def same(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


FUNCTIONS = [clean, twice, ratio, odd, refuse, roll, Longest, look_up, same]
BUNDLE = UdfSource(kind=SourceKind.BUNDLE, name="texts", version="1", sha256="cd" * 32)


@pytest.fixture
def registry():
    registry = Registry()
    for function in FUNCTIONS:
        registry.add_udf(function)
    registry.add_udf(clean.at(BUNDLE, prefix="v1"))
    return registry


def rows(**columns):
    size = len(next(iter(columns.values())))
    arrays = [pa.array(columns.get(field.name, [None] * size), field.type) for field in SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def compile_one(sql, registry):
    return check_expressions([Expression(name="x", sql=sql, field="expressions.x")], SCHEMA, registry)


def evaluate(sql, batch, registry):
    return compile_one(sql, registry).evaluate(batch).column(0).to_pylist()


def test_functions_are_called_like_those_of_sql(registry):
    batch = rows(name=[" A", None, "b "], price=[1, 2, None], rate=[0.5, 1.0, None])
    assert evaluate("clean(name) || '!'", batch, registry) == ["a!", None, "b!"]
    assert evaluate("v1.clean(name)", batch, registry) == ["a", None, "b"]
    assert evaluate("twice(price) + twice(1)", batch, registry) == [4, 6, None]
    assert evaluate("ratio(price, rate)", batch, registry) == [2.0, 2.0, None]
    assert evaluate("ratio(price, NULL)", batch, registry) == [1.0, 2.0, None]
    assert evaluate("CASE WHEN Odd(price) THEN clean(name) ELSE 'even' END", batch, registry) == ["a", "even", "even"]
    assert evaluate("upper(clean(CAST(price AS VARCHAR)))", batch, registry) == ["1", "2", None]


def test_other_types_are_cast_where_nothing_is_lost(registry):
    batch = rows(small=[3], kind=["K"])
    assert evaluate("twice(small)", batch, registry) == [6]
    assert evaluate("ratio(small, small)", batch, registry) == [1.0]
    assert evaluate("clean(kind)", batch, registry) == ["k"]


def test_calls_alone_and_sql_around_calls_keep_their_places(registry):
    texts = ["price + 1", "twice(price)", "twice(price) + 1", "twice(small)", "clean(name)"]
    expressions = [Expression(name=f"x{at}", sql=sql, field=f"x{at}") for at, sql in enumerate(texts)]
    result = check_expressions(expressions, SCHEMA, registry).evaluate(
        rows(price=[1, 2], small=[5, 6], name=["A ", "B"])
    )
    assert result.to_pydict() == {"x0": [2, 3], "x1": [2, 4], "x2": [3, 5], "x3": [10, 12], "x4": ["a", "b"]}


def test_constants_are_arguments_too(registry):
    batch = rows(price=[1, 2])
    assert evaluate("clean(' X ')", batch, registry) == ["x", "x"]
    assert evaluate("twice(4)", batch, registry) == [8, 8]


def test_a_volatile_function_is_called_for_every_row(registry):
    compiled = compile_one("roll(1000000000)", registry)
    drawn = [value for _ in range(3) for value in compiled.evaluate(rows(price=[1, 2, 3])).column(0).to_pylist()]
    assert len(set(drawn)) == 9


@given(numbers=st.lists(st.none() | st.integers(-(10**6), 10**6), min_size=1))
def test_an_expression_equals_a_list_comprehension(numbers):
    registry = Registry()
    for function in (twice, odd):
        registry.add_udf(function)
    expected = [None if number is None else number * 2 + (number % 2) for number in numbers]
    sql = "twice(price) + CASE WHEN odd(price) THEN 1 WHEN NOT odd(price) THEN 0 END"
    assert evaluate(sql, rows(price=numbers), registry) == expected


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("clean(price)", r"clean\(text: string\) -> string cannot be called with \(int64\)"),
        ("upper(clean(price))", r"clean\(text: string\) -> string cannot be called with \(int64\)"),
        ("CASE WHEN price > 1 THEN clean(time) END", r"with \(timestamp\[us, tz=UTC\]\)"),
        ("twice(name)", r"twice\(number: int64\?\) -> int64 cannot be called with \(string\)"),
        ("twice(rate)", r"cannot be called with \(double\)"),
        ("twice(price, price)", r"cannot be called with \(int64, int64\)"),
        ("ratio(price)", r"ratio\(a: double, b: double\?\) -> double cannot be called with \(int64\)"),
        ("clean()", r"cannot be called with \(\)"),
        ("v1.clean(rate)", r"v1.clean\(text: string\) -> string cannot be called with \(double\)"),
        ("refuse(1)", "UDF 'refuse': ValueError: not 1; called with number=1"),
        ("longest(name)", "function 'longest' is an aggregate: use it in 'aggregates'"),
        ("look_up(name)", "function 'look_up' is asynchronous: call it with std.async_udf"),
        ("same(name)", "function 'same' is a function of whole batches"),
    ],
)
def test_a_wrong_call_is_refused_with_the_signature(sql, message, registry):
    with pytest.raises(ConfigError, match=message) as caught:
        compile_one(sql, registry)
    assert caught.value.field == "expressions.x"
    with pytest.raises(ConfigError, match=message) as caught:
        check_query(f"SELECT price, {sql} AS x FROM input", SCHEMA, registry)
    assert caught.value.field == "query"


def test_misspelled_functions_are_found(registry):
    with pytest.raises(ConfigError, match="no function 'clena'") as caught:
        compile_one("clena(name)", registry)
    assert caught.value.suggestion == "clean"


def test_an_error_of_a_function_is_its_own(registry):
    compiled = compile_one("refuse(price) + 1", registry)
    with pytest.raises(UdfError) as caught:
        compiled.evaluate(rows(price=[7]))
    assert (caught.value.udf, caught.value.sample) == ("refuse", "number=7")
    assert 'raise ValueError(f"not {number}")' in caught.value.traceback
    # The plan can be used on: the next batch is a new beginning.
    assert compiled.evaluate(rows(price=[None])).column(0).to_pylist() == [None]


def test_an_error_of_sql_is_not_taken_for_one_of_a_function(registry):
    compiled = compile_one("1 / twice(price)", registry)
    with pytest.raises(DataError, match="divide by zero"):
        compiled.evaluate(rows(price=[0]))


def test_queries_call_functions(registry):
    sql = "SELECT i.price, clean(i.name) AS name FROM input AS i WHERE NOT odd(i.price)"
    compiled = check_query(sql, SCHEMA, registry)
    assert compiled.evaluate(rows(price=[1, 2], name=["A", "B"])).to_pylist() == [{"price": 2, "name": "b"}]
    failing = CompiledQuery("SELECT refuse(price) AS x FROM input", SCHEMA, registry)
    with pytest.raises(UdfError, match="not 5"):
        failing.evaluate(rows(price=[5]))


@pytest.mark.parametrize("name", ["upper", "Sum", "row_number"])
def test_names_of_sql_are_taken(name):
    registry = Registry()
    registry.add_udf(udf(name=name)(clean.function))
    with pytest.raises(PluginError, match=f"UDF '{name}' has the name of a function of SQL"):
        open_session(registry, [])


def test_names_that_differ_in_case_alone_are_one_to_sql():
    registry = Registry()
    registry.add_udf(clean)
    registry.add_udf(udf(name="Clean")(clean.function).at(BUNDLE))
    with pytest.raises(PluginError, match=r"UDFs 'clean' and 'Clean' of bundle texts 1 .* differ in case alone"):
        open_session(registry, [])


def window_expression(sql, registry):
    return WindowFunction([Expression(name="x", sql=sql, field="expression")], registry)


def test_window_functions_see_them(registry):
    stream = ArroyoSchema(SCHEMA, "time")
    sql = "sum(twice(price)) OVER (PARTITION BY name)"
    harness = OperatorHarness(window_expression(sql, registry), inputs=[stream])
    batch = rows(price=[1, 2, 3], name=["a", "b", "a"], time=[5, 5, 5])
    order = random.Random(1).sample(range(3), 3)
    harness.process(batch.take(pa.array(order)))
    harness.watermark(Watermark.event_time(10))
    found = sorted((row["price"], row["x"]) for row in harness.output.to_pylist())
    harness.close()
    assert found == [(1, 8), (2, 4), (3, 8)]
    with pytest.raises(ConfigError, match=r"cannot be called with \(string\)"):
        window_expression("sum(twice(name)) OVER ()", registry).output_schema([stream])
