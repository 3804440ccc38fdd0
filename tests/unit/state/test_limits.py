"""Files that are larger than any a job writes: refused before they take memory."""

from __future__ import annotations

import io
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arroyo_jobs.checkpoints.repair import Repair

from arroyo_core.errors import SetupError
from arroyo_core.ids import KeyRange
from arroyo_core.runtime.event_log import read_epoch
from arroyo_core.runtime.status import read_status
from arroyo_core.runtime.stop import StopFile
from arroyo_core.state import ParquetBackend, StorageProvider, paths
from arroyo_core.state.failures import DamagedStateError, OversizedFileError
from arroyo_core.state.files import FileOrigin, ReadCounts, encode_file, read_file, verify_file
from arroyo_core.state.limits import METADATA_BYTES, SMALL_FILE_BYTES, STATE_FILE_BYTES, TOLD_FILE_BYTES
from arroyo_core.state.staged import read_staged

from .support.recording import DictDriver, dict_storage
from .support.state_life import Life

EPOCH = 3
CHECKPOINT = paths.checkpoint_metadata("job", EPOCH)


@pytest.fixture(params=["local", "memory", "driver"])
def storage(request, tmp_path):
    if request.param == "driver":
        return StorageProvider("dict://", driver=DictDriver())
    return StorageProvider(str(tmp_path) if request.param == "local" else f"memory://{uuid.uuid4().hex}")


def test_a_file_of_terabytes_takes_no_memory(tmp_path):
    """Sparse, as the file of somebody who wants to fill our memory may be."""
    path = tmp_path / CHECKPOINT
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.truncate(2**42)
    backend = ParquetBackend(StorageProvider(str(tmp_path)), "job")
    with pytest.raises(
        OversizedFileError, match="134218752 bytes, and is not read; ARROYO_MAX_METADATA_BYTES allows more"
    ):
        backend.load_checkpoint_metadata("job", EPOCH)
    assert backend.storage.put_if_absent(CHECKPOINT, b"mine") is False


@pytest.fixture(scope="module")
def stored():
    driver = DictDriver()
    Life(StorageProvider("dict://", driver=driver)).run(EPOCH)
    return driver.files


def test_metadata_beyond_the_limit_is_not_read(stored, monkeypatch):
    monkeypatch.setenv(METADATA_BYTES.variable, "1KiB")
    backend = ParquetBackend(dict_storage(dict(stored)), "job")
    with pytest.raises(OversizedFileError, match=r"has more than 2048 bytes.*ARROYO_MAX_METADATA_BYTES"):
        backend.resolve_latest()


def test_a_claim_of_megabytes_is_damaged(stored):
    claim = paths.generation_claim("job", 9)
    backend = ParquetBackend(dict_storage(stored | {claim: bytes(SMALL_FILE_BYTES + 1)}), "job")
    with pytest.raises(OversizedFileError):
        backend.read_claim(9)


def test_what_is_for_people_counts_as_not_there_where_it_is_too_large(stored):
    checkpoint = ParquetBackend(dict_storage(dict(stored)), "job").load_checkpoint_metadata("job", EPOCH)
    large = bytes(TOLD_FILE_BYTES + 1)
    storage = dict_storage(
        {
            paths.event_log("job", EPOCH, checkpoint.generation): large,
            paths.driver_status("job", 1): large,
            paths.stop_request("job", 1): large,
        }
    )
    assert read_epoch(storage, checkpoint) is None
    assert read_status(storage, "job", 1) is None
    assert StopFile(storage, paths.stop_request("job", 1)).read() is None


def rows(count):
    hashes = pa.array(range(count), pa.uint64())
    return pa.table({"_key_hash": hashes, "_op": pa.array([0] * count, pa.int8()), "v": ["x" * 100] * count})


@pytest.fixture
def file(storage, monkeypatch):
    monkeypatch.setattr("arroyo_core.state.files.OPERATION_COLUMN", "_op")
    encoded = encode_file(rows(1000), FileOrigin(path="job/checkpoints/1/table.parquet", epoch=1, subtask_index=0))
    storage.write(encoded.facts.path, encoded.data)
    return encoded.facts


def read(storage, file, *, is_sealed=False):
    whole = KeyRange(0, 2**64 - 1)
    return read_file(storage, file, job_id="job", key_range=whole, counts=ReadCounts(), is_sealed=is_sealed)


@pytest.mark.parametrize("call", [read, verify_file, read_staged], ids=lambda call: call.__name__)
def test_of_a_data_file_no_more_is_read_than_was_written(storage, file, call):
    storage.write(file.path, bytes(file.size_bytes + 1))
    with pytest.raises(OversizedFileError, match=f"more than {file.size_bytes} bytes"):
        call(storage, file)


def test_a_file_that_unpacks_to_more_than_allowed_is_not_unpacked(storage, file, monkeypatch):
    assert read(storage, file).num_rows == 1000
    monkeypatch.setenv(STATE_FILE_BYTES.variable, "1KiB")
    with pytest.raises(DamagedStateError, match=r"unpacks to \d+ bytes, and at most 1024 are allowed"):
        read(storage, file)


def test_a_file_with_other_rows_than_were_written_is_not_unpacked(storage, file):
    file.rows = 7
    with pytest.raises(DamagedStateError, match="has 1000 rows, 7 were written"):
        read(storage, file)


def test_a_sealed_file_is_not_opened_before_it_is_verified(storage, file, monkeypatch):
    monkeypatch.setattr("arroyo_core.state.files.PARALLEL_VERIFY_BYTES", 0)
    opened = []
    original = pq.ParquetFile
    monkeypatch.setattr(pq, "ParquetFile", lambda *args, **settings: opened.append(1) or original(*args, **settings))
    bomb = io.BytesIO()
    pq.write_table(rows(1000).append_column("w", pa.array([0] * 1000)), bomb)
    file.size_bytes = len(bomb.getvalue())
    storage.write(file.path, bomb.getvalue())
    with pytest.raises(DamagedStateError, match="does not match its checksum"):
        read(storage, file, is_sealed=True)
    assert not opened


@pytest.mark.parametrize("text", ["many", "0", "3GiB"])
def test_a_limit_is_a_size(stored, monkeypatch, text):
    monkeypatch.setenv(METADATA_BYTES.variable, text)
    with pytest.raises(SetupError, match="ARROYO_MAX_METADATA_BYTES"):
        ParquetBackend(dict_storage(dict(stored)), "job").load_checkpoint_metadata("job", EPOCH)


def test_a_repair_leaves_a_huge_file_to_people(stored, monkeypatch):
    monkeypatch.setattr("arroyo_jobs.checkpoints.repair.MAX_COPIED_BYTES", 10)
    damaged = stored | {CHECKPOINT: b"not what was written"}
    with pytest.raises(OversizedFileError, match="checkpoints/3/"):
        Repair(ParquetBackend(dict_storage(damaged), "job")).carry_out()
