"""How the rows of two runs of an example are compared; without Spark."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq

from .example_runs import difference, printed_rows, written_rows


def update(row, *, is_retract):
    return row | {"_updating_meta": {"is_retract": is_retract, "id": "0a"}}


def test_rows_of_committed_files_count_by_folder_and_staged_ones_do_not(tmp_path):
    rows = pa.table({"n": [1, 1, 2]})
    for name in ("out/day=1/part-1.parquet", "out/day=2/part-1.parquet", "out/_arroyo_staging/part-2.parquet"):
        (tmp_path / name).parent.mkdir(parents=True)
        pq.write_table(rows, tmp_path / name)
    found = written_rows(tmp_path / "out")
    assert sorted(found.values()) == [1, 1, 2, 2]
    assert {folder for folder, _ in found} == {"day=1", "day=2"}


def test_a_result_that_changed_in_between_is_the_same_as_one_that_did_not(tmp_path):
    changing = [
        update({"n": 1}, is_retract=False),
        update({"n": 1}, is_retract=True),
        update({"n": 2}, is_retract=False),
    ]
    for name, rows in (("changing", changing), ("whole", [update({"n": 2}, is_retract=False)])):
        (tmp_path / name).mkdir()
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / name / "part-1.parquet")
    whole, found = written_rows(tmp_path / "whole"), written_rows(tmp_path / "changing")
    assert difference(whole, found) == {}
    assert difference(found, whole) == {}


def test_a_row_that_was_taken_back_too_often_is_a_difference():
    expected, found = Counter({("stdout", "a"): 0}), Counter({("stdout", "a"): -1})
    assert difference(expected, found) == {("stdout", "a"): -1}
    assert difference(found, expected) == {("stdout", "a"): 1}


def test_a_printed_table_is_the_same_in_one_piece_and_in_two():
    whole = "n  | name\n---+-----\n 1 | one\n10 | ten\n"
    pieces = "n | name\n--+-----\n1 | one\nn  | name\n---+-----\n10 | ten\n"
    assert printed_rows(whole) == printed_rows(pieces)
    assert printed_rows(whole) != printed_rows(pieces + "10 | ten\n")


def test_printed_changes_count_against_what_they_take_back():
    table = 'n | _updating_meta\n--+---\n1 | {"is_retract": false, "id": "0a"}\n1 | {"is_retract": true, "id": "0a"}\n'
    assert difference(printed_rows(table), Counter()) == {}
    flags = ("false", "true")
    lines = "".join(f'{{"n":1,"_updating_meta":{{"is_retract":{flag},"id":"0a"}}}}\n' for flag in flags)
    assert difference(printed_rows(lines), Counter()) == {}
