"""Going back to an epoch, and forking from a job, in live workers: operators that live on begin from that state."""

from contextlib import closing

import pytest
from arroyo_testing.live import live_executor

from arroyo_core.runtime.events import Committed
from arroyo_core.runtime.start import StartOptions
from arroyo_core.state.fork import ForkSource

from .conftest import node

NODES = [
    node("rows", "rows", count=24, lives_on=True),
    node("passed", "passing", "rows", keys=["key"], lives_on=True),
    node("totals", "totals", "passed"),
    node("sums", "sink", "totals"),
    node("copies", "sink", "passed"),
]


@pytest.fixture
def live(runs):
    """Runs a job in workers of its own."""

    def run(options=None, **facts):
        with closing(live_executor(runs.lab.plugins)) as executor:
            return runs.run(options, executor=executor, nodes=NODES, **facts)

    return run


@pytest.fixture
def killed_live(runs):
    """Runs a job in workers of its own until an epoch is committed, which have begun the next one."""

    def kill(epoch, options=None, **facts):
        with closing(live_executor(runs.lab.plugins)) as executor:
            return runs.kill(Committed, epoch, options, executor=executor, nodes=NODES, **facts)

    return kill


@pytest.fixture
def killed_as_jobs(runs):
    return lambda epoch, options=None, **facts: runs.kill(Committed, epoch, options, nodes=NODES, **facts)


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_from_an_epoch_what_came_after_it_comes_again(runs, live, parallelism):
    first = live(parallelism=parallelism)
    latest = first.epochs[-1]
    again = live(StartOptions(from_epoch=2), parallelism=2)
    assert again.epochs[0] == latest + 1
    assert again.numbers == runs.numbers - first.up_to(2).numbers
    assert again.has_exact_sums
    assert runs.checkpoint(latest + 1).parent_epoch == 2


@pytest.mark.parametrize("before", ["killed_live", "killed_as_jobs"])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_fork_goes_on_after_the_other_jobs_checkpoint_and_leaves_it_alone(runs, live, request, before, parallelism):
    other = request.getfixturevalue(before)(2, parallelism=2)
    forked = live(
        StartOptions(fork_from=ForkSource.parse(runs.lab.folder + "#lab")), name="copy", parallelism=parallelism
    )
    assert forked.epochs[0] == 3
    assert (other + forked).is_exact
    assert (other + live()).is_exact


def test_a_fork_of_live_workers_goes_on_as_jobs(runs, killed_live):
    other = killed_live(2)
    fork = StartOptions(fork_from=ForkSource.parse(runs.lab.folder + "#lab"))
    assert (other + killed_live(3, fork, name="copy") + runs.run(name="copy", nodes=NODES)).is_exact
