"""What somebody can do who can write to the store, and has not the key; and what keys can do."""

from __future__ import annotations

import logging
import secrets

import pytest
from arroyo_jobs.checkpoints.verification import Verifier

from arroyo_core.errors import SetupError
from arroyo_core.ids import KeyRange
from arroyo_core.proto.state_pb2 import CheckpointMetadata, CommittedMarker, GenerationClaim
from arroyo_core.state import ParquetBackend, StorageProvider, files, paths
from arroyo_core.state.envelope import seal, unseal
from arroyo_core.state.failures import DamagedStateError, SealError, SealKeyError
from arroyo_core.state.files import ReadCounts, read_file
from arroyo_core.state.fork import ForkSource, find_checkpoint
from arroyo_core.state.merge import table_files
from arroyo_core.state.seals import FILE_VARIABLE, KEY_VARIABLE, MAGIC, SealKey, Seals

from .support.recording import DictDriver, dict_storage
from .support.state_life import KEEP, Life, contents, expected_at

KEY, OTHER = "k" * 64, "o" * 64
EPOCH = 5
CHECKPOINT, MARKER = paths.checkpoint_metadata("job", EPOCH), paths.committed_marker("job", EPOCH)


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    monkeypatch.delenv(FILE_VARIABLE, raising=False)


def lived(epochs=EPOCH):
    """The files of a sealed job."""
    driver = DictDriver()
    Life(StorageProvider("dict://", driver=driver)).run(epochs)
    return driver.files


@pytest.fixture(scope="module")
def stored():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY_VARIABLE, KEY)
        return lived()


def go_on(stored):
    """Restore the job; what its tables hold, and the files that there are then."""
    storage = dict_storage(dict(stored))
    life = Life(storage)
    checkpoint = life.job.backend.resolve_latest().checkpoint
    return contents(life.job.open_at(checkpoint, 2), checkpoint.epoch)


def message_of(data, kind=CheckpointMetadata):
    return Seals([SealKey(KEY.encode())]).unseal(data, kind, path=CHECKPOINT, name="it")


def with_payload(data, message):
    """A sealed file with another message, and the checksum of that: what is left to somebody without the key."""
    head = data[: len(MAGIC) + 8 + 32]
    return head + seal(message)[len(MAGIC) :]


def claims(stored):
    return {path for path in stored if path.endswith(".claim")}


def test_a_sealed_job_goes_on(stored):
    assert go_on(stored) == expected_at(EPOCH)
    sealed = [path for path in stored if stored[path].startswith(MAGIC)]
    assert {CHECKPOINT, MARKER} <= set(sealed)
    assert claims(stored) <= set(sealed)


@pytest.mark.parametrize("is_bare", [False, True], ids=["seal kept", "seal removed"])
@pytest.mark.parametrize("field", ["needs_commit", "is_final"])
def test_a_changed_field_is_refused(stored, field, is_bare):
    changed = message_of(stored[CHECKPOINT])
    setattr(changed, field, not getattr(changed, field))
    data = seal(changed) if is_bare else with_payload(stored[CHECKPOINT], changed)
    with pytest.raises(SealError, match="has no seal" if is_bare else "does not match its seal"):
        go_on(stored | {CHECKPOINT: data})


def test_a_removed_seal_is_refused(stored):
    bare = seal(message_of(stored[CHECKPOINT]))
    with pytest.raises(SealError, match="has no seal, and ARROYO_SEAL_KEY is set"):
        go_on(stored | {CHECKPOINT: bare})


def test_swapped_epochs_are_refused(stored):
    before = paths.checkpoint_metadata("job", EPOCH - 1)
    with pytest.raises(SealError, match="belongs to another job, epoch or place"):
        go_on(stored | {CHECKPOINT: stored[before], before: stored[CHECKPOINT]})


def test_the_metadata_of_another_job_is_refused(stored):
    files = {path.replace("job/", "thief/", 1): data for path, data in stored.items()}
    with pytest.raises(SealError, match="belongs to another job, epoch or place"):
        ParquetBackend(dict_storage(files), "thief").claim_generation()


def test_a_checkpoint_of_a_former_life_of_the_job_is_refused(stored):
    now = lived()
    with pytest.raises(SealError, match="epoch 5 is of another life of the job"):
        go_on(now | {CHECKPOINT: stored[CHECKPOINT]})


@pytest.mark.parametrize("kind", ["written without the key", "that of another epoch", "that of a former life"])
def test_a_forged_marker_does_not_hide_a_commit_that_is_due(stored, kind):
    forged = {
        "written without the key": seal(CommittedMarker(epoch=EPOCH, generation=1)),
        "that of another epoch": stored[paths.committed_marker("job", EPOCH - 1)],
        "that of a former life": lived()[MARKER],
    }
    tampered = stored | {MARKER: forged[kind]}
    with pytest.raises(SealError, match=r"committed\.marker"):
        go_on(tampered)
    (*_, verdict) = Verifier(ParquetBackend(dict_storage(tampered), "job")).verify_all()
    assert "committed.marker" in verdict.problems[0]


def test_a_forged_claim_is_refused_and_nothing_is_claimed(stored):
    forged = seal(GenerationClaim(generation=9, incarnation="0" * 16))
    storage = dict_storage(stored | {paths.generation_claim("job", 9): forged})
    with pytest.raises(SealError, match=r"9\.claim has no seal"):
        ParquetBackend(storage, "job").claim_generation()
    assert not storage.exists(paths.generation_claim("job", 10))


def test_a_data_file_that_was_exchanged_is_refused_with_or_without_its_entry(stored):
    changed = message_of(stored[CHECKPOINT])
    tables = changed.operators[0].table_checkpoint_metadata
    one, other = table_files(tables["windows"])[0], table_files(tables["latest"])[0]
    with pytest.raises(DamagedStateError, match=r"bytes|checksum"):
        go_on(stored | {one.path: stored[other.path]})
    one.checksum, one.size_bytes, one.rows = other.checksum, other.size_bytes, other.rows
    with pytest.raises(SealError):
        go_on(stored | {one.path: stored[other.path], CHECKPOINT: with_payload(stored[CHECKPOINT], changed)})


def test_a_part_of_a_file_is_not_read_before_all_of_it_is_verified(stored, monkeypatch):
    """The footer's checksum does not cover the pages: whoever changes one can make its own checksum fit."""
    monkeypatch.setattr(files, "WHOLE_READ_BYTES", 0)
    file = max(
        (
            file
            for table in message_of(stored[CHECKPOINT]).operators[0].table_checkpoint_metadata.values()
            for file in table_files(table)
        ),
        key=lambda file: file.rows,
    )
    changed = bytearray(stored[file.path])
    # In the padding between the magic and the first page nobody looks, in a page the CRC is the attacker's to write.
    changed[3] ^= 1
    storage = dict_storage(stored | {file.path: bytes(changed)})
    part = KeyRange(file.min_key_hash + 1, file.max_key_hash)

    def read(*, is_sealed):
        return read_file(storage, file, job_id="job", key_range=part, counts=ReadCounts(), is_sealed=is_sealed)

    read(is_sealed=False)
    with pytest.raises(DamagedStateError, match="does not match its checksum"):
        read(is_sealed=True)


def test_a_fork_of_a_changed_checkpoint_is_refused(stored, tmp_path):
    changed = message_of(stored[CHECKPOINT])
    changed.is_final = True
    storage = StorageProvider(str(tmp_path))
    for path, data in (stored | {CHECKPOINT: with_payload(stored[CHECKPOINT], changed)}).items():
        storage.write(path, data)
    with pytest.raises(SealError):
        find_checkpoint(ForkSource(url=str(tmp_path)), job_id="job", is_committed_only=True)


def test_a_wrong_key_and_a_missing_key_are_told_apart_and_claim_nothing(stored, monkeypatch):
    storage = dict_storage(dict(stored))
    monkeypatch.setenv(KEY_VARIABLE, OTHER)
    id_, other = (SealKey(text.encode()).id.hex() for text in (KEY, OTHER))
    with pytest.raises(SealKeyError, match=rf"key {id_}, which is not among those that are given \({other}\)"):
        ParquetBackend(storage, "job").claim_generation()
    monkeypatch.delenv(KEY_VARIABLE)
    with pytest.raises(SealKeyError, match=f"sealed with the key {id_}, and no key is given: set ARROYO_SEAL_KEY"):
        ParquetBackend(storage, "job").claim_generation()
    assert {file.path for file in storage.list("job") if file.path.endswith(".claim")} == claims(stored)


def test_without_the_key_tools_read_with_a_warning(stored, monkeypatch, caplog):
    monkeypatch.delenv(KEY_VARIABLE)
    backend = ParquetBackend(dict_storage(dict(stored)), "job")
    with caplog.at_level(logging.WARNING):
        assert backend.load_checkpoint_metadata("job", EPOCH).epoch == EPOCH
        backend.load_checkpoint_metadata("job", EPOCH - 1)
    (record,) = caplog.records
    assert "is sealed, and read without being verified: ARROYO_SEAL_KEY is not set" in record.message


def test_what_is_damaged_is_told_without_the_key_too(stored, monkeypatch):
    monkeypatch.delenv(KEY_VARIABLE)
    data = stored[CHECKPOINT][:-1] + b"?"
    with pytest.raises(DamagedStateError, match="does not match its checksum"):
        ParquetBackend(dict_storage(stored | {CHECKPOINT: data}), "job").load_checkpoint_metadata("job", EPOCH)
    with pytest.raises(DamagedStateError):
        ParquetBackend(dict_storage(stored | {CHECKPOINT: MAGIC}), "job").load_checkpoint_metadata("job", EPOCH)


def test_keys_rotate(monkeypatch):
    driver = DictDriver()
    storage = StorageProvider("dict://", driver=driver)
    Life(storage).run(3)
    monkeypatch.setenv(KEY_VARIABLE, f"{OTHER} {KEY}")
    life = Life(storage)
    life.run(3 + KEEP + 3)
    life.job.clean(KEEP)
    monkeypatch.setenv(KEY_VARIABLE, OTHER)
    assert go_on(driver.files) == expected_at(3 + KEEP + 3)
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with pytest.raises(SealKeyError):
        go_on(driver.files)


def test_without_a_key_files_are_those_of_the_version_before(monkeypatch):
    monkeypatch.delenv(KEY_VARIABLE)
    stored = lived()
    for path, kind in (
        (CHECKPOINT, CheckpointMetadata),
        (MARKER, CommittedMarker),
        (max(claims(stored)), GenerationClaim),
    ):
        assert stored[path].startswith(b"ARROYOM1")
        unseal(stored[path], kind, name=path)


def test_the_key_is_written_nowhere(stored):
    assert not [path for path, data in stored.items() if KEY.encode() in data]
    assert KEY not in repr(SealKey(KEY.encode()))


def test_keys_come_from_a_file(monkeypatch, tmp_path):
    path = tmp_path / "keys"
    path.write_text(f"# of May\n{OTHER}\n\n# of April\n{KEY}\n")
    monkeypatch.delenv(KEY_VARIABLE)
    monkeypatch.setenv(FILE_VARIABLE, str(path))
    message = CommittedMarker(epoch=1)
    old = Seals([SealKey(KEY.encode())]).seal(message, "p")
    seals = Seals.from_environment()
    assert seals.unseal(old, CommittedMarker, path="p", name="p") == message
    assert not seals.is_current(old)
    assert seals.is_current(seals.seal(message, "p"))


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ({KEY_VARIABLE: "short"}, "ARROYO_SEAL_KEY: a key has at least 32 characters"),
        ({KEY_VARIABLE: f"{KEY} short"}, "ARROYO_SEAL_KEY: a key has at least 32 characters"),
        ({KEY_VARIABLE: KEY, FILE_VARIABLE: "x"}, "both set"),
        ({FILE_VARIABLE: "/nosuch/keys"}, "/nosuch/keys"),
        ({KEY_VARIABLE: "  "}, "ARROYO_SEAL_KEY has no key"),
    ],
)
def test_what_is_not_a_key_is_told_without_showing_it(environment, problem):
    with pytest.raises(SetupError, match=problem) as raised:
        Seals.from_environment(environment)
    assert "short" not in str(raised.value)


def test_no_variable_and_an_empty_one_mean_no_seals():
    assert not Seals.from_environment({}).is_on
    assert not Seals.from_environment({KEY_VARIABLE: ""}).is_on
    assert Seals.from_environment({KEY_VARIABLE: secrets.token_hex(32)}).is_on
