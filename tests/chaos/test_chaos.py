"""Whatever is killed or paused, and whenever: the output and the state are as if nothing had happened."""

from __future__ import annotations

import os
import random

import pytest

from ..integration.servers import standalone_cluster
from ..integration.tally import Tally
from .kills import epochs_for, plan_kills
from .pauses import CLUSTER_TIMEOUTS, EPOCH_TIMEOUT, TIMEOUTS, plan_pauses
from .rampage import Rampage

KILLS = int(os.environ.get("CHAOS_KILLS") or 15)
PAUSES = int(os.environ.get("CHAOS_PAUSES") or 4)
#: The same in CI every time: whether a commit lands must not depend on chance.
SEED = int(
    os.environ.get("CHAOS_SEED") or (777_687 if os.environ.get("CI") else random.SystemRandom().randrange(1_000_000))
)
#: How epochs run, and which share of the blows each gets: all of them where one is asked for, else live a third.
EXECUTION = os.environ.get("CHAOS_EXECUTION") or ""
SHARES = {EXECUTION: 1} if EXECUTION else {"jobs": 1, "live": 3}
REPEAT = (
    f"seed {SEED}, {KILLS} kills, {PAUSES} pauses; repeat with: make chaos-processes "
    f"KILLS={KILLS} PAUSES={PAUSES} SEED={SEED}{EXECUTION and f' EXECUTION={EXECUTION}'}"
)

#: Two drivers at once have room for their executors: each takes half of the cluster.
SETTINGS = {"spark.cores.max": "2", "spark.executor.cores": "1", "spark.executor.memory": "512m"}
#: Where nothing is paused, no timeout needs to be short: on a very busy machine they would be what fails.
PATIENT = "2m"


@pytest.fixture
def show(request):
    """Prints a line on the terminal, also where pytest keeps what tests print."""
    return request.config.pluginmanager.getplugin("terminalreporter").write_line


@pytest.mark.parametrize(("execution", "share"), SHARES.items())
@pytest.mark.timeout(600 + 60 * (KILLS + PAUSES))
def test_a_job_whose_processes_are_killed_and_paused_at_random_is_exact(tmp_path, show, execution, share):
    show(f"\nchaos, {execution}: {REPEAT}")
    kills, pauses = KILLS // share, PAUSES // share
    epochs = epochs_for(kills, pauses)
    job = Tally.of_epochs(epochs, has_latest=True, timeout=EPOCH_TIMEOUT if pauses else PATIENT)
    settings = SETTINGS | (TIMEOUTS if pauses else {})
    blows = sorted(
        [*plan_kills(SEED, kills, epochs, pauses), *plan_pauses(SEED, pauses, epochs)],
        key=lambda blow: blow.after_epoch,
    )
    try:
        with standalone_cluster(tmp_path, cores=2, settings=CLUSTER_TIMEOUTS if pauses else {}) as cluster:
            outcome = Rampage(cluster, job.write(tmp_path / "job"), settings, execution=execution).run(blows)
        exact = job.assert_exact(tmp_path / "job", tmp_path / "expected")
    except BaseException as error:
        error.add_note(f"chaos: {REPEAT}")
        raise
    show(f"chaos, {execution}: seed {SEED}: {outcome}; {exact}")
    assert outcome.kills.total() == kills
    assert outcome.pauses.total() == pauses
