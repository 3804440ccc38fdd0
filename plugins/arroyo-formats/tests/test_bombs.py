"""Files and messages of a few kilobytes that stand for gigabytes: each attack is tried, and takes little memory."""

from __future__ import annotations

import io
import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import zstandard
from arroyo_formats.arrow.files import ArrowFileReader
from arroyo_formats.arrow.format import ArrowMessageReader
from arroyo_formats.avro.container import block_bytes, header_bytes
from arroyo_formats.avro.files import AvroFiles
from arroyo_formats.csv.format import CsvFiles
from arroyo_formats.files import WHOLE_FILE, DamagedFileError
from arroyo_formats.formats_pb2 import CsvSettings
from arroyo_formats.limits import AVRO_BLOCK_BYTES, AVRO_BLOCK_VALUES, MESSAGE_ROWS_BYTES, ROW_GROUP_BYTES
from arroyo_formats.parquet import sizes
from arroyo_formats.parquet.format import ParquetMessageReader
from arroyo_formats.parquet.reading import ParquetFileReader
from arroyo_formats.parquet.sizes import page_header
from arroyo_formats.registry.framing import zigzag
from arroyo_formats.schemas_pb2 import AvroSettings
from arroyo_formats.text.compressed import open_text

from arroyo_core.api.ipc_sizes import unpacked_sizes
from arroyo_core.errors import DataError

TEXT = pa.schema([("v", pa.string())])
SYNC = b"s" * 16
FS = fsspec.filesystem("file")


def repeated(rows: int, size: int, **settings: Any) -> bytes:
    """A Parquet file with one long text in all rows, stored once."""
    values = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["x" * size]))
    target = io.BytesIO()
    settings = {"store_schema": False, "dictionary_pagesize_limit": 2**30, "write_statistics": False, **settings}
    pq.write_table(pa.table({"v": values}), target, compression="zstd", **settings)
    return target.getvalue()


def peak_of(code: str, *arguments: str) -> int:
    """What some code has taken of Arrow's memory at most; it is ended at gigabytes."""
    command = [sys.executable, "-c", f"{code}\nimport pyarrow\nprint(pyarrow.default_memory_pool().max_memory())"]
    limit = 6 * 2**30

    def confine() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False, preexec_fn=confine)
    assert done.returncode == 0, done.stderr[-2000:]
    return int(done.stdout)


@pytest.mark.parametrize("stored", [False, True], ids=["texts", "dictionaries"])
def test_a_text_that_is_stored_once_for_a_million_rows_is_not_decoded_for_all_of_them(
    tmp_path: Path, stored: bool
) -> None:
    path = tmp_path / "bomb.parquet"
    path.write_bytes(repeated(1_000_000, 2**20, store_schema=stored))
    assert path.stat().st_size < 10_000
    code = """
import sys, fsspec, pyarrow as pa
from arroyo_formats.parquet.reading import ParquetFileReader
reader = ParquetFileReader(fsspec.filesystem("file"), schema=pa.schema([("v", pa.string())]), batch_rows=65536)
batches = reader.read(sys.argv[1], (0, -1), 0)
for _ in range(3):
    batch, position = next(batches)
assert 0 < batch.num_rows <= position
"""
    assert peak_of(code, str(path)) < 2**30


def test_rows_that_are_decoded_few_at_a_time_are_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "TEXT_BYTES", 2**16)
    values = pa.array([None if i % 7 == 0 else f"{i % 50}" * (1 + i % 90) * 10 for i in range(20_000)])
    lists = pa.array([[f"{i % 3}", "y" * 5000] if i % 5 else None for i in range(20_000)])
    table = pa.table({"v": values, "l": lists, "n": np.arange(20_000)})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=7_000)
    reader = ParquetFileReader(FS, schema=table.schema, batch_rows=4_096)
    whole = list(reader.read(str(tmp_path / "x.parquet"), WHOLE_FILE, 0))
    assert pa.Table.from_batches([batch for batch, _ in whole]).equals(table)
    assert max(batch.num_rows for batch, _ in whole) <= 4_096
    for position in (1, 6_999, 7_000, 13_123):
        rest = pa.Table.from_batches([b for b, _ in reader.read(str(tmp_path / "x.parquet"), WHOLE_FILE, position)])
        assert rest.equals(table.slice(position))


def test_a_file_elsewhere_is_decoded_few_rows_at_a_time_without_a_look_at_its_texts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sizes, "REMOTE_TEXT_BYTES", 2**20)
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/bombs/x.parquet", repeated(1_000, 2**16))
    file = pq.ParquetFile(memory.open("/bombs/x.parquet"))
    source = sizes.FileSource(memory, "/bombs/x.parquet")
    found = sizes.row_sizes(source, file, range(1), ["v"], max_bytes=2**24, max_rows=500)
    assert found == sizes.RowSizes(500, 16)
    rows = [b.num_rows for b, _ in ParquetFileReader(memory, schema=TEXT, batch_rows=500).read(
        "/bombs/x.parquet", WHOLE_FILE, 0)]  # fmt: skip
    assert sum(rows) == 1_000


def test_short_texts_are_read_as_before(tmp_path: Path) -> None:
    table = pa.table({"v": [f"text {i % 1000}" for i in range(100_000)]})
    pq.write_table(table, tmp_path / "x.parquet")
    batches = [b.num_rows for b, _ in ParquetFileReader(FS, schema=table.schema, batch_rows=65_536).read(
        str(tmp_path / "x.parquet"), WHOLE_FILE, 0)]  # fmt: skip
    assert batches == [65_536, 34_464]


def test_the_header_of_a_page_says_what_a_dictionary_unpacks_to() -> None:
    data = repeated(10, 5_000)
    chunk = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0)
    assert page_header(data[chunk.dictionary_page_offset :][:64]) == (2, 5_004, 1)
    assert page_header(data[chunk.data_page_offset :][:64])[0] == 0
    assert page_header(b"") == page_header(b"\xff" * 64) == (0, 0, 0)


def test_a_row_group_that_says_it_is_huge_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ROW_GROUP_BYTES.variable, "1MiB")
    pq.write_table(pa.table({"v": ["x" * 100] * 1000, "n": np.zeros(1000)}), tmp_path / "small.parquet")
    pq.write_table(pa.table({"v": np.zeros(1_000_000)}), tmp_path / "runs.parquet")
    reader = ParquetFileReader(FS, schema=pa.schema([("v", pa.string())]), batch_rows=100)
    assert sum(b.num_rows for b, _ in reader.read(str(tmp_path / "small.parquet"), WHOLE_FILE, 0)) == 1000
    with pytest.raises(DamagedFileError, match=r"runs.parquet.*row group 0: 8000000B are too many: at most 1MiB"):
        list(reader.read(str(tmp_path / "runs.parquet"), WHOLE_FILE, 0))


def ipc(batch: pa.RecordBatch, times: int = 1) -> bytes:
    target = pa.BufferOutputStream()
    with pa.ipc.new_stream(target, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        for _ in range(times):
            writer.write_batch(batch)
    return bytes(target.getvalue().to_pybytes())


MESSAGES = {
    "parquet, one text": (ParquetMessageReader, lambda: repeated(100_000, 100_000)),
    "parquet, many rows": (ParquetMessageReader, lambda: repeated(20_000_000, 20)),
    "arrow, packed": (ArrowMessageReader, lambda: ipc(pa.record_batch({"v": ["x" * 2**20] * 50}), 10)),
    "arrow, a dictionary": (
        ArrowMessageReader,
        lambda: ipc(
            pa.record_batch(
                {"v": pa.DictionaryArray.from_arrays(pa.array(np.zeros(10_000, np.int8)), pa.array(["x" * 2**20]))}
            )
        ),
    ),
    "arrow, nulls": (ArrowMessageReader, lambda: ipc(pa.record_batch({"w": pa.nulls(2**31 - 1)}))),
}


@pytest.mark.parametrize("kind", MESSAGES)
def test_a_message_that_unpacks_to_too_much_is_bad_and_harms_no_other(kind: str) -> None:
    reader, make = MESSAGES[kind]
    message = make()
    assert len(message) < 100_000
    good = ipc(pa.record_batch({"v": ["a"]})) if reader is ArrowMessageReader else repeated(1, 1)
    pool = pa.default_memory_pool()
    before = pool.bytes_allocated()
    decoded = reader(TEXT).read([message, good])
    assert [bad.index for bad in decoded.bad] == [0]
    assert MESSAGE_ROWS_BYTES.variable in decoded.bad[0].error
    assert decoded.batch.num_rows == 1
    assert pool.bytes_allocated() - before < 2**20


def test_what_compressed_batches_unpack_to_is_what_they_take() -> None:
    batch = pa.record_batch({"v": ["x" * 1000] * 1000, "n": np.arange(1000)})
    (schema, *found) = unpacked_sizes(memoryview(ipc(batch, 3)), is_file=False)
    assert schema == 0
    assert len(found) >= 3
    assert all(abs(size - batch.nbytes) < 200 for size in found[:3])


@pytest.mark.parametrize("is_file", [False, True])
def test_no_bytes_make_the_look_at_batches_fail(is_file: bool) -> None:
    whole = ipc(pa.record_batch({"v": ["abc"] * 100}))
    random = np.random.default_rng(7)
    for _ in range(500):
        data = bytearray(whole)
        for place in random.integers(0, len(data), 5):
            data[place] = random.integers(0, 256)
        assert len(list(unpacked_sizes(memoryview(bytes(data)), is_file=is_file))) < 1000


def test_an_arrow_file_that_says_it_unpacks_to_too_much_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = pa.record_batch({"v": ["x" * 2**16] * 64})
    (tmp_path / "bomb.arrow").write_bytes(ipc(batch))
    reader = ArrowFileReader(FS, schema=TEXT, batch_rows=10)
    assert sum(b.num_rows for b, _ in reader.read(str(tmp_path / "bomb.arrow"), WHOLE_FILE, 0)) == 64
    monkeypatch.setenv(ROW_GROUP_BYTES.variable, "1MiB")
    with pytest.raises(DamagedFileError, match=ROW_GROUP_BYTES.variable):
        list(reader.read(str(tmp_path / "bomb.arrow"), WHOLE_FILE, 0))


@pytest.mark.parametrize("view", [False, True], ids=["dictionary", "view"])
def test_an_arrow_batch_that_refers_to_one_text_is_made_plain_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, view: bool
) -> None:
    monkeypatch.setattr("arroyo_formats.plain_sizes.PLAIN_BYTES", 2**20)
    values = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 500, pa.int8()), pa.array(["x" * 10_000, "y"]))
    column = pa.array(values.to_pylist(), pa.string_view()) if view else values
    with pa.ipc.new_file(str(tmp_path / "x.arrow"), pa.schema([("v", column.type)])) as writer:
        writer.write_batch(pa.record_batch({"v": column}))
    found = [b for b, _ in ArrowFileReader(FS, schema=TEXT, batch_rows=1000).read(
        str(tmp_path / "x.arrow"), WHOLE_FILE, 0)]  # fmt: skip
    assert max(batch.nbytes for batch in found) < 2 * 2**20
    assert pa.Table.from_batches(found).column("v").to_pylist() == values.to_pylist()


def avro(schema: Any, values: int, data: bytes, *, claimed: int | None = None) -> bytes:
    block = block_bytes(values, data, "zstd", SYNC)
    if claimed is not None:
        block = zigzag(claimed) + block[len(zigzag(values)) :]
    return header_bytes(json.dumps(schema), "zstd", SYNC) + block


@pytest.mark.parametrize(
    ("values", "size", "variable"),
    [(2**23, 2**23, AVRO_BLOCK_VALUES.variable), (10, 2**29, AVRO_BLOCK_BYTES.variable)],
    ids=["values", "bytes"],
)
def test_an_avro_block_of_too_much_is_refused(tmp_path: Path, values: int, size: int, variable: str) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]}
    path = tmp_path / "bomb.avro"
    path.write_bytes(avro(schema, values, bytes(size)))
    assert path.stat().st_size < 50_000
    reader = AvroFiles().reader(
        AvroSettings(), FS, schema=pa.schema([("a", pa.int64())]), declared=None, batch_rows=100, on_bad=print
    )
    with pytest.raises(DamagedFileError, match=variable):
        list(reader.read(str(path), WHOLE_FILE, 0))


def test_an_avro_header_does_not_say_how_much_memory_is_taken(tmp_path: Path) -> None:
    (tmp_path / "x.avro").write_bytes(b"Obj\x01" + zigzag(1) + zigzag(2**40))
    with pytest.raises(DamagedFileError, match="ARROYO_MAX_SCHEMA_BYTES"):
        AvroFiles().read_schema(AvroSettings(), FS, str(tmp_path / "x.avro"))


def test_a_little_of_a_zstandard_file_is_not_half_a_gigabyte(tmp_path: Path) -> None:
    packer = zstandard.ZstdCompressor().compressobj()
    with (tmp_path / "x.jsonl.zst").open("wb") as file:
        for _ in range(512):
            file.write(packer.compress(bytes(2**20)))
        file.write(packer.flush())
    assert (tmp_path / "x.jsonl.zst").stat().st_size < 100_000
    stream: Any = open_text(FS, str(tmp_path / "x.jsonl.zst"))
    assert len(stream.read(2**20)) == 2**20
    assert len(stream._held) < 200 * 2**20
    stream.close()


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (",".join(f"c{i}" for i in range(20_000)), "20000 are too many: at most 10000 columns"),
        ("x" * 200_000 + ",b", "the header cannot be read: field larger"),
        ("a\rb,c", "the header cannot be read: new-line character"),
    ],
    ids=["columns", "long name", "line ends"],
)
def test_a_header_of_too_much_is_refused_with_its_file(tmp_path: Path, header: str, reason: str) -> None:
    (tmp_path / "x.csv").write_text(f"{header}\n1\n", newline="")
    with pytest.raises(DataError, match=f"x.csv:1: .*{reason}"):
        CsvFiles().read_schema(CsvSettings(delimiter=","), FS, str(tmp_path / "x.csv"))


def test_a_text_of_nulls_has_no_longest_one(tmp_path: Path) -> None:
    table = pa.table({"v": pa.nulls(100_000, pa.string())})
    pq.write_table(table, tmp_path / "x.parquet")
    found = ParquetFileReader(FS, schema=table.schema, batch_rows=65_536).read(
        str(tmp_path / "x.parquet"), WHOLE_FILE, 0
    )
    assert sum(pc.sum(batch.column(0).is_null()).as_py() for batch, _ in found) == 100_000
