"""Lines of CSV with open quotes, or another number of values, and empty values."""

from __future__ import annotations

import io
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
from hypothesis import given, settings
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


QUOTED = b'a",;\n\r\xc0'


def rows_and_bad(data: bytes, names: list[str], lines: int, *, delimiter: str) -> tuple[list[Any], list[int]]:
    """What is read where values may have line ends, from batches of so many lines."""
    schema = pa.schema([(name, pa.string()) for name in names])
    dialect = CsvDialect(delimiter=delimiter, newlines_in_values=True)
    texts = Texts.of_lines(data, quote_aware=True)
    found: list[Any] = []
    bad: list[int] = []
    for first in range(0, len(texts), lines):
        last = min(first + lines, len(texts))
        # As a file is read: each block is taken apart by itself.
        part = Texts.of_lines(data[texts.start(first) : int(texts.ends[last - 1])], quote_aware=True)
        assert len(part) == last - first
        parsed = parse_texts(CsvParser(schema, names=names, dialect=dialect), part)
        found += parsed.batch.to_pylist() if parsed.batch is not None else []
        bad += [first + index for index in parsed.bad]
    return found, bad


@settings(max_examples=300)
@given(
    data=st.lists(st.sampled_from([*(bytes([code]) for code in QUOTED), b'\n"', b'",', b'""', b"a,b\n"]), max_size=24),
    names=st.sampled_from([["a"], ["a", "b"], ["a", "b", "c"]]),
    delimiter=st.sampled_from([",", ";"]),
)
def test_where_values_have_line_ends_batches_do_not_change_what_is_bad(
    data: list[bytes], names: list[str], delimiter: str
) -> None:
    whole = rows_and_bad(b"".join(data), names, 1000, delimiter=delimiter)
    for lines in (1, 2, 3):
        assert rows_and_bad(b"".join(data), names, lines, delimiter=delimiter) == whole


@pytest.mark.parametrize(
    ("data", "bad"),
    [
        # Odd quotes in values that are not quoted, on several lines: no more than that record is lost.
        (b'x,y\nM"\n\n",z\nu,v\n', [1]),
        (b'x,y\nb,"c\nu,v\n', [1]),
        (b'x,y\n"a"b"\nc",z\nu,v\n', [1]),
    ],
)
def test_a_quote_that_arrow_does_not_count_makes_its_record_bad(data: bytes, bad: list[int]) -> None:
    for lines in (1, 2, 1000):
        found, places = rows_and_bad(data, ["a", "b"], lines, delimiter=",")
        assert places == bad
        assert found[0] == {"a": "x", "b": "y"}


def test_quotes_inside_of_values_are_read_where_they_harm_nothing() -> None:
    data = b'say "hi" to,y\n5" pipe,6" pipe\n"two\nlines ""quoted""",z\n"q" tail,w\n'
    found, bad = rows_and_bad(data, ["a", "b"], 1000, delimiter=",")
    assert bad == []
    assert [row["a"] for row in found] == ['say "hi" to', '5" pipe', 'two\nlines "quoted"', "q tail"]


@pytest.mark.parametrize("message", [b'"a,b', b'a,b"\n"', b'"a","b\n'])
def test_a_message_with_an_open_quote_is_bad_whatever_comes_with_it(message: bytes) -> None:
    for others in ([], [b"x,y"], [message], [message, b'"c\nd",e']):
        schema = pa.schema([("a", pa.string()), ("b", pa.string())])
        parser = CsvParser(schema, names=["a", "b"], dialect=CsvDialect(newlines_in_values=True), unit="message")
        parsed = parse_texts(parser, Texts.of_messages([message, *others]))
        assert sorted(parsed.bad) == [0, *(1 + place for place, each in enumerate(others) if each == message)]


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


@pytest.mark.parametrize("line", ['b","', '"a""', 'a,b"c,"', '"a","b'])
def test_an_open_quote_is_bad_also_at_the_end_of_a_batch(line: str) -> None:
    """However many quotes there are: inside of a value that is not quoted they are characters."""
    texts = Texts.of_lines(f"{line}\n".encode(), quote_aware=False)
    names = ["a", "b", "c"][: line.count(",") + 1]
    parsed = parse_texts(CsvParser(SCHEMA, names=names, dialect=CsvDialect()), texts)
    assert sorted(parsed.bad) == [0]


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


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary(2)])
def test_only_bytes_that_are_text_are_written(kind: pa.DataType) -> None:
    schema = pa.schema([("b", kind)])
    choice, stream = choose(find_format("csv")), io.BytesIO()
    writer = choice.files().writer(choice.settings, stream, schema, compression="none")
    writer.write(pa.record_batch([pa.array([b"ab", None, b'c"'], kind)], schema=schema))
    with pytest.raises(DataError, match="column 'b': csv cannot hold bytes that are not UTF-8"):
        writer.write(pa.record_batch([pa.array([b"a\xce"], kind)], schema=schema))
    assert stream.getvalue() == b'"b"\n"ab"\n\n"c"""\n'


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
