"""Tables and commit data that somebody else has written: what is too large, damaged or elsewhere is refused."""

from __future__ import annotations

import gzip
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from arroyo_iceberg.file_io import LimitedFileIO
from arroyo_iceberg.merging import _as_keys
from arroyo_iceberg.reading import check_place
from arroyo_iceberg.source import Part, Snapshots
from arroyo_iceberg.staging import DamagedCommitError, decode_keys, encode_keys
from pyiceberg.serializers import FromInputFile

from arroyo_core.errors import DataError

from .support.tables import load_table, make_table
from .test_conformance import ROWS

KEYS = pa.table({"id": list(range(1000)), "name": [f"name {number}" for number in range(1000)]})


@pytest.fixture
def table(tmp_path):
    return make_table(tmp_path, "shop.rows", ROWS)


def path_of(location: str) -> Path:
    return Path(urlsplit(location).path)


def test_metadata_that_are_too_large_are_not_read(table, tmp_path, monkeypatch):
    assert load_table(tmp_path, "shop.rows").io.__class__ is LimitedFileIO
    monkeypatch.setenv("ARROYO_MAX_ICEBERG_METADATA_BYTES", "100")
    with pytest.raises(DataError, match=r"\.metadata\.json is too large: .*ARROYO_MAX_ICEBERG_METADATA_BYTES"):
        load_table(tmp_path, "shop.rows")


def test_metadata_that_unpack_to_too_much_are_not_unpacked(tmp_path, monkeypatch):
    bomb = tmp_path / "1.gz.metadata.json"
    bomb.write_bytes(gzip.compress(b" " * (16 << 20)))
    assert bomb.stat().st_size < 1 << 20
    monkeypatch.setenv("ARROYO_MAX_ICEBERG_METADATA_BYTES", "4MiB")
    with pytest.raises(DataError, match="too large"):
        FromInputFile.table_metadata(LimitedFileIO().new_input(str(bomb)))


def test_packed_metadata_are_read(table, tmp_path):
    packed = tmp_path / "1.gz.metadata.json"
    packed.write_bytes(gzip.compress(path_of(table.metadata_location).read_bytes()))
    assert FromInputFile.table_metadata(LimitedFileIO().new_input(str(packed))) == table.metadata


def test_manifests_that_are_too_large_are_not_read(table, monkeypatch):
    snapshot = table.current_snapshot().snapshot_id
    monkeypatch.setenv("ARROYO_MAX_ICEBERG_MANIFEST_BYTES", "100")
    with pytest.raises(DataError, match=r"\.avro is too large: .*ARROYO_MAX_ICEBERG_MANIFEST_BYTES"):
        Snapshots(table).units(snapshot, Part.ALL)


@pytest.mark.parametrize(
    "path", ["file:///private/rows.parquet", "/private/rows.parquet", "FILE:/private/rows.parquet"]
)
@pytest.mark.parametrize("table", ["s3://bucket/shop/rows", "gs://user:secret@bucket/rows"])
def test_a_table_elsewhere_does_not_have_files_of_this_host_read(path, table):
    with pytest.raises(DataError, match="a file of this host: it is not read") as caught:
        check_place(path, table)
    assert "secret" not in str(caught.value)


def test_files_elsewhere_are_read(tmp_path):
    check_place("s3://other/part.parquet", "s3://bucket/shop/rows")
    check_place(f"file://{tmp_path}/part.parquet", str(tmp_path))
    check_place(str(tmp_path / "part.parquet"), f"file://{tmp_path}")


def test_keys_that_unpack_to_too_much_are_not_unpacked(monkeypatch):
    bomb = encode_keys(pa.table({"name": ["a" * (16 << 20)]}))
    assert len(bomb) < 1 << 20
    monkeypatch.setenv("ARROYO_MAX_ICEBERG_KEYS_BYTES", "4MiB")
    before = pa.total_allocated_bytes()
    with pytest.raises(DamagedCommitError, match="keys that are too large"):
        decode_keys(bomb)
    assert pa.total_allocated_bytes() - before < 1 << 20


@pytest.mark.parametrize("cut", [1, 100, 2000])
def test_keys_that_are_cut_or_changed_are_damaged(cut):
    good = encode_keys(KEYS)
    assert decode_keys(good) == KEYS
    with pytest.raises(DamagedCommitError):
        decode_keys(good[:-cut] if cut > 1 else b"x" + good)
    with pytest.raises(DamagedCommitError):
        decode_keys(good.replace(b"name", b"\xffame"))


def test_keys_of_other_columns_are_damaged():
    assert _as_keys(KEYS, pa.schema({"id": pa.int64()})).num_rows == 1000
    for schema in (pa.schema({"other": pa.int64()}), pa.schema({"name": pa.int64()})):
        with pytest.raises(DamagedCommitError, match="commit data have keys that are not"):
            _as_keys(KEYS, schema)
