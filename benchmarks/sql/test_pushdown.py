"""Both sides of the benchmark give the same rows, and only one is told what is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from .pushdown import WITH, WITHOUT, measure, pipelines


def test_both_sides_count_the_same_rows(tmp_path: Path):
    seconds = measure(tmp_path, rows=8_000, runs=1)
    assert {side: len(found) for side, found in seconds.items()} == {WITH: 1, WITHOUT: 1}


def test_one_side_reads_everything(tmp_path: Path):
    with pytest.raises(ValueError, match="does not compile"):
        pipelines(tmp_path, 8_000)
    (tmp_path / "orders" / "day=2026-01-01").mkdir(parents=True)
    (tmp_path / "orders" / "day=2026-01-01" / "orders.parquet").write_bytes(b"")
    sides = pipelines(tmp_path, 8_000)
    assert "predicate" in sides[WITH]["nodes"][0]["config"]
    assert "predicate" not in sides[WITHOUT]["nodes"][0]["config"]
