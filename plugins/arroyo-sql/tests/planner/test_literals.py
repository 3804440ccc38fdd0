"""Constants keep their value and their type when they are written as SQL."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from arroyo_sql.planner.literals import UnprintableError, interval_us, literal_sql
from arroyo_sql.planner.rewriting import duration_us
from arroyo_sql.planner.session import Session
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.api import Registry

SESSION = Session(Registry())


def computed(sql: str) -> pa.Scalar:
    column = SESSION.query(f"SELECT {sql} AS x").to_arrow_table().column("x")
    return column[0]


@pytest.mark.parametrize(
    "value",
    [
        pa.scalar(None, pa.int32()),
        pa.scalar(7, pa.int8()),
        pa.scalar(2**64 - 1, pa.uint64()),
        pa.scalar(-(2**63) + 1, pa.int64()),
        pa.scalar(float("inf")),
        pa.scalar(1e300),
        pa.scalar(0.1, pa.float32()),
        pa.scalar(Decimal("-1.50"), pa.decimal128(10, 2)),
        pa.scalar("it's"),
        pa.scalar(True),
        pa.scalar(b"\x00\xff"),
        pa.scalar(date(1969, 12, 31)),
        pa.scalar(datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC), pa.timestamp("us", "UTC")),
        pa.scalar(-1, pa.timestamp("ns")),
        pa.scalar([1, 2], pa.list_(pa.int64())),
    ],
    ids=str,
)
def test_a_constant_is_the_same_when_it_is_read_again(value: Any) -> None:
    found = computed(literal_sql(value))

    assert found.type == value.type
    assert found.as_py() == value.as_py()


@given(st.text(st.characters(blacklist_characters="\x00", blacklist_categories=["Cs"])))
def test_a_text_is_the_same_when_it_is_read_again(text: str) -> None:
    assert computed(literal_sql(pa.scalar(text))).as_py() == text


@given(st.floats(allow_nan=False))
def test_a_double_is_the_same_when_it_is_read_again(value: float) -> None:
    assert computed(literal_sql(pa.scalar(value))).as_py() == value


def test_a_type_that_sql_cannot_name_is_told() -> None:
    with pytest.raises(UnprintableError, match="map"):
        literal_sql(pa.scalar([("a", 1)], pa.map_(pa.string(), pa.int64())))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10 seconds", 10_000_000),
        ("1 day 2 hours", 93_600_000_000),
        ("2 weeks", 1_209_600_000_000),
        ("5m", 300_000_000),
    ],
)
def test_durations_are_read_as_sql_writes_them(text: str, expected: int) -> None:
    assert duration_us(text) == expected


@pytest.mark.parametrize("text", ["1 month", "soon", "", "10"])
def test_what_has_no_fixed_length_is_not_a_duration(text: str) -> None:
    assert duration_us(text) is None


def test_an_interval_of_months_has_no_length() -> None:
    assert interval_us(pa.scalar((1, 0, 0), pa.month_day_nano_interval())) is None
