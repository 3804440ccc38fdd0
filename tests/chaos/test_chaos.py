"""Whatever is killed, and whenever: the output and the state are as if nothing had happened."""

from __future__ import annotations

import os
import random

import pytest

from ..integration.servers import standalone_cluster
from ..integration.tally import Tally
from .kills import epochs_for, plan_kills
from .rampage import Rampage

KILLS = int(os.environ.get("CHAOS_KILLS") or 25)
SEED = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(1_000_000))
REPEAT = f"seed {SEED}, {KILLS} kills; repeat with: make chaos KILLS={KILLS} SEED={SEED}"


@pytest.fixture
def show(request):
    """Prints a line on the terminal, also where pytest keeps what tests print."""
    return request.config.pluginmanager.getplugin("terminalreporter").write_line


@pytest.mark.timeout(600 + 60 * KILLS)
def test_a_job_whose_processes_are_killed_at_random_is_exact(tmp_path, show):
    show(f"\nchaos: {REPEAT}")
    job = Tally.of_epochs(epochs_for(KILLS))
    try:
        with standalone_cluster(tmp_path) as cluster:
            outcome = Rampage(cluster, job.write(tmp_path / "job")).run(plan_kills(SEED, KILLS, epochs_for(KILLS)))
        exact = job.assert_exact(tmp_path / "job", tmp_path / "expected")
    except BaseException as error:
        error.add_note(f"chaos: {REPEAT}")
        raise
    show(f"chaos: seed {SEED}: {outcome}; {exact}")
    assert outcome.kills.total() == KILLS
