"""Lines of CSV with open quotes, or another number of values, and empty values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from arroyo_formats import find_format
from arroyo_formats.csv import rows
from arroyo_formats.csv.rows import CsvDialect, CsvParser
from arroyo_formats.csv.shapes import misshapen
from arroyo_formats.lines import Texts, parse_texts
from fsspec.implementations.local import LocalFileSystem
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.errors import DataError

from .support.formats_in_tests import choose, read

SCHEMA = pa.schema([("a", pa.string()), ("b", pa.string()), ("c", pa.int64())])
LINES = st.lists(st.text('a1",;x ', max_size=12), min_size=1, max_size=8)


def parser(**settings: Any) -> CsvParser:
    return CsvParser(SCHEMA, names=SCHEMA.names, dialect=CsvDialect(**settings))


@given(lines=LINES, delimiter=st.sampled_from([",", ";"]))
def test_what_is_seen_to_be_misshapen_is_bad_alone(lines: list[str], delimiter: str) -> None:
    """For every text the parser is the judge; nothing else is called bad."""
    texts = Texts.of_lines("".join(f"{line}\n" for line in lines).encode(), quote_aware=False)
    dialect = CsvDialect(delimiter=delimiter)
    for index in misshapen(texts, SCHEMA.names, dialect, "line"):
        if texts.text(index) == b"\n":
            continue
        alone = Texts.of_lines(texts.text(index), quote_aware=False)
        assert parse_texts(parser(delimiter=delimiter), alone).bad


def test_quoted_line_ends_cost_few_calls_and_name_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    read_csv = rows.pcsv.read_csv

    def counted(*args: Any, **options: Any) -> pa.Table:
        nonlocal calls
        calls += 1
        return read_csv(*args, **options)

    monkeypatch.setattr(rows.pcsv, "read_csv", counted)
    count = 5_000
    data = b"".join(b'x,"first\nsecond",%d\n' % number for number in range(count))
    parsed = parse_texts(parser(), Texts.of_lines(data, quote_aware=False))
    assert parsed.batch is None
    assert len(parsed.bad) == 2 * count
    assert "set newlines_in_values: true" in parsed.bad[0]
    assert parsed.bad[1] == "Expected 3 columns, got 2"
    assert calls < 10


def test_a_lone_return_does_not_make_up_for_an_open_quote() -> None:
    """Two lines that a quote joins, and one that a return cuts in two, are as many rows as lines."""
    column = pa.schema([("a", pa.string())])
    parser = CsvParser(column, names=["a"], dialect=CsvDialect())
    parsed = parse_texts(parser, Texts.of_lines(b'x\n"a\nb"\nc\rd\n"e\rf"\n', quote_aware=False))
    assert sorted(parsed.bad) == [1, 3]
    assert parsed.batch is not None
    assert parsed.batch.to_pydict() == {"a": ["x", 'b"', "e\rf"]}


@pytest.mark.parametrize("lines", [[b"x,y,1\n", b"\xef\xbb\xbfx,y,1\n"], [b"\xef\xbb\xbfx,y,1\n", b"x,y,1\n"]])
def test_a_byte_order_mark_inside_a_file_is_text(lines: list[bytes]) -> None:
    parsed = parse_texts(parser(), Texts.of_lines(b"".join(lines), quote_aware=False))
    assert parsed.batch is not None
    expected = ["\ufeffx" if line.startswith(b"\xef") else "x" for line in lines]
    assert parsed.batch.column("a").to_pylist() == expected


@pytest.mark.parametrize(("first", "reason"), [(b"\n", "is empty"), (b"a\rb,c\n", "cannot be read")])
def test_a_header_without_names_is_refused(tmp_path: Path, first: bytes, reason: str) -> None:
    (tmp_path / "x.csv").write_bytes(first + b"1,2\n")
    with pytest.raises(DataError, match=rf"x\.csv:1: the header {reason}"):
        rows.read_header(LocalFileSystem(), str(tmp_path / "x.csv"), CsvDialect())


def test_an_empty_value_is_null_unless_it_shall_be_a_text() -> None:
    schema = pa.schema([("s", pa.string()), ("n", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])
    messages = [b",,", b'"",1,2025-12-31T10:00:00Z', b"x,,1767175200000000"]
    usual = read(choose(find_format("csv")), messages, schema).batch
    assert usual.column("s").to_pylist() == [None, "", "x"]
    for formats in ([], ["%d/%m/%Y"]):
        texts = read(choose(find_format("csv"), empty_as_text=True, timestamp_formats=formats), messages, schema).batch
        assert texts.column("s").to_pylist() == ["", "", "x"]
        assert texts.column("n").to_pylist() == [None, 1, None]
        assert texts.column("at").null_count == 1
