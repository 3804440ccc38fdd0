from __future__ import annotations

import json
from decimal import Decimal

import pyarrow as pa
import pytest
from arroyo_std.rendering import render_csv, render_json, render_table


def column(values, data_type=None):
    return pa.table({"v": pa.array(values, data_type)})


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (column([1, None]), [1, None]),
        (column([1.5, float("nan"), float("inf"), float("-inf")]), [1.5, "NaN", "Infinity", "-Infinity"]),
        (column([True, False]), [True, False]),
        (column(["é", 'q"']), ["é", 'q"']),
        (column([b"\x00\xff"]), ["00ff"]),
        (column([0], pa.timestamp("us", tz="UTC")), ["1970-01-01T00:00:00Z"]),
        (column([1], pa.timestamp("ns", tz="UTC")), ["1970-01-01T00:00:00.000000001Z"]),
        (column([0], pa.timestamp("s")), ["1970-01-01T00:00:00"]),
        (column([1], pa.date32()), ["1970-01-02"]),
        (column([61], pa.time32("s")), ["00:01:01"]),
        (column([90], pa.duration("s")), ["0:01:30"]),
        (column([Decimal("1.20")]), ["1.20"]),
        (column([[1, None]]), [[1, None]]),
        (column([{"a": b"\x01"}]), [{"a": "01"}]),
        (column([[("k", 1)]], pa.map_(pa.string(), pa.int64())), [[["k", 1]]]),
        (column(["x"]).cast(pa.schema({"v": pa.dictionary(pa.int32(), pa.string())})), ["x"]),
    ],
)
def test_every_kind_of_value_is_valid_json(table, expected):
    def refuse(constant):
        raise AssertionError(constant)

    lines = render_json(table).splitlines()
    assert [json.loads(line, parse_constant=refuse)["v"] for line in lines] == expected


def test_csv_quotes_what_needs_it_and_leaves_null_empty():
    table = pa.table({"a, b": [1, None], "t": ['x "y"', "two\nlines"], "l": [[1], None]})
    assert render_csv(table, has_header=True) == '"a, b",t,l\n1,"x ""y""",[1]\n,"two\nlines",\n'
    assert render_csv(table.slice(0, 1), has_header=False) == '1,"x ""y""",[1]\n'


def test_a_table_aligns_numbers_right_and_cuts_long_cells():
    table = pa.table({"n": [5, None], "text": ["a rather long text", "two\nlines"]})
    assert render_table(table, max_cell_width=9).splitlines() == [
        "n    | text",
        "-----+----------",
        "   5 | a rather…",
        "NULL | two lines",
    ]


def test_a_width_of_zero_cuts_nothing():
    assert "x" * 500 in render_table(column(["x" * 500]), max_cell_width=0)


HOSTILE = "\x1b[2J\x9b\u202e\r"


def test_tables_and_json_do_not_command_a_terminal() -> None:
    rows = pa.table({f"name{HOSTILE}": [HOSTILE]})
    for text in (render_table(rows, max_cell_width=0), render_json(rows)):
        assert not set(HOSTILE) & set(text) - set("[2J")
    assert json.loads(render_json(rows)) == {f"name{HOSTILE}": HOSTILE}


def test_csv_has_values_as_they_are() -> None:
    assert HOSTILE in render_csv(pa.table({"name": [HOSTILE]}), has_header=False)
