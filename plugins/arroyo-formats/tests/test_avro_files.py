from __future__ import annotations

import io
import json
import os
import random
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from arroyo_formats.avro import files as avro_files
from arroyo_formats.avro.format import AvroFormat
from arroyo_formats.files import WHOLE_FILE, DamagedFileError
from fsspec.implementations.local import LocalFileSystem
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.errors import DataError

from .support.arrow_values import batches
from .support.formats_in_tests import choose
from .support.mutations import mutated
from .test_avro_round_trips import AVRO_TYPES

FS = LocalFileSystem()
FILES = AvroFormat.files
ROWS = [{"id": i, "name": f"n{i}", "data": bytes([i % 256]), "note": None if i % 3 else "x"} for i in range(1000)]
SCHEMA: Any = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string"},
        {"name": "data", "type": "bytes"},
        {"name": "note", "type": ["null", "string"]},
    ],
}


def settings(**more: Any) -> Any:
    return choose(AvroFormat(), **more).settings


def write(path: Path, found: list[pa.RecordBatch], compression: str = "none", **more: Any) -> None:
    with path.open("wb") as stream:
        writer = FILES.writer(settings(**more), stream, found[0].schema, compression=compression)
        for batch in found:
            writer.write(batch)
        writer.close()


def read(path: Path, columns: pa.Schema, *, part: Any = WHOLE_FILE, position: int = 0, **more: Any) -> list[Any]:
    made = settings(**more)
    reader = FILES.reader(made, FS, schema=columns, declared=None, batch_rows=300, on_bad=_never)
    return list(reader.read(str(path), part, position))


def _never(_: Any) -> None:
    raise AssertionError("an Avro file has no lines")


def rows_of(found: list[Any]) -> list[Any]:
    return [row for batch, _ in found for row in batch.to_pylist()]


@given(batches(AVRO_TYPES), st.sampled_from(FILES.compressions))
def test_any_value_comes_back_as_it_was(tmp_path_factory, batch: pa.RecordBatch, compression: str):
    path = tmp_path_factory.mktemp("avro") / "a.avro"
    write(path, [batch, batch], compression)
    assert rows_of(read(path, batch.schema)) == batch.to_pylist() * 2


@pytest.mark.parametrize("compression", ["none", "deflate"])  # for the others, fastavro wants more libraries
def test_fastavro_reads_what_is_written(tmp_path: Path, compression: str):
    path = tmp_path / "a.avro"
    write(path, [pa.RecordBatch.from_pylist(ROWS)], compression)
    with path.open("rb") as stream:
        assert list(fastavro.reader(stream)) == ROWS


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_what_fastavro_writes_is_read(tmp_path: Path, codec: str):
    path = tmp_path / "a.avro"
    with path.open("wb") as stream:
        fastavro.writer(stream, fastavro.parse_schema(SCHEMA), ROWS, codec=codec, sync_interval=500)
    schema = FILES.read_schema(settings(), FS, str(path))
    assert schema == pa.schema({"id": pa.int64(), "name": pa.string(), "data": pa.binary(), "note": pa.string()})
    assert rows_of(read(path, schema)) == ROWS


def test_a_file_is_cut_at_blocks_and_read_on_from_any_position(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(avro_files, "BLOCK_BYTES", 200)
    path = tmp_path / "a.avro"
    table = pa.RecordBatch.from_pylist(ROWS)
    write(path, [table.slice(at, 10) for at in range(0, 1000, 10)])
    size = path.stat().st_size
    parts = FILES.cut(settings(), FS, str(path), size=size, part_bytes=size // 5)
    assert 4 <= len(parts) <= 6
    assert [row for part in parts for row in rows_of(read(path, table.schema, part=part))] == ROWS
    found = read(path, table.schema, part=parts[1])
    for place, (_, position) in enumerate(found):
        assert rows_of(read(path, table.schema, part=parts[1], position=position)) == rows_of(found[place + 1 :])


def test_rows_are_read_as_the_given_schema(tmp_path: Path):
    path = tmp_path / "a.avro"
    write(path, [pa.RecordBatch.from_pylist(ROWS[:3])])
    fields = [{"name": "key", "type": "double", "aliases": ["id"]}, {"name": "more", "type": "int", "default": 5}]
    given_schema = json.dumps({"type": "record", "name": "r", "fields": fields})
    with pytest.raises(DataError, match=r"a\.avro: gone: null, where it cannot be null"):
        read(path, pa.schema([pa.field("gone", pa.int64(), nullable=False)]), schema=given_schema)
    schema = FILES.read_schema(settings(schema=given_schema), FS, str(path))
    found = rows_of(read(path, schema, schema=given_schema))
    assert found == [{"key": float(i), "more": 5} for i in range(3)]


def test_a_file_of_no_rows_has_its_columns(tmp_path: Path):
    path = tmp_path / "a.avro"
    write(path, [pa.RecordBatch.from_pylist(ROWS[:1]).slice(1)])
    assert FILES.read_schema(settings(), FS, str(path)).names == ["id", "name", "data", "note"]
    assert read(path, pa.schema([("id", pa.int64())])) == []
    assert len(FILES.cut(settings(), FS, str(path), size=1000, part_bytes=10)) == 1


def test_what_is_no_avro_file_is_named(tmp_path: Path):
    path = tmp_path / "a.avro"
    path.write_bytes(b"PAR1....")
    with pytest.raises(DamagedFileError, match=r"a\.avro: the file is damaged: not an Avro file"):
        FILES.read_schema(settings(), FS, str(path))
    with pytest.raises(DamagedFileError, match=r"a\.avro: the file is damaged: not an Avro file"):
        read(path, pa.schema([("id", pa.int64())]))


def test_a_damaged_file_is_an_error_that_names_it_and_nothing_else(tmp_path: Path):
    rng = random.Random(22)
    stream = io.BytesIO()
    fastavro.writer(stream, fastavro.parse_schema(SCHEMA), ROWS[:40], codec="deflate", sync_interval=200)
    path = tmp_path / "a.avro"
    schema = pa.schema({"id": pa.int64(), "name": pa.string(), "data": pa.binary(), "note": pa.string()})
    errors = []
    for content in mutated(rng, [stream.getvalue()], int(os.environ.get("FORMAT_FUZZ", "20000")) // 20):
        path.write_bytes(content)
        try:
            for batch, _ in read(path, schema):
                batch.validate(full=True)
        except DataError as error:
            errors.append(str(error))
    assert len(errors) > 100
    assert all(str(path) in error for error in errors)


def test_a_column_that_avro_cannot_hold_is_refused(tmp_path: Path):
    with pytest.raises(TypeError, match="column 'a': Avro cannot hold uint64"):
        write(tmp_path / "a.avro", [pa.record_batch({"a": pa.array([1], pa.uint64())})])
