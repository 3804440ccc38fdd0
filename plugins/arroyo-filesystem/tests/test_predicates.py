"""The `predicate` of a source: files, folders and row groups that it leaves out."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from arroyo_core.errors import ConfigError

SKIPPED = ("skipped_files", "skipped_row_groups")


def read(files: Any, path: Path, predicate: str, **config: Any) -> tuple[pa.Table, dict[str, int]]:
    """The rows, and how much was left out."""
    harness = files.source(path, predicate=predicate, **config)
    try:
        run = harness.run()
        return run.table, {name: run.counters.get(name, 0) for name in SKIPPED}
    finally:
        harness.close()


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    """The numbers 0..99 in ten row groups, in order, in all types that are compared."""
    start = dt.datetime(2026, 1, 1)
    table = pa.table(
        {
            "n": pa.array(range(100), pa.int64()),
            "u": pa.array([n * 2**57 for n in range(100)], pa.uint64()),
            "small": pa.array([n - 50 for n in range(100)], pa.int8()),
            "f": pa.array([n / 4 for n in range(100)], pa.float64()),
            "f32": pa.array([n / 10 for n in range(100)], pa.float32()),
            "dec": pa.array([Decimal(n) / 100 for n in range(100)], pa.decimal128(30, 2)),
            "text": [f"row {n:03}" for n in range(100)],
            "at": pa.array([start + dt.timedelta(hours=n) for n in range(100)], pa.timestamp("us", "UTC")),
            "ns": pa.array([start + dt.timedelta(hours=n) for n in range(100)], pa.timestamp("ns")),
            "day": pa.array([dt.date(2026, 1, 1) + dt.timedelta(days=n) for n in range(100)], pa.date32()),
            "ok": [n >= 50 for n in range(100)],
            "gap": pa.array([None if 20 <= n < 30 else n for n in range(100)], pa.int64()),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=10)
    return tmp_path


@pytest.mark.parametrize(
    ("predicate", "read_groups"),
    [
        ("n >= 90", [9]),
        ("90 <= n", [9]),
        ("n > 89 AND n < 95", [9]),
        ("n < 10 OR n >= 90", [0, 9]),
        ("NOT (n >= 10)", [0]),
        ("n = 55", [5]),
        ("n = 1000", []),
        ("n = -5", []),
        ("n <> 5", list(range(10))),
        ("n IN (5, 15, 1000)", [0, 1]),
        ("n BETWEEN 15 AND 25", [1, 2]),
        ("n NOT BETWEEN 10 AND 1000", [0]),
        ("n > 89.5", [9]),
        ("n > 99.000001", []),
        ("u = 14267403619509731328", [9]),
        ("u < 1441151880758558720", [0]),
        ("small < CAST(-45 AS TINYINT)", [0]),
        ("f BETWEEN 20 AND 22", [8]),
        ("f = 24.75", [9]),
        ("f32 = CAST(0.1 AS REAL)", [0]),
        ("f32 = 0.1", [0]),
        ("dec = CAST('0.55' AS DECIMAL(10, 2))", [5]),
        ("dec > CAST(0.895 AS DECIMAL(10, 3))", [9]),
        ("dec > 0.895", list(range(10))),
        ("text = 'row 042'", [4]),
        ("text >= 'row 09'", [9]),
        ("text LIKE 'row 04%'", [4]),
        ("text LIKE 'row 04_x%'", [4]),
        ("text LIKE '%9'", list(range(10))),
        ("text IN ('row 000', 'none')", [0]),
        ("at < TIMESTAMP '2026-01-01 10:00:00'", [0]),
        ("at < '2026-01-01T10:00:00Z'", [0]),
        ("""at >= arrow_cast('2026-01-04T18:00:00Z', 'Timestamp(Microsecond, Some("UTC"))')""", [9]),
        ("ns >= '2026-01-04 18:00:00.000000001'", [9]),
        ("at < DATE '2026-01-01'", []),
        ("day = DATE '2026-01-15'", [1]),
        ("day = '2026-01-15'", [1]),
        ("ok", [5, 6, 7, 8, 9]),
        ("NOT ok", [0, 1, 2, 3, 4]),
        ("ok = FALSE AND n > 40", [4]),
        ("gap IS NULL", [2]),
        ("gap IS NOT NULL AND n < 30", [0, 1]),
        ("gap = 25", []),
        ("NOT (gap = 25)", [0, 1, 3, 4, 5, 6, 7, 8, 9]),
    ],
)
def test_row_groups_that_cannot_have_such_rows_are_not_read(
    files: Any, groups: Path, predicate: str, read_groups: list[int]
) -> None:
    table, skipped = read(files, groups, predicate)
    assert sorted({n // 10 for n in table["n"].to_pylist()}) == read_groups
    assert table.num_rows == 10 * len(read_groups)
    assert skipped == {"skipped_files": 0, "skipped_row_groups": 10 - len(read_groups)}


def test_a_column_that_the_file_lacks_is_null(files: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "old.parquet")
    pq.write_table(pa.table({"n": [3, 4], "x": [3, 4]}), tmp_path / "young.parquet")
    schema = {"n": "int64", "x": "int64"}
    assert read(files, tmp_path, "x > 0", schema=schema)[0]["n"].to_pylist() == [3, 4]
    assert read(files, tmp_path, "x IS NULL", schema=schema)[0]["n"].to_pylist() == [1, 2]
    assert read(files, tmp_path, "x IS NULL OR x > 0", schema=schema)[0].num_rows == 4


@pytest.mark.parametrize("number", [float("nan"), -float("nan")])
def test_nan_which_no_statistics_have_is_not_left_out(files: Any, tmp_path: Path, number: float) -> None:
    pq.write_table(pa.table({"f": [1.0, number]}), tmp_path / "t.parquet")
    for predicate in ("f > 5", "f < 0", "f <> 1", "NOT (f <= 5)"):
        assert read(files, tmp_path, predicate)[0].num_rows == 2, predicate
    for predicate in ("f > 5 AND f < 10", "f = 7", "f BETWEEN 2 AND 3"):
        assert read(files, tmp_path, predicate)[0].num_rows == 0, predicate


def test_files_without_statistics_are_read(files: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1, 2], "s": ["a", "b"]}), tmp_path / "t.parquet", write_statistics=False)
    table, skipped = read(files, tmp_path, "n > 5 AND s = 'z' AND n IS NULL")
    assert table.num_rows == 2
    assert skipped == {"skipped_files": 0, "skipped_row_groups": 0}


def test_values_of_another_type_in_the_file_are_compared_where_their_order_is_the_same(
    files: Any, tmp_path: Path
) -> None:
    kinds = {"n": pa.int16(), "s": pa.string(), "at": pa.timestamp("ms")}
    values = {"n": [1, 2], "s": ["10", "9"], "at": [dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 2)]}
    pq.write_table(pa.table({k: pa.array(values[k], kinds[k]) for k in kinds}), tmp_path / "t.parquet")
    schema = {"n": "int64", "s": "int64", "at": "timestamp"}
    assert read(files, tmp_path, "n > 2", schema=schema)[0].num_rows == 0
    assert read(files, tmp_path, "at >= '2026-01-03'", schema=schema)[0].num_rows == 0
    # As texts "10" is less than "9".
    assert read(files, tmp_path, "s = 10", schema=schema)[0].num_rows == 2


def test_a_nested_column_of_the_same_path_is_not_taken_for_the_column(files: Any, tmp_path: Path) -> None:
    table = pa.table({"a.b": [1, 2], "a": [{"b": 10}, {"b": 20}]})
    pq.write_table(table, tmp_path / "t.parquet")
    assert read(files, tmp_path, '"a.b" = 15')[0].num_rows == 2


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """One row in each of some folders, in files that nobody can read."""
    for folder, n in (("day=2026-01-01/c=NL", 1), ("day=2026-01-02/c=a%2Fb%20%27", 2), ("day=2026-01-02/c=BE", 3)):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "t.json").write_text(json.dumps({"n": n}))
    null = tmp_path / "day=2026-01-03" / "c=__HIVE_DEFAULT_PARTITION__"
    null.mkdir(parents=True)
    (null / "t.json").write_text(json.dumps({"n": 4}))
    return tmp_path


SCHEMA = {"n": "int64", "day": "date", "c": "string"}


@pytest.mark.parametrize(
    ("predicate", "numbers"),
    [
        ("day = '2026-01-02'", [2, 3]),
        ("day > DATE '2026-01-01' AND n > 100", [2, 3, 4]),
        ("c = 'a/b '''", [2]),
        ("c = 'NL' OR n = 3", [1, 2, 3, 4]),
        ("c IS NULL", [4]),
        ("c <> 'NL'", [2, 3]),
        ("c IS NULL AND day < '2026-01-03'", []),
    ],
)
@pytest.mark.parametrize("has_types", [True, False])
def test_folders_are_never_opened_for_no_row(
    files: Any, folders: Path, predicate: str, numbers: list[int], has_types: bool
) -> None:
    schema = SCHEMA if has_types else {**SCHEMA, "day": "string"}
    if not has_types and "DATE" in predicate:
        predicate = predicate.replace("DATE ", "")
    for path in folders.rglob("*.json"):
        if json.loads(path.read_text())["n"] not in numbers:
            path.write_text("{")
    table, skipped = read(files, folders, predicate, schema=schema)
    assert sorted(table["n"].to_pylist()) == numbers
    assert skipped == {"skipped_files": 4 - len(numbers), "skipped_row_groups": 0}


def test_a_folder_whose_value_does_not_fit_fails_as_ever(files: Any, folders: Path) -> None:
    with pytest.raises(Exception, match="the folder of column 'c' does not fit"):
        read(files, folders, "c = 5", schema={"n": "int64", "c": "int64"})


def test_large_files_of_folders_that_are_not_wanted_are_not_cut(files: Any, tmp_path: Path) -> None:
    for day in (1, 2):
        (tmp_path / f"day={day}").mkdir()
        pq.write_table(pa.table({"n": range(100)}), tmp_path / f"day={day}" / "t.parquet", row_group_size=10)
    (tmp_path / "day=2" / "t.parquet").write_bytes(b"x" * 5000)
    schema = {"n": "int64", "day": "int64"}
    table, skipped = read(files, tmp_path, "day = 1 AND n >= 90", schema=schema, split_size=1)
    assert sorted(table["n"].to_pylist()) == list(range(90, 100))
    assert skipped == {"skipped_files": 1, "skipped_row_groups": 9}


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        ("nn > 5", "no column 'nn'"),
        ("n > 'x'", "column 'n' is int64, which is not compared with 'x' here"),
        ("text > 5", "column 'text' is string"),
        ("n + 1 > 5", r"did not expect '\+' at character 3"),
        ("upper(text) = 'X'", "expected a constant, not 'upper', at character 1"),
        ("n >", "expected a constant, not 'the end', at character 4"),
        ("n > 5 AND", "expected a constant, not 'the end', at character 10"),
        ("(n > 5", r"expected \), not 'the end', at character 7"),
        ("n > 5 n", "did not expect 'n' at character 7"),
        ("n > 5; DROP", "cannot read '; DROP' at character 6"),
        ("n", "column 'n' is int64, which is not compared with TRUE here"),
        ("TRUE", "expected a comparison"),
        ("n = NULL", "expected a constant, not 'NULL'"),
        ("n > n", "expected a constant, not 'n'"),
        ("n > CAST(1.5 AS BIGINT)", "a constant of type BIGINT is not understood"),
        ("dec = CAST('1.555' AS DECIMAL(4, 2))", "is not understood"),
        ("at > '2026-01-99'", "not compared with '2026-01-99'"),
        ("n > 1e999", "out of range"),
        ("(" * 60 + "n > 5" + ")" * 60, "nested deeper than 50"),
        ("text LIKE 'a' ESCAPE 'x'", "ESCAPE"),
        (f"n IN ({'1, ' * 1000} 1)", "at most 1000 constants"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_place(
    files: Any, groups: Path, predicate: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        files.make_source(groups, predicate=predicate).inner.output_schema([])
    assert caught.value.field == "predicate"


def test_files_that_nobody_reads_are_not_deleted(files: Any, groups: Path) -> None:
    with pytest.raises(ConfigError, match="moved or deleted: leave out after_commit"):
        files.make_source(groups, predicate="n > 5", watch=10**7, after_commit="delete")


def test_positions_do_not_depend_on_it(files: Any, groups: Path) -> None:
    told, untold = files.make_source(groups, predicate="n > 5").inner, files.make_source(groups).inner
    assert told.state_settings([]) == untold.state_settings([])


def test_the_plan_shows_it(files: Any, groups: Path) -> None:
    source = files.make_source(groups, predicate="n > 5").inner
    assert ("predicate", "n > 5") in source.display().fields
    assert "predicate" not in dict(files.make_source(groups).inner.display().fields)
