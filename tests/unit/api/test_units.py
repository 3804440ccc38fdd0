import pytest
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.api.units import (
    DURATION_UNITS,
    SIZE_UNITS,
    format_bytes,
    format_duration_us,
    parse_bytes,
    parse_duration_us,
)

INT64 = st.integers(0, 2**63 - 1)


@pytest.mark.parametrize(
    ("text", "expected_us"),
    [
        ("100us", 100),
        ("500ms", 500_000),
        ("10s", 10_000_000),
        ("1m", 60_000_000),
        ("2h", 7_200_000_000),
        ("1d", 86_400_000_000),
        ("0", 0),
        ("0.1s", 100_000),
        ("1.5 h", 5_400_000_000),
        (" 7s ", 7_000_000),
    ],
)
def test_a_duration_is_read_exactly(text, expected_us):
    assert parse_duration_us(text) == expected_us


@pytest.mark.parametrize(
    ("text", "expected"),
    [("4096", 4096), ("1GiB", 2**30), ("64MiB", 2**26), ("10MB", 10**7), ("0.5KiB", 512), ("1 kB", 1000), ("0", 0)],
)
def test_a_size_is_read_exactly(text, expected):
    assert parse_bytes(text) == expected


@pytest.mark.parametrize(
    "text", ["10", "", "s", "-1s", "1 fortnight", "0.1us", "1e3s", "1_000s", "1s 5ms", "9999999999d", "\u0661s"]
)
def test_what_is_no_duration_is_refused_with_what_is_allowed(text):
    with pytest.raises(ValueError, match=r"such as 10s|64 bits"):
        parse_duration_us(text)


@pytest.mark.parametrize("text", ["", "B", "-1", "1.5", "1gib", "1XB", "0x10", "99999999999TiB"])
def test_what_is_no_size_is_refused_with_what_is_allowed(text):
    with pytest.raises(ValueError, match=r"such as 64MiB|64 bits|whole number"):
        parse_bytes(text)


@given(INT64)
def test_a_shown_duration_reads_back_the_same(duration_us):
    assert parse_duration_us(format_duration_us(duration_us)) == duration_us


@given(INT64)
def test_a_shown_size_reads_back_the_same(size):
    assert parse_bytes(format_bytes(size)) == size


@given(st.integers(0, 100_000), st.sampled_from(list(DURATION_UNITS)))
def test_a_whole_number_of_any_unit_of_time_is_read(number, unit):
    assert parse_duration_us(f"{number}{unit}") == number * DURATION_UNITS[unit]


@given(st.integers(0, 100_000), st.sampled_from(list(SIZE_UNITS)))
def test_a_whole_number_of_any_unit_of_size_is_read(number, unit):
    assert parse_bytes(f"{number}{unit}") == number * SIZE_UNITS[unit]
