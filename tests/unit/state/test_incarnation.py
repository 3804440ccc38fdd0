"""Which incarnation of a job a driver gets, and when its claim no longer holds."""

from __future__ import annotations

import re
import shutil
import threading
from pathlib import Path

import pytest
from arroyo_jobs.checkpoints.repair import Repair

from arroyo_core.ids import TaskInfo
from arroyo_core.proto.state_pb2 import CheckpointMetadata, GenerationClaim
from arroyo_core.state import FencedError, ParquetBackend, StorageProvider, TableManager, paths
from arroyo_core.state.envelope import seal, unseal
from arroyo_core.state.fork import ForkOrigin, rewrite_checkpoint
from arroyo_core.state.protocol import JobFacts, derive_incarnation, derive_next_generation

from .support.drivers import driver, publish
from .support.recording import DictDriver

FIXTURE = Path(__file__).parent / "fixtures/format-1"
FIXTURE_EPOCH = 7


@pytest.fixture
def storage():
    return StorageProvider("dict://", driver=DictDriver())


def remove(storage, folder):
    for file in list(storage.list(folder)):
        storage.delete(file.path)


def claim_of(storage, generation):
    path = paths.generation_claim("job", generation)
    return unseal(storage.read(path), GenerationClaim, name=path)


def test_the_first_claim_makes_an_incarnation_and_later_ones_keep_it(storage):
    first = driver(storage)
    assert re.fullmatch(r"[0-9a-f]{16}", first.incarnation)
    assert publish(first, 1).incarnation == first.incarnation
    second = driver(storage)
    assert (second.generation, second.incarnation) == (2, first.incarnation)
    publish(second, 2, 3, 4)
    second.cleanup_checkpoint(CheckpointMetadata(job_id="job", epoch=4), 0, 3)
    assert driver(storage).incarnation == first.incarnation
    assert ParquetBackend(storage, "job").load_checkpoint_metadata("job", 4).incarnation == first.incarnation


def test_two_jobs_have_two_incarnations(storage):
    other = ParquetBackend(storage, "other")
    other.claim_generation()
    assert other.incarnation != driver(storage).incarnation


@pytest.mark.parametrize("folder", ["job", "job/checkpoints"])
def test_a_job_whose_checkpoints_were_removed_is_another_incarnation(storage, folder):
    first = driver(storage)
    publish(first, 1, 2)
    remove(storage, folder)
    second = driver(storage)
    assert second.incarnation != first.incarnation
    assert second.generation == (1 if folder == "job" else 2)
    # It stays that one, also before it has published anything.
    third = driver(storage)
    assert third.incarnation == second.incarnation
    publish(third, 1)
    assert driver(storage).incarnation == second.incarnation


def test_a_driver_that_died_before_its_first_checkpoint_leaves_its_incarnation(storage):
    """What it has staged outside is found, and swept, by the next one."""
    first = driver(storage)
    assert driver(storage).incarnation == driver(storage).incarnation == first.incarnation


def test_a_driver_that_dies_between_checkpoint_and_marker_leaves_its_incarnation(storage):
    first = driver(storage)
    first._ownership.mark_published = lambda: None
    publish(first, 1)
    assert not ParquetBackend(storage, "job").read_facts().incarnations
    second = driver(storage)
    assert second.incarnation == first.incarnation
    second.check_commit(1)
    assert second.read_facts().incarnations == {first.incarnation}


def test_the_marker_is_there_before_the_first_commit(storage):
    backend = driver(storage)
    assert not backend.read_facts().incarnations
    publish(backend, 1)
    assert backend.read_facts().incarnations == {backend.incarnation}


@pytest.mark.parametrize("is_started_again", [False, True])
def test_a_driver_that_sleeps_while_it_publishes_leaves_no_epoch_in_the_next_life(storage, is_started_again):
    first, put, others = driver(storage), storage.put_if_absent, []
    publish(first, 1, 2)

    def put_late(path, data):
        # It has looked, and found that the job is its own.
        storage.put_if_absent = put
        remove(storage, "job")
        if is_started_again:
            others.append(driver(storage))
            publish(others[0], 1)
        return put(path, data)

    storage.put_if_absent = put_late
    with pytest.raises(FencedError):
        publish(first, 3)
    assert first.list_epochs() == ([1] if is_started_again else [])
    if is_started_again:
        publish(others[0], 2, 3)


def test_a_driver_that_sleeps_while_it_publishes_leaves_its_epoch_to_the_one_that_took_over(storage):
    first, put = driver(storage), storage.put_if_absent
    publish(first, 1)

    def put_late(path, data):
        storage.put_if_absent = put
        driver(storage)
        return put(path, data)

    storage.put_if_absent = put_late
    with pytest.raises(FencedError):
        publish(first, 2)
    assert first.list_epochs() == [1, 2]


def test_a_driver_deletes_nothing_of_the_next_life(storage):
    first = driver(storage)
    publish(first, 1, 2, 3)
    remove(storage, "job")
    second = driver(storage)
    publish(second, 1, 2, 3)
    assert first.generation == second.generation
    with pytest.raises(FencedError):
        first.cleanup_checkpoint(CheckpointMetadata(job_id="job", epoch=3), 0, 3)
    assert second.list_epochs() == [1, 2, 3]


def test_of_two_drivers_that_claim_at_once_both_get_one_incarnation(storage):
    put, others = storage.put_if_absent, []

    def put_late(path, data):
        # Both have found nothing; the other one is faster.
        storage.put_if_absent = put
        others.append(driver(storage))
        return put(path, data)

    storage.put_if_absent = put_late
    late = driver(storage)
    (fast,) = others
    assert (fast.generation, late.generation) == (1, 2)
    assert fast.incarnation == late.incarnation


def test_drivers_on_local_files_that_claim_at_once_get_one_incarnation(tmp_path):
    barrier = threading.Barrier(8)
    drivers = [ParquetBackend(StorageProvider(str(tmp_path)), "job") for _ in range(8)]

    def claim(backend):
        barrier.wait()
        backend.claim_generation()

    threads = [threading.Thread(target=claim, args=(backend,)) for backend in drivers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(backend.generation for backend in drivers) == list(range(1, 9))
    assert len({backend.incarnation for backend in drivers}) == 1


def test_a_listing_that_missed_the_first_checkpoint_makes_no_other_incarnation(storage):
    """Listings take their time: one may have passed the checkpoints before the first came, and then find its marker."""
    first = driver(storage)
    publish(first, 1)
    listed, lists = storage.list, []

    def list_late(prefix):
        lists.append(prefix)
        found = listed(prefix)
        return [file for file in found if "/checkpoints/" not in file.path] if len(lists) == 1 else found

    storage.list = list_late
    assert driver(storage).incarnation == first.incarnation


def test_a_claim_that_was_deleted_since_the_listing_is_looked_for_again(storage):
    first = driver(storage)
    publish(first, 1)
    read = storage.read

    def read_late(path, **limits):
        if path == paths.generation_claim("job", 1):
            storage.read = read
            newer = driver(storage)
            publish(newer, 2)
            newer.cleanup_checkpoint(CheckpointMetadata(job_id="job", epoch=2), 0, 2)
        return read(path, **limits)

    storage.read = read_late
    late = driver(storage)
    assert (late.generation, late.incarnation) == (3, first.incarnation)


def test_without_claims_the_checkpoints_tell_incarnation_and_generation(storage):
    first = driver(storage)
    publish(driver(storage), 1)
    remove(storage, "job/generations")
    again = driver(storage)
    assert (again.generation, again.incarnation) == (3, first.incarnation)


def test_a_claim_that_cannot_be_read_is_made_good_by_the_checkpoints(storage):
    first = driver(storage)
    publish(first, 1)
    storage.write(paths.generation_claim("job", 1), b"nonsense")
    assert driver(storage).incarnation == first.incarnation


def test_checkpoints_of_another_life_are_not_gone_on_with_under_either_name(storage):
    """Somebody has put back old checkpoints: the numbers after them may have been used by both."""
    first = driver(storage)
    publish(first, 1)
    path = paths.checkpoint_metadata("job", 1)
    backup = storage.read(path)
    remove(storage, "job/checkpoints")
    second = driver(storage)
    publish(second, 1, 2)
    remove(storage, "job/checkpoints")
    storage.write(path, backup)
    third = driver(storage)
    assert third.incarnation not in {first.incarnation, second.incarnation}


def test_state_of_format_1_gets_an_incarnation_with_the_next_claim_and_epoch(tmp_path):
    shutil.copytree(FIXTURE, tmp_path / "store")
    storage = StorageProvider(str(tmp_path / "store"))
    first = driver(storage)
    assert first.incarnation
    assert first.resolve_latest().checkpoint.incarnation == ""
    second = driver(storage)
    assert second.incarnation == first.incarnation
    assert publish(second, FIXTURE_EPOCH + 1).incarnation == first.incarnation
    assert driver(storage).incarnation == first.incarnation


def test_a_fork_gets_an_incarnation_of_its_own(storage):
    published = publish(driver(storage), 1)
    origin = ForkOrigin(url="dict://", job="job", epoch=1)
    assert rewrite_checkpoint(published, job_id="fork", origin=origin).incarnation == ""


def test_a_repair_keeps_the_incarnation(storage):
    first = driver(storage)
    publish(first, 1, 2)
    storage.write(paths.checkpoint_metadata("job", 2), b"nonsense")
    Repair(ParquetBackend(storage, "job")).carry_out()
    latest = driver(storage).resolve_latest().checkpoint
    assert (latest.epoch, latest.incarnation) == (3, first.incarnation)


FACTS = JobFacts(published=frozenset({1}), generations=frozenset({1}), incarnations=frozenset({"a"}))


@pytest.mark.parametrize(
    ("facts", "claimed", "recorded", "kept"),
    [
        (FACTS, "a", "a", "a"),
        (FACTS, "a", "", "a"),
        (FACTS, "", "a", "a"),
        (FACTS, "", "", None),
        (FACTS, "a", "b", None),
        (JobFacts(), "", "", None),
        (JobFacts(), "a", "", "a"),
        (JobFacts(incarnations=frozenset({"a"})), "a", "", None),
        (JobFacts(incarnations=frozenset({"a"})), "b", "", "b"),
    ],
)
def test_what_is_kept(facts, claimed, recorded, kept):
    assert derive_incarnation(facts, claimed=claimed, recorded=recorded) == kept


def test_generations_go_on_after_those_that_checkpoints_know_of():
    assert derive_next_generation(JobFacts()) == 1
    assert derive_next_generation(FACTS) == 2
    assert derive_next_generation(FACTS, CheckpointMetadata(generation=5)) == 6


def state_id(incarnation, url="dict://", job="job"):
    task = TaskInfo(job_id=job, operator_id="op", operator_name="t.op", task_index=0, parallelism=1)
    storage = StorageProvider(url, driver=DictDriver())
    return TableManager.open(
        task_info=task, tables={}, storage=storage, checkpoint=None, incarnation=incarnation
    ).state_id


def test_the_state_id_follows_from_the_incarnation():
    assert state_id("a1") == state_id("a1")
    assert len({state_id("a1"), state_id("b2"), state_id("a1", job="other"), state_id("")}) == 4


def test_an_epoch_of_before_is_committed_under_the_name_by_which_it_was_staged():
    assert state_id("") == "eb9a99634394"


def test_a_driver_that_was_replaced_cannot_commit(storage):
    old = driver(storage)
    publish(old, 1)
    old.check_commit(1)
    new = driver(storage)
    with pytest.raises(FencedError, match="epoch 1 cannot be committed by generation 1, because generation 2 owns"):
        old.check_commit(1)
    new.check_commit(1)


@pytest.mark.parametrize("act", ["publish", "commit", "turn"])
def test_a_driver_whose_state_was_removed_stops(storage, act):
    old = driver(storage)
    publish(old, 1)
    remove(storage, "job")
    acts = {
        "publish": lambda: publish(old, 2),
        "commit": lambda: old.check_commit(1),
        "turn": lambda: old.check_turn(2),
    }
    with pytest.raises(FencedError, match=r"claim of this driver \(generation 1\) is gone: dict:/job was removed"):
        acts[act]()
    assert ParquetBackend(storage, "job").list_epochs() == []


def test_a_driver_whose_state_was_removed_does_not_meddle_with_the_job_that_began_again(storage):
    """Both have generation 1, so that the numbers alone do not tell them apart."""
    old = driver(storage)
    publish(old, 1)
    remove(storage, "job")
    new = driver(storage)
    assert new.generation == old.generation
    with pytest.raises(FencedError, match="generation 1 is another driver's now"):
        publish(old, 2)
    with pytest.raises(FencedError, match="removed, and the job started again, while this driver ran; it must stop"):
        old.check_commit(1)
    publish(new, 1)
    new.check_commit(1)
    assert new.list_epochs() == [1]


def test_claims_of_before_have_no_incarnation(storage):
    claim = GenerationClaim(generation=3, owner_id=b"x")
    storage.write(paths.generation_claim("job", 3), seal(claim))
    first = driver(storage)
    assert (first.generation, claim_of(storage, 4).incarnation) == (4, first.incarnation)
    assert first.incarnation
