"""Conditions that the planner tells a source of files, and those that it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arroyo_testing import run_in_process

from arroyo_core.udf import udf

from .support.scripts import Planned, plan


@udf
def twice(number: int) -> int:
    return 2 * number


def told(planned: Planned, id: str = "orders") -> Any:
    assert not planned.mistakes
    return planned.node(id).config.get("predicate")


@pytest.mark.parametrize(
    ("where", "predicate"),
    [
        ("id > 5", "id > 5"),
        ("5 < ID AND item = 'a''b'", "(id > 5) AND (item = 'a''b')"),
        ("item LIKE 'a%' OR price IS NULL", "(item LIKE 'a%') OR (price IS NULL)"),
        ("id IN (1, 2, 3, 4, 5)", "id IN (1, 2, 3, 4, 5)"),
        ("id > 5 AND twice(id) > 5", "(id > 5)"),
        ("id > 5 AND upper(item) = 'A' AND price < 2", "(id > 5) AND (price < 2.0)"),
        ("id > 5 AND id % 2 = 0", "(id > 5)"),
        ("id > 5 AND id < count", "(id > 5)"),
        ("id > 5 OR twice(id) > 5", None),
        ("id > random()", None),
        ("CAST(item AS BIGINT) > 5", None),
    ],
)
def test_conditions_on_columns_and_constants_are_told(where: str, predicate: str | None) -> None:
    planned = plan(f"SELECT id, item FROM orders WHERE {where}", functions=[twice])
    assert told(planned) == predicate
    assert len([node for node in planned.nodes if node.operator in ("std.filter", "std.sql")]) == 1


def test_the_filter_stays_as_it_was() -> None:
    planned = plan("SELECT id FROM orders WHERE id > 5 AND upper(item) = 'A'")
    assert planned.only("std.filter").config == {"predicate": "(id > 5) AND (upper(item) = 'A')"}


def test_conditions_go_through_watermarks_of_sources_that_end() -> None:
    planned = plan("SELECT item, count(*) FROM orders WHERE id > 5 GROUP BY item, tumble(INTERVAL '1 second')")
    assert any(node.operator == "std.watermark" for node in planned.nodes)
    assert told(planned) == "id > 5"


def test_a_generated_column_is_none_of_the_source() -> None:
    script = (
        "CREATE TABLE numbers (id BIGINT, next BIGINT GENERATED ALWAYS AS (id + 1)) WITH (connector = 'filesystem', "
        "type = 'source', path = '{0}', format = 'parquet');\nSELECT id FROM numbers WHERE next > 5 AND id < 9"
    )
    folder = Path(plan("SELECT id FROM orders").node("orders").config["path"])
    assert told(plan(script.format(folder)), "numbers") == "(id < 9)"


def test_a_table_with_two_readers_is_read_whole() -> None:
    planned = plan(
        "CREATE TABLE a WITH (connector = 'blackhole', type = 'sink');\n"
        "CREATE TABLE b WITH (connector = 'blackhole', type = 'sink');\n"
        "INSERT INTO a SELECT id FROM orders WHERE id > 5;\nINSERT INTO b SELECT id FROM orders WHERE id < 5;"
    )
    assert told(planned) is None


def test_a_table_that_has_a_predicate_keeps_it() -> None:
    folder = Path(plan("SELECT id FROM orders").node("orders").config["path"])
    planned = plan(
        "CREATE TABLE numbers (id BIGINT) WITH (connector = 'filesystem', type = 'source', "
        f"path = '{folder}', format = 'parquet', predicate = 'id < 100');\nSELECT id FROM numbers WHERE id > 5"
    )
    assert told(planned, "numbers") == "id < 100"


@pytest.mark.parametrize(
    ("query", "predicate"),
    [
        ("SELECT id FROM live WHERE id > 5", "id > 5"),
        ("SELECT id, count(*) FROM live WHERE id > 5 GROUP BY id, tumble(INTERVAL '1 second')", None),
    ],
)
def test_the_time_of_a_source_without_end_goes_on_with_rows_that_a_filter_throws_away(
    query: str, predicate: str | None
) -> None:
    folder = Path(plan("SELECT id FROM orders").node("orders").config["path"])
    planned = plan(
        "CREATE TABLE live (id BIGINT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '1 second') WITH (connector = "
        f"'filesystem', type = 'source', path = '{folder}', format = 'parquet', watch = INTERVAL '10 seconds');\n"
        f"{query}"
    )
    assert told(planned, "live") == predicate


def test_folders_that_no_row_is_asked_of_are_not_opened(tmp_path: Path) -> None:
    for day in (1, 2, 3):
        folder = tmp_path / "in" / f"day=2026-01-0{day}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": range(100 * day, 100 * day + 100)}), folder / "t.parquet", row_group_size=10)
        if day != 2:
            (folder / "t.parquet").write_bytes(b"not a file of Parquet")
    out = tmp_path / "out"
    script = tmp_path / "q.sql"
    script.write_text(
        f"""
        SET name = 'days';
        SET checkpoint.url = '{tmp_path / "state"}';
        CREATE TABLE days (id BIGINT, day DATE)
        WITH (connector = 'filesystem', type = 'source', path = '{tmp_path / "in"}', format = 'parquet');
        CREATE TABLE out WITH (connector = 'filesystem', type = 'sink', path = '{out}', format = 'parquet');
        INSERT INTO out SELECT id FROM days WHERE day = '2026-01-02' AND id >= 285;
        """
    )
    result = run_in_process(script)
    found = sorted(n for path in out.glob("part-*") for n in pq.read_table(path)["id"].to_pylist())
    assert found == list(range(285, 300))
    counters = {name: amount for each in result.operators.values() for name, amount in each.counters.items()}
    assert counters == {"skipped_files": 2, "skipped_row_groups": 8}
