"""Every kind of table against its model, over a store in memory; the same on S3 is an integration test."""

from __future__ import annotations

import os
import uuid

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from arroyo_core.api import hashing
from arroyo_core.state import StorageProvider, WarmCache, cache, expiring_time_key_map, rows

from .support.small_arrow import SMALL_COMPACTION, shrink_arrow
from .support.state_machines import MACHINES

#: Its properties are not functions of examples, for which Hypothesis would do this.
pytestmark = pytest.mark.hypothesis

#: Raise it for a long hunt: `STATE_MACHINE_EXAMPLES=2000 pytest tests/unit/state/test_table_machines.py`.
EXAMPLES = int(os.environ.get("STATE_MACHINE_EXAMPLES", "20"))
SETTINGS = settings(
    max_examples=EXAMPLES,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    report_multiple_bugs=False,
)


#: Leaves two hashes, each of half of the keys.
HALVES = np.uint64(1 << 63)


def memory_storage():
    return StorageProvider(f"memory://{uuid.uuid4().hex}")


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.__name__)
def test_a_table_behaves_like_its_model(machine, monkeypatch):
    monkeypatch.setattr(machine, "make_storage", staticmethod(memory_storage), raising=False)
    run_state_machine_as_test(machine, settings=SETTINGS)


@pytest.mark.parametrize("lives_on", [False, True], ids=["made again", "living on"])
@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.__name__)
def test_a_table_behaves_like_its_model_with_a_warm_cache(machine, lives_on, monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "lives_on", lives_on)
    # Memory would answer for all these small tables; half of the point is the mapped files.
    monkeypatch.setattr(cache, "SMALL_BYTES", 600)
    monkeypatch.setattr(machine, "cache", WarmCache(tmp_path / "cache", max_bytes=200_000))
    monkeypatch.setattr(machine, "make_storage", staticmethod(memory_storage), raising=False)
    run_state_machine_as_test(machine, settings=settings(SETTINGS, max_examples=max(1, EXAMPLES // 2)))


@pytest.mark.parametrize("machine", MACHINES[1:], ids=lambda machine: machine.__name__)
def test_a_change_that_takes_several_files_behaves_like_its_model(machine, monkeypatch):
    monkeypatch.setattr(expiring_time_key_map, "PART_BYTES", 100)
    monkeypatch.setattr(machine, "make_storage", staticmethod(memory_storage), raising=False)
    run_state_machine_as_test(machine, settings=settings(SETTINGS, max_examples=max(1, EXAMPLES // 2)))


@pytest.mark.parametrize("has_hot_hash", [False, True], ids=["hashes", "one hot hash"])
@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.__name__)
def test_a_table_larger_than_arrow_can_hold_in_one_piece_behaves_like_its_model(
    machine, has_hot_hash, monkeypatch, tmp_path
):
    shrink_arrow(monkeypatch)
    if has_hot_hash:
        monkeypatch.setattr(rows, "hash_batch", lambda batch, keys: hashing.hash_batch(batch, keys) & HALVES)
    monkeypatch.setattr(cache, "SMALL_BYTES", 600)
    monkeypatch.setattr(machine, "cache", WarmCache(tmp_path / "cache", max_bytes=200_000))
    monkeypatch.setattr(machine, "compaction", SMALL_COMPACTION)
    monkeypatch.setattr(machine, "make_storage", staticmethod(memory_storage), raising=False)
    run_state_machine_as_test(machine, settings=settings(SETTINGS, max_examples=max(1, EXAMPLES // 2)))


@pytest.mark.parametrize("machine", MACHINES[1:], ids=lambda machine: machine.__name__)
def test_keys_that_share_a_hash_stay_apart(machine, monkeypatch):
    def coarse(batch, keys):
        return hashing.hash_batch(batch, keys) & np.uint64(0xC000_0000_0000_0000)

    monkeypatch.setattr(rows, "hash_batch", coarse)
    monkeypatch.setattr(machine, "make_storage", staticmethod(memory_storage), raising=False)
    run_state_machine_as_test(machine, settings=settings(SETTINGS, max_examples=max(1, EXAMPLES // 2)))
