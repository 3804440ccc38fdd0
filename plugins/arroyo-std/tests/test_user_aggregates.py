"""User aggregates beside those of std that compute the same: in every window, at every cut, at any parallelism."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from arroyo_std.plugin import arroyo_register
from arroyo_testing import OperatorHarness, ParallelHarness
from google.protobuf.json_format import ParseDict
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema, Registry, with_defaults
from arroyo_core.api.updating import UPDATING_META
from arroyo_core.errors import ConfigError, OperatorError, PluginError
from arroyo_core.udf import SourceKind, UdfSource, udaf, udf

from .support.window_model import STREAM, EndOfEpoch, Mark, Row, Rows, as_rows, batch_of, feed, streams


@udaf
class Total:
    """A sum; null of no rows."""

    def init(self) -> int | None:
        return None

    def update(self, state: int | None, value: int) -> int | None:
        return value if state is None else state + value

    def merge(self, first: int | None, second: int | None) -> int | None:
        return second if first is None else first if second is None else first + second

    def finish(self, state: int | None) -> int | None:
        return state


@udaf
class Kinds:
    """How many values there are, with a state of many."""

    def init(self) -> dict[int, int]:
        return {}

    def update(self, state: dict[int, int], value: int) -> dict[int, int]:
        state[value] = state.get(value, 0) + 1
        return state

    def merge(self, first: dict[int, int], second: dict[int, int]) -> dict[int, int]:
        for value, count in second.items():
            first[value] = first.get(value, 0) + count
        return first

    def finish(self, state: dict[int, int]) -> int:
        return len(state)


@udaf
class Spread:
    """The mean by arrays: of sum and count."""

    def init(self) -> tuple[int, int]:
        return (0, 0)

    def update(self, state: tuple[int, int], value: int) -> tuple[int, int]:
        raise AssertionError("update_batch is called in its place")

    def update_batch(self, state: tuple[int, int], values: pa.Int64Array) -> tuple[int, int]:
        assert len(values)
        return (state[0] + (pc.sum(values).as_py() or 0), state[1] + len(values))

    def merge(self, first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
        return (first[0] + second[0], first[1] + second[1])

    def finish(self, state: tuple[int, int]) -> float | None:
        return state[0] / state[1] if state[1] else None


@udaf(name="rows_of_pairs")
class Pairs:
    """Rows where the value, or the key, may be null: the first parameter takes nulls, the second does not."""

    def init(self) -> int:
        return 0

    def update(self, state: int, value: int | None, key: str) -> int:
        return state + (100 if value is None else 1)

    def merge(self, first: int, second: int) -> int:
        return first + second

    def finish(self, state: int) -> int:
        return state


@udaf
class Broken:
    def init(self) -> int:
        return 0

    def update(self, state: int, value: int) -> int:
        return state + 1 // value

    def merge(self, first: int, second: int) -> int:
        return first + second

    def finish(self, state: int) -> str:
        return state  # type: ignore[return-value]


@udf
def scalar(value: int) -> int:
    return value


BUNDLE = UdfSource(kind=SourceKind.BUNDLE, name="sums", version="1", sha256="ef" * 32)
AGGREGATES = [
    {"function": "sum", "column": "v", "as": "total"},
    {"function": "total", "column": "v", "as": "user_total"},
    {"function": "sum", "column": "v", "filter": "v > 0", "as": "positive"},
    {"function": "v1.total", "column": "v", "filter": "v > 0", "as": "user_positive"},
    {"function": "count_distinct", "column": "v", "as": "kinds"},
    {"function": "kinds", "column": "v", "as": "user_kinds"},
    {"function": "mean", "column": "v", "as": "mean"},
    {"function": "spread", "columns": ["v"], "as": "user_mean"},
    {"function": "count", "filter": "k IS NOT NULL AND v IS NOT NULL", "as": "known"},
    {"function": "count", "filter": "k IS NOT NULL AND v IS NULL", "as": "unknown"},
    {"function": "rows_of_pairs", "columns": ["v", "k"], "as": "user_known"},
]


@pytest.fixture(scope="module")
def user_make():
    registry = Registry()
    arroyo_register(registry)
    for function in (Total, Kinds, Spread, Pairs, Broken, scalar, Total.at(BUNDLE, prefix="v1")):
        registry.add_udf(function)

    def make(operator: str, **config: Any) -> Any:
        constructor = registry.constructors[operator]
        constructed = constructor.with_config(with_defaults(ParseDict(config, constructor.config_type())), registry)
        return constructed.operator

    return make


def check(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        assert row["user_total"] == row["total"]
        assert row["user_positive"] == row["positive"]
        assert row["user_kinds"] == row["kinds"]
        assert row["user_mean"] == pytest.approx(row["mean"])
        assert row["user_known"] == row["known"] + 100 * row["unknown"]


WINDOWS: list[tuple[str, dict[str, Any]]] = [
    ("std.tumbling_window", {"size": 10}),
    ("std.tumbling_window", {"size": 10, "early": 1}),
    ("std.sliding_window", {"size": 10, "slide": 5}),
    ("std.session_window", {"gap": 10}),
]


@pytest.mark.parametrize(("operator", "shape"), WINDOWS)
@settings(max_examples=15, deadline=None)
@given(steps=streams(), keys=st.sampled_from([[], ["k"]]))
def test_windows_hold_what_those_of_std_hold(user_make, operator, shape, steps, keys):
    config = {**shape, "keys": keys, "aggregates": AGGREGATES}
    with OperatorHarness(lambda: user_make(operator, **config), inputs=[STREAM]) as harness:
        feed(harness, steps)
        check(harness.output.to_pylist())


NAMES = [None, *(f"key-{number}" for number in range(7))]
ROWS = st.lists(
    st.builds(Row, st.sampled_from(NAMES), st.none() | st.integers(-3, 3), st.integers(-20, 60)), max_size=12
).map(lambda rows: Rows(tuple(rows)))
STEPS = st.lists(ROWS | ROWS | st.builds(Mark, st.integers(-30, 60)) | st.just(EndOfEpoch(True)), max_size=12)


@pytest.mark.parametrize(("operator", "shape"), [each for each in WINDOWS if "early" not in each[1]])
@settings(max_examples=8, deadline=None)
@given(steps=STEPS, widths=st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_windows_are_the_same_at_any_parallelism(user_make, operator, shape, steps, widths):
    def fresh():
        return user_make(operator, keys=["k"], aggregates=AGGREGATES, **shape)

    with OperatorHarness(fresh, inputs=[STREAM]) as alone:
        feed(alone, steps)
        expected = as_rows(alone.output)
    with ParallelHarness(fresh, inputs=[STREAM], parallelism=widths[0]) as many:
        feed(many, steps, widths=widths)
        found = as_rows(many.output)
        assert found == expected
        check(found)


@settings(max_examples=15, deadline=None)
@given(steps=st.lists(ROWS | st.builds(EndOfEpoch, st.booleans()), max_size=10))
def test_partial_states_are_made_before_the_shuffle(user_make, steps):
    """Rows go through the partial operator, and what it emits to the window."""

    compact = [each for each in AGGREGATES if each["function"] != "count_distinct"]

    def fresh():
        return user_make("std.tumbling_window", size=10, keys=["k"], aggregates=compact)

    with (
        OperatorHarness(lambda: fresh().partial([STREAM]), inputs=[STREAM]) as before,
        OperatorHarness(fresh, inputs=[before.output_schema]) as behind,
        OperatorHarness(fresh, inputs=[STREAM]) as whole,
    ):
        for step in steps:
            if isinstance(step, Rows):
                before.process(batch_of(step.rows))
                whole.process(batch_of(step.rows))
            else:
                before.checkpoint()
            for batch in before.take_output().to_batches():
                behind.process(batch)
            if isinstance(step, EndOfEpoch):
                behind.checkpoint()
                if step.is_restored:
                    behind.restore()
        before.end_of_data()
        for batch in before.take_output().to_batches():
            behind.process(batch)
        behind.end_of_data()
        whole.end_of_data()
        assert as_rows(behind.output) == as_rows(whole.output)


@settings(max_examples=15, deadline=None)
@given(steps=st.lists(ROWS | st.builds(EndOfEpoch, st.booleans()), max_size=10))
def test_changing_results_are_those_of_std(user_make, steps):
    def fresh():
        return user_make("std.updating_aggregate", keys=["k"], aggregates=AGGREGATES)

    with OperatorHarness(fresh, inputs=[STREAM]) as harness:
        feed(harness, steps)
        check(harness.output.to_pylist())


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_rows_that_are_taken_back_do_not_count(user_make, data):
    """The input is what an updating aggregate says of groups: each new result takes the old one back."""
    first_config = {"keys": ["k"], "aggregates": [{"function": "sum", "column": "v", "as": "v"}]}
    total = [each for each in AGGREGATES if "k" not in str(each.get("filter", "")) and "columns" not in each]
    with OperatorHarness(lambda: user_make("std.updating_aggregate", **first_config), inputs=[STREAM]) as first:
        second_config = {"keys": [], "aggregates": total}
        with OperatorHarness(
            lambda: user_make("std.updating_aggregate", **second_config), inputs=[first.output_schema]
        ) as second:
            for _ in range(data.draw(st.integers(1, 4))):
                first.process(batch_of(data.draw(ROWS).rows))
                first.checkpoint()
                for batch in first.take_output().to_batches():
                    second.process(batch)
                second.checkpoint()
                if data.draw(st.booleans()):
                    second.restore()
            assert UPDATING_META in second.output.schema.names
            for row in second.output.to_pylist():
                assert row["user_total"] == row["total"]
                assert row["user_positive"] == row["positive"]
                assert row["user_kinds"] == row["kinds"]


@pytest.mark.parametrize(
    ("aggregate", "field", "message"),
    [
        (
            {"function": "total", "column": "k"},
            "column",
            r"total\(value: int64\) -> int64 cannot be called with \(string\)",
        ),
        ({"function": "total", "columns": ["v", "v"]}, "columns[0]", r"cannot be called with \(int64, int64\)"),
        ({"function": "rows_of_pairs", "columns": ["v", "kk"]}, "columns[1]", "no column 'kk'"),
        ({"function": "rows_of_pairs", "columns": ["v", "at"]}, "columns[1]", "cannot be called with"),
        ({"function": "total"}, "function", "needs 'column' or 'columns'"),
        ({"function": "total", "column": "v", "columns": ["v"]}, "columns", "exclude each other"),
        ({"function": "total", "column": "v", "percentile": 0.5}, "percentile", "takes no 'percentile'"),
        ({"function": "sum", "columns": ["v"]}, "columns", "'columns' is for user functions"),
        ({"function": "scalar", "column": "v"}, "function", "function 'scalar' is not an aggregate"),
        ({"function": "totla", "column": "v"}, "function", "no aggregate function 'totla'"),
    ],
)
def test_a_mistake_is_named_at_its_field(user_make, aggregate, field, message):
    operator = user_make("std.tumbling_window", size=10, aggregates=[{"function": "count"}, aggregate])
    with pytest.raises(ConfigError, match=message) as caught:
        operator.output_schema([STREAM])
    assert caught.value.field == f"aggregates[1].{field}"
    if aggregate["function"] == "totla":
        assert caught.value.suggestion == "total"


def test_names_of_std_are_taken():
    registry = Registry()
    arroyo_register(registry)
    registry.add_udf(udaf(name="sum")(type(Total.aggregation)))
    constructor = registry.constructors["std.tumbling_window"]
    config = with_defaults(
        ParseDict({"size": 10, "aggregates": [{"function": "sum", "column": "v"}]}, constructor.config_type())
    )
    with pytest.raises(PluginError, match="UDF 'sum' has the name of an aggregate of std"):
        constructor.with_config(config, registry).operator.output_schema([STREAM])


def test_a_result_is_called_after_function_and_columns(user_make):
    operator = user_make("std.tumbling_window", size=10, aggregates=[{"function": "v1.total", "column": "v"}])
    assert "v1_total_v" in operator.output_schema([STREAM]).names


def test_an_error_names_the_row(user_make):
    def fresh():
        return user_make("std.tumbling_window", size=10, aggregates=[{"function": "broken", "column": "v"}])

    failing = pytest.raises(OperatorError, match=r"UDF 'broken': ZeroDivisionError.*called with value=0")
    with OperatorHarness(fresh, inputs=[STREAM]) as harness, failing:
        harness.process(batch_of([Row("a", 1, 1), Row("a", 0, 2)]))
    with OperatorHarness(fresh, inputs=[STREAM]) as harness:
        harness.process(batch_of([Row("a", 1, 1)]))
        with pytest.raises(OperatorError, match=r"finish is declared as string, and was 1 \(int\)"):
            harness.end_of_data()


def test_columns_are_cast_where_nothing_is_lost(user_make):
    stream = ArroyoSchema(pa.schema({"k": pa.string(), "v": pa.int16(), "at": STREAM.schema.field("at").type}), "at")
    operator = user_make("std.tumbling_window", size=10, aggregates=[{"function": "total", "column": "v", "as": "x"}])
    with OperatorHarness(operator, inputs=[stream]) as harness:
        batch = batch_of([Row("a", 1, 1), Row("a", 2, 2)]).cast(stream.schema)
        harness.process(batch)
        harness.end_of_data()
        assert harness.output.column("x").to_pylist() == [3]
