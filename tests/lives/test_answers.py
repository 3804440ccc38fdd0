"""How rows are compared with an answer."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq

from .answers import differences, read_written

EXPECTED = pa.table({"n": [1, 1, 2], "x": [0.5, 0.5, None]})


def test_rows_in_another_order_are_no_difference():
    found = pa.table({"x": [None, 0.5, 0.500000001], "n": [2, 1, 1]})
    assert differences(EXPECTED, [(found, 1)]) == []


def test_missing_and_surplus_rows_are_told_with_their_number():
    found = pa.table({"n": [1, 2, 2, 3], "x": [0.5, None, None, None]})
    assert sorted(differences(EXPECTED, [(found, 1)]), key=str) == [(1, 0.5, -1), (2, None, 1), (3, None, 1)]


def test_what_was_taken_back_counts_against_what_was_added():
    added = pa.table({"n": [1, 1, 2, 7], "x": [0.5, 0.5, None, 1.0]})
    taken_back = pa.table({"n": [7], "x": [1.0]})
    assert differences(EXPECTED, [(added, 1), (taken_back, -1)]) == []
    assert differences(EXPECTED, [(added, 1)]) == [(7, 1.0, 1)]


def test_changes_are_read_with_their_types(tmp_path):
    at = ["2015-07-14T23:59:00.000001Z", "2015-07-15T00:00:00.000000Z"]
    lines = [
        {"before": None, "after": {"n": 1, "at": at[0]}, "op": "c"},
        {"before": {"n": 1, "at": at[0]}, "after": {"n": 2, "at": at[1]}, "op": "u"},
        {"before": {"n": 2, "at": at[1]}, "after": None, "op": "d"},
    ]
    (tmp_path / "part-1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    expected = pa.schema({"n": pa.int64(), "at": pa.timestamp("us")})
    (added, plus), (taken_back, minus) = read_written(tmp_path, expected)
    assert (plus, minus) == (1, -1)
    assert added.schema == taken_back.schema == expected
    assert added.equals(taken_back)
    assert added.column("n").to_pylist() == [1, 2]


def test_staged_files_are_not_read(tmp_path):
    (tmp_path / "_arroyo_staging").mkdir()
    pq.write_table(EXPECTED, tmp_path / "part-1.parquet")
    pq.write_table(EXPECTED, tmp_path / "_arroyo_staging" / "part-2.parquet")
    ((rows, sign),) = read_written(tmp_path, EXPECTED.schema)
    assert (rows.num_rows, sign) == (EXPECTED.num_rows, 1)
