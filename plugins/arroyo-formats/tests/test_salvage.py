"""Bad texts are found at a cost in proportion to their number, whatever makes them bad."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from arroyo_formats import find_format
from arroyo_formats.formats_pb2 import JsonSettings
from arroyo_formats.json import parser as json_parser
from arroyo_formats.json.parser import JsonParser
from arroyo_formats.lines import Texts, parse_texts

from arroyo_core.api import with_defaults

SCHEMA = pa.schema([("n", pa.int64()), ("at", pa.timestamp("us", tz="UTC")), ("d", pa.decimal128(10, 2))])
COUNT = 20_000


def good(number: int) -> bytes:
    return b'{"n": %d, "at": "2026-01-31T12:00:00Z", "d": "1.25"}' % number


@pytest.fixture
def parsed_bytes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How much is given to Arrow, call by call."""
    sizes: list[int] = []
    read = json_parser.read_json

    def counted(data: bytes, schema: pa.Schema | None) -> pa.Table:
        sizes.append(len(data))
        return read(data, schema)

    monkeypatch.setattr(json_parser, "read_json", counted)
    return sizes


@pytest.mark.parametrize(
    ("bad", "calls"),
    [
        (lambda number: b"", 0),
        (lambda number: b"null", 0),
        (lambda number: b'{"n": %d' % number, 0),
        (lambda number: b'{"n": %d}{"n": 1}' % number, 1),
        (lambda number: b'{"n": "%d"}' % number, 1),
        (lambda number: b'{"n": %d.5}' % number, 1),
        (lambda number: b'{"n": %d, "at": "31/12/2025"}' % number, 0),
        (lambda number: b'{"n": %d, "n": 1}' % number, 3),
        (lambda number: b'{"n": %d, "d": "x"}' % number, 20),
    ],
)
def test_a_bad_message_costs_few_calls_and_no_more_rows(
    bad: Callable[[int], bytes], calls: int, parsed_bytes: list[int]
) -> None:
    wrong = set(range(0, COUNT, 200))
    messages = [bad(number) if number in wrong else good(number) for number in range(COUNT)]
    decoded = find_format("json").reader(JsonSettings(), SCHEMA).read(messages)
    assert {each.index for each in decoded.bad} == wrong
    assert decoded.batch.column("n").to_pylist() == [number for number in range(COUNT) if number not in wrong]
    # A few calls for all of them, and so many for each.
    assert len(parsed_bytes) <= 40 + calls * len(wrong)
    assert sum(parsed_bytes) <= (12 + calls) * sum(map(len, messages))


@pytest.mark.parametrize("share", [2, 7, 100])
def test_numbers_among_texts_in_a_column_of_timestamps_are_read_in_two_parts(
    share: int, parsed_bytes: list[int]
) -> None:
    messages = [good(n) if n % share else b'{"n": %d, "at": 1769860800000000}' % n for n in range(COUNT)]
    decoded = find_format("json").reader(JsonSettings(), SCHEMA).read(messages)
    assert not decoded.bad
    assert decoded.batch.column("n").to_pylist() == list(range(COUNT))
    assert decoded.batch.column("at").unique().cast(pa.int64()).to_pylist() == [1769860800000000]
    assert len(parsed_bytes) <= 12


def test_numbers_among_texts_are_read_from_csv_too() -> None:
    acme = find_format("csv")
    reader = acme.reader(with_defaults(acme.settings_type()), SCHEMA)
    decoded = reader.read(
        [b"1,2026-01-31T12:00:00Z,1.25", b"2,1769860800000000,1.25", b"3,2026-01-31 12:00:00,", b"4,x,"]
    )
    assert [each.index for each in decoded.bad] == [3]
    assert decoded.batch.column("at").unique().cast(pa.int64()).to_pylist() == [1769860800000000]


@pytest.mark.parametrize(
    "lines", [[b'{"n": 1}{"n": 2}', b"  "], [b'{"n":', b"1}", b'{"n": 1}{"n": 2}'], [b'{"n": 1}', b"null"], [b"null"]]
)
def test_lines_that_only_add_up_are_bad(lines: list[bytes]) -> None:
    """As many objects as lines, but not one on each."""
    parsed = parse_texts(
        JsonParser(pa.schema([("n", pa.int64())])), Texts.of_lines(b"\n".join(lines), quote_aware=False)
    )
    rows = parsed.batch.column("n").to_pylist() if parsed.batch is not None else []
    assert rows == ([1] if lines[0] == b'{"n": 1}' else [])
    assert parsed.bad
