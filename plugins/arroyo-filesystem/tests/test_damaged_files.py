"""Files that are cut off or whose bytes are not what was written: the rows before are read once, the rest is told."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from arroyo_formats import read_choice
from google.protobuf import struct_pb2

from arroyo_core.errors import ConfigError, OperatorError

from .support.committed_epochs import committed_letters, run_and_commit

COUNT = 20_000
COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}
SCHEMA = {"n": "int64", "s": "string"}


def table() -> pa.Table:
    # Not compressible to nothing, so that a part of the file is about that part of the rows.
    texts = [f"{n * 2654435761 % 2**32:08x}{n * 40503 % 2**16:04x}" for n in range(COUNT)]
    return pa.table({"n": range(COUNT), "s": texts})


def lines() -> bytes:
    return b"".join(b'{"n": %d, "s": "%s"}\n' % (row["n"], row["s"].encode()) for row in table().to_pylist())


def cut_off(data: bytes) -> bytes:
    return data[: len(data) * 2 // 3]


def overwritten(data: bytes) -> bytes:
    middle = len(data) * 2 // 3
    return data[:middle] + b"\x00\xff" * 400 + data[middle + 800 :]


DAMAGES = [cut_off, overwritten]


def write(folder: Path, kind: str, damage: Callable[[bytes], bytes]) -> Path:
    """A damaged file, and a whole one of one row after it; the path of the damaged one."""
    rows = pa.table({"n": [-1], "s": ["whole"]})
    bad, good = folder / f"a.{kind}", folder / f"b.{kind}"
    if kind == "parquet":
        pq.write_table(table(), bad, row_group_size=5_000, data_page_size=10_000, compression="zstd")
        pq.write_table(rows, good)
    elif kind == "avro":
        chosen = read_choice(struct_pb2.Value(string_value="avro"))
        for path, each in ((bad, table()), (good, rows)):
            with path.open("wb") as file:
                writer = chosen.files().writer(chosen.settings, file, each.schema, compression="deflate")
                for batch in each.to_batches(max_chunksize=1_000):
                    writer.write(batch)
                    writer.flush()
                writer.close()
    elif kind == "arrow":
        for path, each in ((bad, table()), (good, rows)):
            options = pa.ipc.IpcWriteOptions(compression="zstd")
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, each.schema, options=options) as writer:
                writer.write_table(each, max_chunksize=1_000)
    else:
        compress = COMPRESSIONS[kind.rpartition(".")[2]]
        bad.write_bytes(compress(lines()))
        good.write_bytes(compress(b'{"n": -1, "s": "whole"}\n'))
    bad.write_bytes(damage(bad.read_bytes()))
    return bad


KINDS = [f"jsonl.{ending}" for ending in COMPRESSIONS]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_before_the_damage_come_once_whatever_the_epochs_and_the_rest_is_one_letter(
    files: Any, tmp_path: Path, kind: str, damage: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "in").mkdir()
    path = write(tmp_path / "in", kind, damage)
    results = []
    for epoch_rows in (10**9, 1_777):
        letters = tmp_path / f"letters_{epoch_rows}"
        config = {"schema": SCHEMA, "bad_data": "dead_letter", "dead_letter": str(letters)}
        rows = run_and_commit(files, path.parent, config, parallelism=1, epoch_rows=epoch_rows)
        found = [letter for letter in committed_letters(letters) if "the file is damaged" in letter["error"]]
        assert [(letter["file"], letter["text"]) for letter in found] == [(str(path), "")]
        results.append((rows, found[0]["line"]))
    assert results[0] == results[1]
    rows, line = results[0]
    assert rows[-1] == -1
    # Of bz2, a block of 900 kB is whole or not. Overwritten bytes may be read as something until a checksum is wrong.
    whole = 0 if kind.endswith("bz2") else 5_000
    assert rows[:whole] == list(range(whole))
    if damage is cut_off:
        assert rows[:-1] == list(range(line - 1))


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", ["parquet", "arrow", "avro"])
def test_rows_before_the_damage_of_binary_files_come_once(
    files: Any, tmp_path: Path, kind: str, damage: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "in").mkdir()
    path = write(tmp_path / "in", kind, damage)
    results = []
    for epoch_rows, batch_rows in ((10**9, 65_536), (1_777, 900), (10**9, 50)):
        letters = tmp_path / f"letters_{epoch_rows}_{batch_rows}"
        config = {"bad_data": "dead_letter", "dead_letter": str(letters), "batch_rows": batch_rows}
        results.append(run_and_commit(files, path.parent, config, parallelism=1, epoch_rows=epoch_rows))
        (letter,) = committed_letters(letters)
        assert letter["file"] == str(path)
        assert letter["error"].startswith("the file is damaged: ")
        assert "line" not in letter
    assert results[0] == results[1] == results[2]
    rows = results[0]
    assert rows == [*range(len(rows) - 1), -1]
    # Parquet has its table of contents at the end.
    assert (len(rows) > 1_000) is not (kind == "parquet" and damage is cut_off)


@pytest.mark.parametrize("kind", [*KINDS, "parquet", "arrow", "avro"])
def test_a_damaged_file_fails_the_job_with_its_name(files: Any, tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, kind, cut_off)
    with pytest.raises(OperatorError, match="the file is damaged: ") as raised:
        files.read(tmp_path, schema=SCHEMA)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("kind", ["jsonl.gz", "parquet"])
def test_a_damaged_file_is_dropped_with_a_count_and_a_warning(files: Any, tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, kind, cut_off)
    harness = files.source(tmp_path, schema=SCHEMA, bad_data="drop")
    done = harness.run()
    harness.close()
    assert done.is_final
    assert done.table["n"].to_pylist()[-1] == -1
    assert done.counters == {"bad_rows": 1}
    assert len(done.warnings) == 1
    assert "did not read the rest of a file: " in done.warnings[0]
    assert str(path) in done.warnings[0]


def test_the_columns_are_those_of_the_first_file_that_is_not_damaged(files: Any, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and nothing more")
    pq.write_table(table(), tmp_path / "b.parquet")
    assert files.read(tmp_path, bad_data="drop").num_rows == COUNT
    with pytest.raises(ConfigError, match=r"a\.parquet: the file is damaged: .*; declare the schema") as caught:
        files.read(tmp_path)
    assert caught.value.field == "path"


def test_a_large_damaged_file_is_not_cut_and_a_letter(files: Any, tmp_path: Path) -> None:
    path = write(tmp_path, "parquet", cut_off)
    harness = files.source(tmp_path, schema=SCHEMA, bad_data="drop", split_size=1_000)
    done = harness.run(parallelism=2)
    harness.close()
    assert done.table["n"].to_pylist() == [-1]
    assert str(path) in done.warnings[0]


def test_the_last_line_of_a_file_that_is_cut_off_is_not_taken_for_a_whole_one(files: Any, tmp_path: Path) -> None:
    data = gzip.compress(b"first\n" + bytes(range(97, 123)) * 400)
    (tmp_path / "a.txt.gz").write_bytes(data[:-30])
    harness = files.source(tmp_path, format="raw_string", bad_data="drop")
    done = harness.run()
    harness.close()
    assert done.table.to_pylist() == [{"value": "first"}]
