"""Constants of another type than their column: whatever a filter rounds, no row is left out that it keeps."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from .support.filters import kept

#: The first two numbers that are rounded to another one as float32, and as float64.
F32, F64 = 2**24 + 1, 2**53 + 1
TIE = 2**54 + 2**30 + 1
TENTH = pa.decimal128(10, 1)


def skipped(files: Any, path: Path, predicate: str) -> int:
    """How many row groups are left out."""
    harness = files.source(path, predicate=predicate)
    try:
        return int(harness.run().counters.get("skipped_row_groups", 0))
    finally:
        harness.close()


@pytest.mark.parametrize(
    ("value", "kind", "predicate"),
    [
        # The column is rounded to float32.
        (F32, pa.int32(), "x = CAST(16777216 AS REAL)"),
        (F32, pa.int64(), "x <= CAST(16777216.0 AS FLOAT)"),
        (F32, pa.int64(), "CAST(16777216 AS REAL) >= x"),
        (F32, pa.int64(), "x IN (CAST(5 AS REAL), CAST(16777216 AS REAL))"),
        (F32, pa.int64(), "NOT (x <> CAST(16777216 AS REAL))"),
        # One constant of a list decides what all are compared as.
        (F32, pa.int64(), "x IN (16777216, CAST(5 AS REAL))"),
        (F32, pa.int64(), "x BETWEEN CAST(1 AS REAL) AND 16777216"),
        (F64, pa.int64(), "x IN (9007199254740992, 5.5)"),
        (F64, pa.int64(), "x BETWEEN 5.5 AND 9007199254740992"),
        (F64, pa.uint64(), "NOT (x IN (7, 9007199254740993.0) OR x < 9)"),
        (0, pa.int32(), "x BETWEEN 5.55e-17 AND CAST(100 AS BIGINT UNSIGNED)"),
        (1.1000000000000003, pa.float64(), "x IN (1.1, CAST('5' AS DECIMAL(10, 2)))"),
        # The column, or the constant, is rounded to float64.
        (F64, pa.int64(), "x = CAST(9007199254740992 AS DOUBLE)"),
        (F64, pa.int64(), "x <= CAST(9007199254740992 AS DOUBLE)"),
        (F64 - 1, pa.int64(), "x = CAST(9007199254740993 AS DOUBLE)"),
        (F64 - 1, pa.int64(), "x = 9007199254740993.0"),
        (-(2**63), pa.int64(), "x = -9223372036854775809"),
        (0, pa.int64(), "x NOT IN (0.5, 1.5, -0.0, 2.5)"),
        # To a decimal of 15 digits after the point.
        (1.1000000000000003, pa.float64(), "x = CAST(1.1 AS DECIMAL(10, 2))"),
        (5.55e-17, pa.float64(), "x = CAST(0 AS DECIMAL(10, 2))"),
        (5.55e-17, pa.float64(), "x BETWEEN CAST('0' AS DECIMAL(10, 2)) AND CAST('0' AS DECIMAL(10, 2))"),
        (0.1, pa.float32(), "x = CAST('0.1' AS DECIMAL(10, 2))"),
        (Decimal("0.1"), TENTH, "x >= 0.10000000000000002"),
        (Decimal("0.1"), TENTH, "x <= 0.09999999999999999"),
        (Decimal("0.00"), pa.decimal128(10, 2), "x >= 1e-16"),
        (Decimal("0.10"), pa.decimal128(10, 2), "x IN (5, 0.10000000000000002)"),
        # The constant is rounded, more than once.
        (F32 - 1, pa.int64(), "x = CAST(CAST(16777217 AS REAL) AS BIGINT)"),
        (float(2**54 + 2**31), pa.float32(), f"x = {TIE}"),
        (float(2**54 + 2**31), pa.float64(), f"x = CAST({TIE} AS REAL)"),
        (
            Decimal("0.12345678901234567168"),
            pa.decimal128(38, 20),
            "x = CAST(0.12345678901234567890 AS DECIMAL(38, 20))",
        ),
    ],
)
def test_a_row_that_a_filter_keeps_is_not_left_out(
    files: Any, tmp_path: Path, value: Any, kind: pa.DataType, predicate: str
) -> None:
    rows = pa.table({"x": pa.array([value], kind)})
    pq.write_table(rows, tmp_path / "t.parquet")
    assert kept(rows, predicate).num_rows == 1
    assert skipped(files, tmp_path, predicate) == 0


@pytest.mark.parametrize(
    ("value", "kind", "predicate"),
    [
        (7, pa.int64(), "x < CAST(6 AS DOUBLE)"),
        (7, pa.int64(), "x BETWEEN 1.5 AND 6.0"),
        (7, pa.uint64(), "x > 18446744073709551614"),
        (7, pa.int8(), "x IN (CAST(6 AS TINYINT), CAST(8 AS BIGINT))"),
        (7.5, pa.float64(), "x BETWEEN CAST(7 AS REAL) AND CAST(7.25 AS REAL)"),
        (7.5, pa.float64(), "x BETWEEN 8 AND 1e9"),
        (7.5, pa.float32(), "x = CAST(7 AS DOUBLE)"),
        (Decimal("0.7"), TENTH, "x < CAST(0.65 AS DECIMAL(10, 2))"),
        (Decimal("0.7"), TENTH, "x IN (CAST('0.65' AS DECIMAL(10, 2)), CAST('0.8' AS DECIMAL(3, 1)))"),
        (Decimal("0.7"), TENTH, "x >= 1"),
    ],
)
def test_types_that_round_nothing_still_leave_out_row_groups(
    files: Any, tmp_path: Path, value: Any, kind: pa.DataType, predicate: str
) -> None:
    rows = pa.table({"x": pa.array([value], kind)})
    pq.write_table(rows, tmp_path / "t.parquet")
    assert kept(rows, predicate).num_rows == 0
    assert skipped(files, tmp_path, predicate) == 1


def test_folders_are_held_against_the_same_constants(files: Any, tmp_path: Path) -> None:
    for number in (F32, 5):
        (tmp_path / f"x={number}").mkdir()
        pq.write_table(pa.table({"n": [1]}), tmp_path / f"x={number}" / "t.parquet")
    schema = {"n": "int64", "x": "int64"}
    for predicate, found in (("x = CAST(16777216 AS REAL)", {F32, 5}), ("x = 16777217", {F32})):
        harness = files.source(tmp_path, predicate=predicate, schema=schema)
        assert set(harness.run().table["x"].to_pylist()) == found
        harness.close()


def test_a_column_without_values_is_left_out_whatever_the_constant_is(files: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": pa.array([None], pa.int64())}), tmp_path / "t.parquet")
    assert skipped(files, tmp_path, "x = CAST(16777216 AS REAL)") == 1


@pytest.mark.parametrize("constant", ["CAST(CAST(5 AS REAL) AS DOUBLE)", "CAST(CAST(5.5 AS REAL) AS DECIMAL(5, 2))"])
def test_casts_of_casts_that_are_not_followed_leave_out_nothing(files: Any, tmp_path: Path, constant: str) -> None:
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "t.parquet")
    assert skipped(files, tmp_path, f"x > {constant}") == 0
