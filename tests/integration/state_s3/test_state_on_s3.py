"""State on S3: the behaviour of the store, tables against their models, and a whole life with rescales."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from ...unit.state.support.state_life import Life, contents, expected_at
from ...unit.state.support.state_machines import MACHINES
from ...unit.state.support.storage_behaviour import BEHAVIOURS

EXAMPLES = int(os.environ.get("STATE_MACHINE_EXAMPLES", "3"))


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda behaviour: behaviour.__name__)
def test_s3_behaves_like_every_store(behaviour, make_s3_storage):
    behaviour(make_s3_storage())


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.__name__)
def test_a_table_on_s3_behaves_like_its_model(machine, make_s3_storage, monkeypatch):
    monkeypatch.setattr(machine, "make_storage", staticmethod(make_s3_storage), raising=False)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


@pytest.mark.parametrize("key", ["", "k" * 32], ids=["without a key", "sealed"])
def test_a_job_lives_on_s3_with_rescales_compaction_and_cleanup(make_s3_storage, monkeypatch, key):
    monkeypatch.setenv("ARROYO_SEAL_KEY", key)
    life = Life(make_s3_storage())
    life.run(12)
    checkpoint = life.job.backend.resolve_latest().checkpoint
    assert contents(life.job.open_at(checkpoint, 2), 12) == expected_at(12)
