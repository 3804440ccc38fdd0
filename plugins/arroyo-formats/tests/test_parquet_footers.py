"""A footer that was changed anywhere is read or refused: what Arrow throws there would end the process."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arroyo_formats.parquet.footers import check_sizes
from arroyo_formats.parquet.reading import piece_bytes, read_message

from arroyo_core.errors import DataError

ROWS = pa.table(
    {
        "n": pa.array([1, None], pa.int64()),
        "text": pa.array(["a", "b"]),
        "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
    }
)
#: One bit after the other.
CHANGES = [1 << bit for bit in range(8)]


def written() -> bytes:
    sink = io.BytesIO()
    pq.write_table(ROWS, sink)
    return sink.getvalue()


def test_a_footer_as_it_was_written_is_read() -> None:
    assert read_message(written(), ROWS.schema) == ROWS


def test_a_footer_with_any_bit_changed_is_read_or_refused() -> None:
    data = written()
    footer = int.from_bytes(data[-8:-4], "little")
    refused = 0
    for place in range(len(data) - 8 - footer, len(data)):
        for change in CHANGES:
            changed = bytearray(data)
            changed[place] ^= change
            try:
                read_message(bytes(changed), ROWS.schema)
            except (pa.ArrowException, DataError, OSError, ValueError):
                refused += 1
    assert refused > footer


def test_a_file_with_any_bit_of_its_footer_changed_is_cut_into_parts_or_refused(tmp_path: Path) -> None:
    data, fs, path = written(), fsspec.filesystem("file"), str(tmp_path / "rows.parquet")
    footer = int.from_bytes(data[-8:-4], "little")
    for place in range(len(data) - 8 - footer, len(data)):
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        Path(path).write_bytes(changed)
        with contextlib.suppress(pa.ArrowException, DataError, OSError):
            piece_bytes(fs, path)


def test_a_histogram_that_does_not_fit_its_column_is_named() -> None:
    """The levels of an optional column, with the schema of one that is not."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"n": [1]}, schema=pa.schema([pa.field("n", pa.int64(), nullable=False)])), sink)
    with pytest.raises(ValueError, match="column 'n' has 2 counts of levels, and 1 levels"):
        check_sizes(_optional(), pq.ParquetFile(pa.BufferReader(sink.getvalue())))


def _optional() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"n": [1]}), sink)
    return sink.getvalue()
