"""Columns of timestamps without a declared schema."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from arroyo_core.errors import ConfigError

MOMENT = datetime(2025, 12, 31, 10, tzinfo=UTC)
US, NS = pa.timestamp("us", tz="UTC"), pa.timestamp("ns", tz="UTC")


def write(folder: Path, kind: str, texts: list[str]) -> None:
    if kind == "csv":
        (folder / "a.csv").write_text("".join(["at,n\n", *(f"{text},{n}\n" for n, text in enumerate(texts))]))
    else:
        rows = [json.dumps({"at": text or None, "n": n}) + "\n" for n, text in enumerate(texts)]
        (folder / "a.jsonl").write_text("".join(rows))


@pytest.mark.parametrize("kind", ["csv", "json"])
@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["2025-12-31T10:00:00Z"], [MOMENT]),
        (["2025-12-31T10:00:00.5Z"], [MOMENT + timedelta(seconds=0.5)]),
        (["2025-12-31T12:00:00+02:00", "2025-12-31 10:00:00.000001"], [MOMENT, MOMENT + timedelta(microseconds=1)]),
        (["2025-12-31T10:00Z", "", "2025-12-31T11:00:00.123+01:00"], [MOMENT, None, MOMENT + timedelta(seconds=0.123)]),
    ],
)
def test_iso_texts_are_an_event_time(
    files: Any, tmp_path: Path, kind: str, texts: list[str], expected: list[datetime | None]
) -> None:
    write(tmp_path, kind, texts)
    read = files.read(tmp_path, event_time_field="at")
    assert read.schema.field("at").type == US
    assert read.column("at").to_pylist() == expected


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_nanoseconds_stay(files: Any, tmp_path: Path, kind: str) -> None:
    write(tmp_path, kind, ["2025-12-31T10:00:00.123456789Z", "2025-12-31T10:00:00.5Z"])
    read = files.read(tmp_path, event_time_field="at")
    assert read.column("at").cast(pa.timestamp("ns")).cast(pa.int64()).to_pylist()[0] % 10**9 == 123456789


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_texts_that_are_not_all_times_stay_texts(files: Any, tmp_path: Path, kind: str) -> None:
    write(tmp_path, kind, ["2025-12-31T10:00:00.5Z", "soon"])
    assert files.read(tmp_path).schema.field("at").type == pa.string()
    with pytest.raises(ConfigError, match="column 'at' is string, not a timestamp; declare it as timestamp") as caught:
        files.read(tmp_path, event_time_field="at")
    assert caught.value.field == "event_time_field"


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_texts_in_the_formats_of_the_settings_are_dates_and_timestamps(files: Any, tmp_path: Path, kind: str) -> None:
    write(tmp_path, kind, ["31/12/2025", "01/01/2026"])
    read = files.read(tmp_path, format={"name": kind, "date_formats": ["%d/%m/%Y"]})
    assert read.column("at").to_pylist() == [date(2025, 12, 31), date(2026, 1, 1)]
    form = {"name": kind, "timestamp_formats": ["%d/%m/%Y"], "time_zone": "Europe/Amsterdam"}
    read = files.read(tmp_path, format=form, event_time_field="at")
    assert read.column("at").to_pylist()[0] == datetime(2025, 12, 30, 23, tzinfo=UTC)


def test_a_wrong_format_is_found_when_the_source_is_planned(files: Any, tmp_path: Path) -> None:
    write(tmp_path, "csv", ["31/12/2025"])
    with pytest.raises(ConfigError, match="there is no directive '%Q'") as caught:
        files.source(tmp_path, format={"name": "csv", "date_formats": ["%d/%m/%Y", "%Q"]})
    assert caught.value.field == "format.date_formats[1]"
