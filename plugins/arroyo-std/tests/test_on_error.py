"""Rows that cannot be computed: `on_error` in std.filter and std.project."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from arroyo_std.plugin import arroyo_register
from arroyo_testing import OperatorHarness, run_in_process
from google.protobuf import struct_pb2
from google.protobuf.json_format import ParseDict
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import (
    ArroyoSchema,
    ConstructedOperator,
    OperatorConstructor,
    Registry,
    SourceFinishType,
    SourceOperator,
    with_defaults,
)
from arroyo_core.errors import ConfigError, InvalidPipelineError, OperatorError
from arroyo_core.plugin import PluginSet
from arroyo_core.udf import udf

STREAM = ArroyoSchema(pa.schema({"n": pa.int64(), "name": pa.string()}))
CALLS: list[int] = []


@udf
def inverse(number: int) -> float:
    return 1 / number


@udf
def reciprocal(number: int) -> float:
    return 1 / number


@udf
def whole_inverse(number: pa.Int64Array) -> pa.DoubleArray:
    CALLS.append(len(number))
    return pc.divide_checked(pc.cast(number, pa.float64()), pc.multiply(number, number).cast(pa.float64()))


@udf
def counted(number: int) -> float:
    CALLS.append(number)
    return 1 / number


@udf(timeout="500ms")
def sleepy(number: int) -> int:
    # Much longer than the timeout that is tested.
    time.sleep(10 if number == 0 else 0)
    return number


@pytest.fixture(scope="module")
def registry():
    registry = Registry()
    arroyo_register(registry)
    for function in (inverse, whole_inverse, counted, sleepy, reciprocal.registered_by("acme", "1")):
        registry.add_udf(function)
    return registry


@pytest.fixture
def opened(registry):
    harnesses = []

    def opened(operator: str, stream: ArroyoSchema = STREAM, **config: Any) -> OperatorHarness:
        constructor = registry.constructors[operator]
        made = constructor.with_config(with_defaults(ParseDict(config, constructor.config_type())), registry)
        harnesses.append(OperatorHarness(made, inputs=[stream]))
        return harnesses[-1]

    yield opened
    for harness in harnesses:
        harness.close()


def batch(*numbers: int | None) -> pa.RecordBatch:
    names = [f"row {place}" for place in range(len(numbers))]
    return pa.RecordBatch.from_arrays([pa.array(numbers, pa.int64()), pa.array(names)], schema=STREAM.schema)


def test_a_failing_row_fails_the_job_by_default(opened):
    harness = opened("std.project", expressions=[{"name": "x", "sql": "inverse(n)"}])
    with pytest.raises(OperatorError, match=r"UDF 'inverse': ZeroDivisionError.*called with number=0"):
        harness.process(batch(1, 0))


@settings(deadline=None)
@given(numbers=st.lists(st.none() | st.integers(-1, 3), min_size=1))
def test_a_failing_expression_gives_null(registry, numbers):
    constructor = registry.constructors["std.project"]
    expressions = [{"name": "x", "sql": "inverse(n)"}, {"name": "y", "sql": "n + 1"}, {"name": "z", "sql": "12 / n"}]
    config = {"keep": ["name"], "expressions": expressions, "onError": "null"}
    made = constructor.with_config(with_defaults(ParseDict(config, constructor.config_type())), registry)
    with OperatorHarness(made, inputs=[STREAM]) as harness:
        harness.process(batch(*numbers))
        assert harness.output.to_pylist() == [
            {
                "name": f"row {place}",
                "x": 1 / number if number else None,
                "y": None if number is None else number + 1,
                "z": 12 // number if number and number > 0 else -12 if number else None,
            }
            for place, number in enumerate(numbers)
        ]
        assert harness.counters.get("failed_rows", 0) == numbers.count(0)


@settings(deadline=None)
@given(numbers=st.lists(st.none() | st.integers(-1, 3), min_size=1))
def test_failing_rows_become_dead_letters(registry, numbers):
    constructor = registry.constructors["std.project"]
    config = {"keep": ["n"], "expressions": [{"name": "x", "sql": "inverse(n)"}], "onError": "dead_letter"}
    made = constructor.with_config(with_defaults(ParseDict(config, constructor.config_type())), registry)
    with OperatorHarness(made, inputs=[STREAM]) as harness:
        harness.process(batch(*numbers))
        expected = [{"n": number, "x": number and 1 / number} for number in numbers if number != 0]
        assert harness.output.to_pylist() == expected
        error = "UDF 'inverse': ZeroDivisionError: division by zero; called with number=0"
        assert harness.side_output("errors").select(["n", "name", "_error"]).to_pylist() == [
            {"n": 0, "name": f"row {place}", "_error": error} for place, number in enumerate(numbers) if number == 0
        ]


def test_a_dead_letter_says_where_its_row_failed(opened):
    harness = opened("std.filter", predicate="reciprocal(n) > 10 / (n - 1)", onError="dead_letter")
    harness.process(batch(0, 1))
    by_function, by_sql = harness.side_output("errors").to_pylist()
    assert by_function == {
        "n": 0,
        "name": "row 0",
        "_error": "UDF 'reciprocal' of distribution acme 1: ZeroDivisionError: division by zero; called with number=0",
        "_error_pipeline": "test",
        "_error_node": "operator",
        "_error_operator": "std.filter",
        "_error_plugin": f"arroyo-std {version('arroyo-std')}",
        "_error_incarnation": "00000000000000a1",
        "_error_epoch": 1,
        "_error_subtask": 0,
        "_error_time": datetime.fromtimestamp(harness.clock.now_us() / 1e6, UTC),
        "_error_udf": "reciprocal",
        "_error_udf_source": "distribution acme 1",
        "_error_position": None,
    }
    assert (by_sql["n"], by_sql["_error_udf"], by_sql["_error_udf_source"]) == (1, None, None)


def test_a_column_with_the_name_of_a_letters_own_is_refused(opened):
    stream = ArroyoSchema(pa.schema({"n": pa.int64(), "_error_node": pa.string()}))
    with pytest.raises(ConfigError, match="the input has a column '_error_node' already, which dead letters get"):
        opened("std.filter", stream, predicate="n > 1", onError="dead_letter")


def test_a_failing_predicate_drops_the_row_or_sends_it_away(opened):
    dropping = opened("std.filter", predicate="inverse(n) > 0.3", onError="null")
    dropping.process(batch(1, 0, 2, 9, None))
    assert dropping.output.column("n").to_pylist() == [1, 2]
    assert dropping.counters["failed_rows"] == 1
    sending = opened("std.filter", predicate="inverse(n) > 0.3", onError="dead_letter")
    sending.process(batch(1, 0, 2, 9, None))
    assert sending.output.column("n").to_pylist() == [1, 2]
    assert sending.side_output("errors").column("name").to_pylist() == ["row 1"]


def test_expressions_without_user_functions_fail_for_rows_too(opened):
    harness = opened("std.filter", predicate="10 / n > 3", onError="dead_letter")
    harness.process(batch(1, 0, 9))
    assert harness.output.column("n").to_pylist() == [1]
    (error,) = harness.side_output("errors").column("_error").to_pylist()
    assert error == "predicate: cannot compute '10 / n > 3': divide by zero"


def test_failing_rows_are_found_by_halving(opened):
    harness = opened("std.project", expressions=[{"name": "x", "sql": "whole_inverse(n)"}], onError="null")
    numbers = [1] * 4096
    numbers[1000] = 0
    CALLS.clear()
    harness.process(batch(*numbers))
    assert [place for place, x in enumerate(harness.output.column("x").to_pylist()) if x is None] == [1000]
    # Twice for each halving, once more for the row alone.
    assert len(CALLS) <= 2 * 12 + 2


@settings(deadline=None, max_examples=40)
@given(numbers=st.lists(st.none() | st.integers(-1, 3), min_size=1))
def test_rows_that_only_some_calls_see_are_found_too(registry, numbers):
    """Within a CASE a function sees a part of the rows: its errors do not tell which rows of the batch failed."""
    constructor = registry.constructors["std.project"]
    sql = "CASE WHEN name <> 'row 2' THEN inverse(n) ELSE -1.0 END"
    expressions = [{"name": "n", "sql": "n"}, {"name": "x", "sql": sql}, {"name": "y", "sql": "inverse(n + 1)"}]

    def inverse_of(number: int | None) -> float | None:
        return 1 / number if number else None

    def is_failing(place: int, number: int | None) -> bool:
        return number == -1 or (number == 0 and place != 2)

    for choice in ("null", "dead_letter"):
        config = {"expressions": expressions, "onError": choice}
        made = constructor.with_config(with_defaults(ParseDict(config, constructor.config_type())), registry)
        with OperatorHarness(made, inputs=[STREAM]) as harness:
            harness.process(batch(*numbers))
            assert harness.output.to_pylist() == [
                {
                    "n": number,
                    "x": -1.0 if place == 2 else inverse_of(number),
                    "y": None if number is None else inverse_of(number + 1),
                }
                for place, number in enumerate(numbers)
                if choice == "null" or not is_failing(place, number)
            ]
            failing = sum(is_failing(place, number) for place, number in enumerate(numbers))
            assert harness.counters.get("failed_rows", 0) == failing


def test_many_failing_rows_take_one_pass(opened):
    harness = opened("std.project", expressions=[{"name": "x", "sql": "counted(n)"}], onError="dead_letter")
    CALLS.clear()
    harness.process(batch(*([1, 0] * 500)))
    assert harness.output.column("x").to_pylist() == [1.0] * 500
    assert harness.side_output("errors").num_rows == 500
    assert len(CALLS) == 1000


def test_a_timeout_fails_the_job_whatever_is_done_about_rows(opened):
    harness = opened("std.filter", predicate="sleepy(n) > 0", onError="null")
    start = time.monotonic()
    with pytest.raises(OperatorError, match="UDF 'sleepy': it did not return within 500ms"):
        harness.process(batch(1, 0, 1, 1))
    assert time.monotonic() - start < 8


def test_the_column_of_the_error_must_be_free(opened):
    stream = ArroyoSchema(STREAM.schema.append(pa.field("_error", pa.string())))
    with pytest.raises(ConfigError, match="the input has a column '_error' already"):
        opened("std.filter", stream, predicate="n > 0", onError="dead_letter")


class Numbers(SourceOperator):
    """The numbers from 0 to 99, in one epoch."""

    def name(self) -> str:
        return "test.numbers"

    def output_schema(self, inputs):
        return STREAM

    def run(self, ctx, collector):
        collector.collect(batch(*(number % 10 for number in range(100))))
        return SourceFinishType.FINAL


class NumbersConstructor(OperatorConstructor[struct_pb2.Struct]):
    config_type = struct_pb2.Struct

    def with_config(self, config, registry):
        return ConstructedOperator.from_source(Numbers())


PIPELINE = """\
name: letters
nodes:
  - {id: numbers, operator: test.numbers}
  - id: inverses
    operator: std.project
    inputs: [numbers]
    config:
      expressions: {n: n, x: inverse(n)}
      on_error: CHOICE
  - {id: good, operator: std.blackhole, inputs: [inverses]}
LETTERS
"""
LETTERS = "  - {id: bad, operator: std.blackhole, inputs: [inverses.errors]}"


@pytest.mark.parametrize(
    ("choice", "letters", "message"),
    [
        ("null", "", None),
        ("fail", "", "UDF 'inverse': ZeroDivisionError"),
        ("dead_letter", LETTERS, None),
        ("nul", "", "9:17: 'on_error' must be one of fail, null, dead_letter"),
        ("~", "", "9:17: 'on_error' must be one of fail, null, dead_letter"),
        ("null", LETTERS, "errors"),
    ],
)
def test_the_choice_is_written_in_yaml(tmp_path, registry, choice, letters, message):
    both = registry.with_udfs([])
    both.add("test.numbers", NumbersConstructor())
    path = tmp_path / "letters.yaml"
    path.write_text(PIPELINE.replace("CHOICE", choice).replace("LETTERS", letters))
    if message is None:
        assert run_in_process(path, plugins=PluginSet(both, [])).is_finished
    else:
        with pytest.raises((InvalidPipelineError, OperatorError), match=message):
            run_in_process(path, plugins=PluginSet(both, []))
