from __future__ import annotations

import csv
import gzip
import io
import uuid
from itertools import pairwise

import fsspec
import pytest
from arroyo_formats.limits import LINE_BYTES
from arroyo_formats.text import lines
from arroyo_formats.text.lines import LineNumbers, line_ends, next_line, read_blocks
from fsspec.implementations.local import LocalFileSystem
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.errors import DataError

MEMORY = fsspec.filesystem("memory")
TEXTS = st.lists(st.binary(max_size=9).map(lambda line: line.replace(b"\n", b"")), max_size=25).map(b"\n".join)


def stored(content: bytes, suffix: str = ".txt") -> str:
    path = f"/lines/{uuid.uuid4().hex}{suffix}"
    MEMORY.pipe_file(path, content)
    return path


@given(text=TEXTS, cuts=st.sets(st.integers(1, 200)), max_lines=st.integers(1, 5), block=st.integers(1, 40))
def test_every_line_is_in_exactly_one_split_whatever_the_cuts_and_blocks(
    text: bytes, cuts: set[int], max_lines: int, block: int
) -> None:
    path = stored(text)
    bounds = sorted({0, *(cut for cut in cuts if cut < len(text)), len(text)})
    got = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", block)
        for start, stop in pairwise(bounds):
            begin = next_line(MEMORY, path, start)
            at = begin
            for found in read_blocks(MEMORY, path, start=begin, stop=stop, max_lines=max_lines, quote_aware=False):
                assert found.offset == at
                at += len(found.data)
                assert len(line_ends(found.data, quote_aware=False)) <= max_lines
                got.append(found.data)
    assert b"".join(got) == text
    assert all(data.endswith(b"\n") for data in got[:-1])


@given(text=TEXTS, max_lines=st.integers(1, 5), block=st.integers(1, 40), data=st.data())
def test_reading_on_from_any_block_gives_the_rest(text: bytes, max_lines: int, block: int, data: st.DataObject) -> None:
    suffix = data.draw(st.sampled_from([".txt", ".txt.gz"]))
    path = stored(gzip.compress(text) if suffix.endswith("gz") else text, suffix)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", block)
        whole = list(read_blocks(MEMORY, path, start=0, stop=None, max_lines=max_lines, quote_aware=False))
        for done, first in enumerate(whole):
            rest = read_blocks(MEMORY, path, start=first.offset, stop=None, max_lines=max_lines, quote_aware=False)
            assert b"".join(b.data for b in rest) == b"".join(b.data for b in whole[done:])


@given(
    rows=st.lists(st.lists(st.text('a\n",x', max_size=5), min_size=2, max_size=2), max_size=12),
    max_lines=st.integers(1, 3),
    block=st.integers(1, 30),
)
def test_blocks_of_quoted_text_never_cut_a_record(rows: list[list[str]], max_lines: int, block: int) -> None:
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    path = stored(written.getvalue().encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", block)
        blocks = list(read_blocks(MEMORY, path, start=0, stop=None, max_lines=max_lines, quote_aware=True))
    read = [row for found in blocks for row in csv.reader(io.StringIO(found.data.decode(), newline=""))]
    assert read == rows


@given(text=TEXTS, asked=st.lists(st.booleans(), min_size=20, max_size=20), skipped=st.integers(0, 5))
def test_line_numbers_count_from_one_whenever_they_are_asked_for(
    tmp_path_factory: pytest.TempPathFactory, text: bytes, asked: list[bool], skipped: int
) -> None:
    file = tmp_path_factory.getbasetemp() / "numbered.txt"
    file.write_bytes(text)
    path, local = str(file), LocalFileSystem()
    start = ([0, *line_ends(text, quote_aware=False).tolist()] * 6)[skipped]
    numbers = LineNumbers(local, path, start)
    blocks = read_blocks(local, path, start=start, stop=None, max_lines=2, quote_aware=False)
    for block, is_asked in zip(blocks, asked, strict=False):
        if is_asked:
            starts = [0, *line_ends(block.data, quote_aware=False).tolist()[:-1]]
            expected = [text[: block.offset + place].count(b"\n") + 1 for place in starts]
            assert list(numbers.in_block(block.data, starts)) == expected
        numbers.pass_block(block)
    assert numbers.next_line() >= 1


def test_a_line_without_end_is_refused_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "BLOCK_BYTES", 8)
    monkeypatch.setenv(LINE_BYTES.variable, "32")
    path = stored(b"short\n" + b"x" * 100)
    with pytest.raises(DataError, match=rf"{path}: in a line at byte 6 \d+B are too many: at most 32B"):
        list(read_blocks(MEMORY, path, start=0, stop=None, max_lines=10, quote_aware=False))
