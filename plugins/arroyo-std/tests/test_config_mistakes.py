"""Mistakes in configs, found in a pipeline file before anything runs."""

from __future__ import annotations

import pytest

from .support.mistakes import only_mistake

TWO = ("rows", "rows")
DIFFERENT = "keys must be of one type: 'k' on the left is string, 'v' on the right is int64"

WINDOWS = [
    ("tumbling_window", "{size: 0s}", 14, "more than zero"),
    ("tumbling_window", "{size: -5s}", 14, "-5s"),
    ("tumbling_window", "{size: 10}", 14, "no unit"),
    ("tumbling_window", "{keys: [k]}", 7, "needs the field 'size'"),
    ("tumbling_window", "{size: 1s, keys: [kk]}", 25, "no column 'kk'"),
    ("tumbling_window", "{size: 1s, keys: [tags]}", 25, "cannot be keyed"),
    ("tumbling_window", "{size: 1s, late: never}", 24, "must be one of drop, side_output"),
    ("tumbling_window", "{size: 1s, allowed_lateness: -1s}", 36, "-1s"),
    ("tumbling_window", "{size: 1s, aggregates: [{function: summ, column: v}]}", 42, "did you mean 'sum'"),
    ("tumbling_window", "{size: 1s, aggregates: [{function: sum, column: k}]}", 55, "sum takes a number"),
    ("tumbling_window", "{size: 1s, aggregates: [{function: sum, column: w}]}", 55, "no column 'w'"),
    ("tumbling_window", "{size: 1s, aggregates: [{function: count}, {column: v}]}", 50, "needs the field"),
    ("tumbling_window", "{size: 1s, aggregates: [{function: count, filter: v + 1}]}", 57, "not boolean"),
    ("sliding_window", "{size: 10s, slide: 3s}", 26, "3s does not divide 10s"),
    ("sliding_window", "{size: 10s, slide: -2s}", 26, "-2s"),
    ("sliding_window", "{size: 10s, slide: 2s, keys: [kk]}", 37, "no column 'kk'"),
    ("sliding_window", "{size: 2s, slide: 1s, aggregates: [{function: any, column: v}]}", 66, "any takes a boolean"),
    ("session_window", "{gap: 0s}", 13, "more than zero"),
    ("session_window", "{gap: -1s}", 13, "-1s"),
    ("session_window", "{gap: 1s, keys: [kk]}", 24, "no column 'kk'"),
    ("session_window", "{gap: 1s, aggregates: [{function: median, column: k}]}", 57, "median takes a number"),
    ("updating_aggregate", "{keys: [k]}", 7, "needs the field 'aggregates'"),
    ("updating_aggregate", "{keys: [kk], aggregates: [{function: count}]}", 15, "no column 'kk'"),
    ("updating_aggregate", "{aggregates: [{function: mean, column: k}]}", 46, "mean takes a number"),
    ("updating_aggregate", "{aggregates: [{function: count}], ttl: -1h}", 46, "-1h"),
]

ROWS = [
    ("watermark", "{expression: t, max_lateness: 5s}", 23, "'max_lateness' cannot be set together with 'expression'"),
    ("deduplicate", "{keys: [kk]}", 15, "no column 'kk'"),
    ("deduplicate", "{keys: [k], ttl: -1h}", 24, "-1h"),
    ("deduplicate", "{keys: [k], keep: best}", 25, "must be one of first, last"),
    ("top_n", "{n: 0, order_by: [{column: v}]}", 11, "'n' must be more than zero"),
    ("top_n", "{n: 1, order_by: [{column: w}]}", 34, "no column 'w'"),
    ("top_n", "{n: 1, partition_by: [kk], order_by: [{column: v}]}", 29, "no column 'kk'"),
    ("top_n", "{n: 1, order_by: [{column: tags}]}", 34, "lists and maps have no order"),
    ("upsert", "{keys: [kk]}", 15, "no column 'kk'"),
    ("process", "{function: 'no.such.module:Class'}", 18, "no module 'no'"),
    ("sql", "{query: SELECT w FROM input}", 15, "no column 'w'"),
    ("window_function", "{expressions: {n: sum(w) over (order by v)}}", 25, "no column 'w'"),
    ("neighbors", "{values: [{function: lag, column: w, as: b}]}", 41, "no column 'w'"),
    ("neighbors", "{values: [{function: last, column: v, as: b}]}", 28, "must be one of lag, lead"),
    ("neighbors", "{keys: [kk], values: [{function: lag, column: v, as: b}]}", 15, "no column 'kk'"),
    ("lookup_join", "{table: {path: /nowhere.csv}, on: [{left: k, right: k}]}", 22, "/nowhere.csv"),
]

JOINS = [
    ("window_join", "{size: -5s, on: [{left: k}]}", 14, "-5s"),
    ("window_join", "{size: 5s, on: [{left: kk}]}", 30, "no column 'kk'"),
    ("window_join", "{size: 5s, on: [{left: k, right: kk}]}", 40, "no column 'kk'"),
    ("window_join", "{size: 5s, on: [{left: k, right: v}]}", 40, DIFFERENT),
    ("window_join", "{size: 5s, condition: w > 1}", 29, "no column 'w'"),
    ("window_join", "{on: [{left: k}]}", 7, "size"),
    ("join", "{on: [{left: kk}]}", 20, "no column 'kk'"),
    ("join", "{on: [{left: v, right: k}]}", 30, "'v' on the left is int64, 'k' on the right is string"),
    ("join", "{on: [{left: k}], ttl: -1h}", 30, "-1h"),
    ("join", "{on: [{left: k}], type: outer}", 31, "must be one of inner, left, right, full, semi, anti"),
    ("interval_join", "{on: [{left: kk}], lower: 0s, upper: 1s}", 20, "no column 'kk'"),
    ("interval_join", "{on: [{left: k, right: v}], lower: 0s, upper: 1s}", 30, DIFFERENT),
    ("interval_join", "{on: [{left: k}], lower: 5s, upper: -5s}", 43, "before"),
    ("asof_join", "{on: [{left: kk}], tolerance: 1s}", 20, "no column 'kk'"),
    ("asof_join", "{on: [{left: k, right: v}], tolerance: 1s}", 30, DIFFERENT),
    ("asof_join", "{on: [{left: k}], tolerance: -1s}", 36, "-1s"),
]

#: Streams that an operator cannot take: no place in its config is wrong, so the node is told.
INPUTS = [
    ("tumbling_window", "{size: 1s}", ["plain"], "event time"),
    ("session_window", "{gap: 1s}", ["plain"], "event time"),
    ("window_join", "{size: 1s, on: [{left: k}]}", ["rows", "plain"], "event time"),
    ("interval_join", "{on: [{left: k}], lower: 0s, upper: 1s}", ["plain", "rows"], "event time"),
    ("asof_join", "{on: [{left: k}], tolerance: 1s}", ["rows", "plain"], "event time"),
    ("sliding_window", "{size: 2s, slide: 1s}", ["changes"], "updating"),
    ("deduplicate", "{keys: [k], ttl: 0s}", ["changes"], "updating"),
    ("neighbors", "{values: [{function: lag, column: v, as: b}]}", ["changes"], "updating"),
    ("neighbors", "{values: [{function: lag, column: v, as: b}]}", ["plain"], "event time"),
]


@pytest.mark.parametrize(("operator", "config", "column", "message"), [*WINDOWS, *ROWS])
def test_a_mistake_is_told_with_its_line_and_column(tmp_path, operator, config, column, message):
    error = only_mistake(tmp_path, f"std.{operator}", config)
    assert message in str(error)
    assert (error.at.line, error.at.column) == (10, column)


@pytest.mark.parametrize(("operator", "config", "column", "message"), JOINS)
def test_a_mistake_in_a_join_is_told_with_its_line_and_column(tmp_path, operator, config, column, message):
    error = only_mistake(tmp_path, f"std.{operator}", config, TWO)
    assert message in str(error)
    assert (error.at.line, error.at.column) == (10, column)


@pytest.mark.parametrize(("operator", "config", "inputs", "message"), INPUTS)
def test_a_stream_that_cannot_be_taken_is_told_at_the_node(tmp_path, operator, config, inputs, message):
    error = only_mistake(tmp_path, f"std.{operator}", config, inputs)
    assert message in str(error)
    assert 6 <= error.at.line <= 10
