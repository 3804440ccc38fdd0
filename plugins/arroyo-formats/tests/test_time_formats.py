"""Dates and times in formats of one's own, against Python's strptime."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from arroyo_formats import find_format
from arroyo_formats.text.time_formats import TimeFormatError, compile_format
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.errors import ConfigError

from .support.formats_in_tests import choose, read

MOMENTS = st.datetimes(datetime(1000, 1, 1), datetime(9999, 12, 31))
SCHEMA = pa.schema([("n", pa.int64()), ("at", pa.timestamp("us", tz="UTC")), ("day", pa.date32())])
TIMES = {"timestamp_formats": ["%d/%m/%Y %H:%M:%S", "%d.%m.%Y"], "date_formats": ["%d/%m/%Y"]}


def microseconds(text: str, form: str) -> int | None:
    found: int | None = compile_format(form).read(pa.array([text]), "us")[0].as_py()
    return found


@pytest.mark.parametrize(
    "form",
    [
        "%d/%m/%Y %H:%M:%S.%f",
        "%m-%d-%Y %I:%M:%S %p .%f",
        "%Y%m%d%H%M%S%f",
        "%A, %d %B %Y at %H:%M:%S,%f",
        "%b %d, %Y %T.%f",
        "%FT%T.%f",
        "100%% %Y.%m.%d %R:%S:%f",
    ],
)
@given(moment=MOMENTS)
def test_what_python_writes_is_read(form: str, moment: datetime) -> None:
    expected = (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    # Python pads no years, on some systems.
    text = moment.strftime(form.replace("%F", "%Y-%m-%d").replace("%Y", f"{moment.year:04}"))
    assert microseconds(text, form) == expected


@given(text=st.text("0123456789/: ", max_size=20) | st.builds("{}/{}/{} {}:{}".format, *[st.integers(0, 70)] * 5))
def test_other_texts_are_read_as_python_reads_them_or_not_at_all(text: str) -> None:
    try:
        expected: datetime | None = datetime.strptime(text, "%d/%m/%y %H:%M").replace(tzinfo=UTC)
    except ValueError:
        expected = None
    found = microseconds(text, "%d/%m/%y %H:%M")
    assert found == (None if expected is None else int(expected.timestamp()) * 10**6)


@pytest.mark.parametrize(
    ("text", "offset"),
    [("Z", 0), ("+02:00", 7200), ("-0530", -19800), ("+01", 3600)],
)
def test_offsets_are_taken_off(text: str, offset: int) -> None:
    moment = datetime(2025, 12, 31, 10, tzinfo=timezone(timedelta(seconds=offset)))
    assert microseconds(f"31/12/2025 10:00{text}", "%d/%m/%Y %H:%M%z") == int(moment.timestamp()) * 10**6


def test_digits_that_the_type_cannot_hold_are_not_lost() -> None:
    form = compile_format("%d/%m/%Y %T.%f")
    texts = pa.array(["31/12/2025 10:00:00.120", "31/12/2025 10:00:00.1234"])
    assert form.read(texts, "ms").null_count == 1
    assert form.read(texts, "ns").null_count == 0
    # Nanoseconds end in the year 2262.
    assert form.read(pa.array(["31/12/2300 10:00:00.0"]), "ns").null_count == 1


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ("%d/%m", r"it needs a year \(%Y\)"),
        ("%Y-%d", r"it needs a month \(%m\)"),
        ("%Y-%m", r"it needs a day \(%d\)"),
        ("%Y-%m-%d %Q", "there is no directive '%Q'; allowed are %Y, "),
        ("%Y-%m-%d %", "'%' begins no directive"),
        ("%Y-%m-%d %d", "'%d' stands twice"),
        ("%Y-%y-%m-%d", "%Y and %y say the same"),
        ("%Y-%m-%d %I:%M", "%I and %p need each other"),
        ("%Y-%m-%d %M", "%M needs %H or %I"),
        ("%Y-%m-%d %H:%M.%f", "%f needs %S"),
    ],
)
def test_a_wrong_format_says_why(form: str, reason: str) -> None:
    with pytest.raises(TimeFormatError, match=reason):
        compile_format(form)


@pytest.mark.parametrize("name", ["json", "csv"])
@pytest.mark.parametrize(
    ("settings", "field", "message"),
    [
        (
            {"timestamp_formats": ["%F", "%d/%m"]},
            "format.timestamp_formats[1]",
            "'%d/%m' is not a format of timestamps",
        ),
        ({"date_formats": ["%F %H"]}, "format.date_formats[0]", "it has a time of day, which a date has not"),
        ({"time_zone": "Europe/Amsterdm"}, "format.time_zone", "there is no time zone 'Europe/Amsterdm'"),
    ],
)
def test_wrong_settings_are_mistakes_of_the_plan(name: str, settings: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        choose(find_format(name), **settings)
    assert caught.value.field == field
    assert caught.value.suggestion == ("Europe/Amsterdam" if field.endswith("time_zone") else None)


def lines(name: str, *rows: tuple[Any, Any]) -> list[bytes]:
    """Messages of a number, a timestamp and a day."""
    if name == "csv":
        return [f"{n},{at or ''},{day or ''}".encode() for n, (at, day) in enumerate(rows)]
    shown = [(f'"{at}"' if isinstance(at, str) else at or "null", f'"{day}"' if day else "null") for at, day in rows]
    return [f'{{"n": {n}, "at": {at}, "day": {day}}}'.encode() for n, (at, day) in enumerate(shown)]


@pytest.mark.parametrize("name", ["json", "csv"])
def test_formats_iso_and_numbers_stand_in_one_column(name: str) -> None:
    day = date(2025, 12, 31)
    rows = [
        ("31/12/2025 10:00:00", "31/12/2025"),
        ("31.12.2025", "2025-12-31"),
        ("2025-12-31T10:00:00+01:00", None),
        (1767175200000000, "31/12/2025"),
        (None, "31/12/2025"),
        ("12/31/2025 10:00:00", "31/12/2025"),
        ("31/12/2025 10:00:00", "12/31/2025"),
    ]
    decoded = read(choose(find_format(name), **TIMES), lines(name, *rows), SCHEMA)
    moment = datetime(2025, 12, 31, 10, tzinfo=UTC)
    assert decoded.batch.to_pylist() == [
        {"n": 0, "at": moment, "day": day},
        {"n": 1, "at": datetime(2025, 12, 31, tzinfo=UTC), "day": day},
        {"n": 2, "at": moment - timedelta(hours=1), "day": None},
        {"n": 3, "at": moment, "day": day},
        {"n": 4, "at": None, "day": day},
    ]
    errors = {each.index: each.error for each in decoded.bad}
    assert set(errors) == {5, 6}
    assert "'12/31/2025 10:00:00' is not a timestamp" in errors[5]
    assert "neither in timestamp_formats nor in ISO 8601" in errors[5]
    assert "neither in date_formats nor in ISO 8601" in errors[6]


@pytest.mark.parametrize("name", ["json", "csv"])
@pytest.mark.parametrize("settings", [TIMES, {"time_zone": "Europe/Amsterdam"}])
def test_numbers_as_texts_are_read_beside_a_bad_time(name: str, settings: dict[str, Any]) -> None:
    choice = choose(find_format(name), **settings)
    decoded = read(choice, lines(name, ("31", None), ("x", None), ("-31", None)), SCHEMA)
    assert decoded.batch.column("at").cast(pa.int64()).to_pylist() == [31, -31]
    assert [each.index for each in decoded.bad] == [1]


def test_an_hour_is_a_time_of_day_beside_a_bad_one() -> None:
    messages = [b'{"z": "12"}', b'{"z": "x"}', b'{"z": "12:30"}']
    decoded = read(choose(find_format("json")), messages, pa.schema([("z", pa.time64("us"))]))
    assert decoded.batch.column("z").to_pylist() == [time(12), time(12, 30)]
    assert [each.index for each in decoded.bad] == [1]


@pytest.mark.parametrize("name", ["json", "csv"])
def test_without_formats_the_reason_names_the_setting(name: str) -> None:
    decoded = read(choose(find_format(name)), lines(name, ("31/12/2025", None), (None, "31/12/2025")), SCHEMA)
    assert "(other formats: timestamp_formats)" in decoded.bad[0].error
    assert "(other formats: date_formats)" in decoded.bad[1].error


@pytest.mark.parametrize("name", ["json", "csv"])
@pytest.mark.parametrize("formats", [[], ["%d/%m/%Y %H:%M:%S"]])
def test_times_without_a_zone_are_of_the_zone_of_the_settings(name: str, formats: list[str]) -> None:
    zone = ZoneInfo("Europe/Amsterdam")
    rows = [("2025-07-01 10:00:00", None), ("2025-12-31T10:00:00", None), ("2025-07-01T10:00:00Z", None), (1, None)]
    if formats:
        rows.append(("01/07/2025 10:00:00", None))
    choice = choose(find_format(name), timestamp_formats=formats, time_zone="Europe/Amsterdam")
    found = read(choice, lines(name, *rows), SCHEMA).batch.column("at").to_pylist()
    summer = datetime(2025, 7, 1, 10, tzinfo=zone)
    expected = [summer, datetime(2025, 12, 31, 10, tzinfo=zone), datetime(2025, 7, 1, 10, tzinfo=UTC)]
    # A number counts from 1970 in UTC.
    expected.append(datetime(1970, 1, 1, microsecond=1, tzinfo=UTC))
    if formats:
        expected.append(summer)
    assert found == expected


def test_formats_hold_inside_of_structs_and_lists() -> None:
    moments = pa.list_(pa.timestamp("us", tz="UTC"))
    schema = pa.schema([("user", pa.struct({"born": pa.date32(), "seen": moments}))])
    message = b'{"user": {"born": "31/12/1999", "seen": ["31/12/2025 10:00:00", null, "2025-12-31T10:00:00Z"]}}'
    moment = datetime(2025, 12, 31, 10, tzinfo=UTC)
    assert read(choose(find_format("json"), **TIMES), [message], schema).batch.to_pylist() == [
        {"user": {"born": date(1999, 12, 31), "seen": [moment, None, moment]}}
    ]
