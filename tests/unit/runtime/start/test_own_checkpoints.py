"""A job starts from its own checkpoints: the latest, an older one, or none."""

import pytest

from arroyo_core.errors import Domain, ExternalError, error_domain
from arroyo_core.runtime.events import Committed, EpochAccepted, Published
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.start import StartError, StartOptions, resolve_start
from arroyo_core.state import paths
from arroyo_core.state.failures import DamagedStateError
from arroyo_core.state.fork import ForkSource


def test_a_job_without_checkpoints_begins_with_epoch_1(runs):
    start = runs.check()
    assert (start.checkpoint, start.next_epoch, start.parent_epoch, start.needs_commit) == (None, 1, 0, False)


def test_a_job_goes_on_after_its_latest_checkpoint(runs):
    committed = runs.kill(Committed, 3)
    start = runs.check()
    assert (start.parent_epoch, start.next_epoch, start.needs_commit, start.warnings) == (3, 4, False, ())
    committed += runs.run()
    assert committed.is_exact
    assert [runs.checkpoint(epoch).parent_epoch for epoch in (1, 2, 3, 4)] == [0, 1, 2, 3]


def test_a_commit_that_was_broken_off_is_replayed(runs):
    committed = runs.kill(Published, 3)
    assert runs.check().needs_commit
    committed += runs.run()
    assert committed.is_exact


def test_from_an_epoch_what_came_after_it_comes_again_under_new_numbers(runs):
    first = runs.run()
    latest = first.epochs[-1]
    start = runs.check(StartOptions(from_epoch=2))
    assert (start.parent_epoch, start.next_epoch, start.needs_commit) == (2, latest + 1, False)
    assert start.warnings == (
        f"going back to epoch 2: what sinks committed in epochs 3 to {latest} stays, and the same rows are "
        "written again",
    )

    again = runs.run(StartOptions(from_epoch=2))
    assert again.epochs[0] == latest + 1
    assert again.numbers == runs.numbers - first.up_to(2).numbers
    assert again.has_exact_sums
    assert runs.checkpoint(latest + 1).parent_epoch == 2
    assert runs.checkpoint(latest + 2).parent_epoch == latest + 1


def test_a_start_without_flags_follows_the_epochs_after_going_back(runs):
    first = runs.run()
    latest = first.epochs[-1]
    runs.kill(Committed, latest + 1, StartOptions(from_epoch=2))
    assert runs.check().parent_epoch == latest + 1


def test_a_driver_that_dies_before_it_publishes_has_not_gone_back(runs):
    first = runs.run()
    latest = first.epochs[-1]
    runs.kill(EpochAccepted, latest + 1, StartOptions(from_epoch=2))
    assert runs.check().parent_epoch == latest
    assert runs.run().epochs == []


def test_an_epoch_that_is_not_there_is_an_error_with_the_kept_ones(runs):
    with pytest.raises(StartError, match=r"^job 'lab' has no checkpoint 1 \(it has no checkpoints\)$"):
        runs.run(StartOptions(from_epoch=1))
    runs.kill(Committed, 2)
    with pytest.raises(StartError, match=r"^job 'lab' has no checkpoint 9 \(kept epochs: 1, 2\)$") as caught:
        runs.check(StartOptions(from_epoch=9))
    assert error_domain(caught.value) is Domain.USER


def test_the_latest_epoch_by_its_number_is_the_same_as_no_number(runs):
    committed = runs.kill(Published, 3)
    start = runs.check(StartOptions(from_epoch=3))
    assert (start.needs_commit, start.next_epoch, start.warnings) == (True, 4, ())
    committed += runs.run(StartOptions(from_epoch=3))
    assert committed.is_exact


def test_going_back_gives_up_an_epoch_that_was_never_committed(runs):
    committed = runs.kill(Published, 3)
    assert committed.epochs == [1, 2]
    start = runs.check(StartOptions(from_epoch=2))
    assert "epoch 3 was published and not yet committed: what it staged is given up" in start.warnings[1]
    committed += runs.run(StartOptions(from_epoch=2))
    assert 3 not in committed.epochs
    # Nothing of epoch 3 was visible, so nothing comes twice.
    assert committed.is_exact


def test_an_epoch_that_was_given_up_cannot_be_restored_any_more(runs):
    runs.kill(Published, 3)
    runs.kill(Committed, 4, StartOptions(from_epoch=2))
    with pytest.raises(StartError, match=r"the output of epoch 3 was never committed.*\(kept epochs: 1, 2, 3, 4\)"):
        runs.check(StartOptions(from_epoch=3))


def test_going_back_leads_away_from_a_damaged_checkpoint(runs):
    runs.kill(Committed, 3)
    runs.backend().storage.write(paths.checkpoint_metadata("lab", 3), b"damaged")
    with pytest.raises(DamagedStateError, match="the newest checkpoint that is whole is epoch 2"):
        runs.check()
    committed = runs.run(StartOptions(from_epoch=2))
    assert committed.epochs[0] == 4
    assert committed.has_exact_sums


def test_a_damaged_epoch_to_go_back_to_is_an_error(runs):
    runs.kill(Committed, 3)
    runs.backend().storage.write(paths.checkpoint_metadata("lab", 2), b"damaged")
    with pytest.raises(DamagedStateError):
        runs.check(StartOptions(from_epoch=2))


class Failing(LocalExecutor):
    """Fails once, before this epoch."""

    def __init__(self, plugins, epoch):
        super().__init__(plugins)
        self.epoch = epoch

    def run_epoch(self, plan, request):
        if request.epoch == self.epoch:
            self.epoch = 0
            raise ExternalError("the network is down")
        return super().run_epoch(plan, request)


@pytest.mark.parametrize("options", [StartOptions(from_epoch=2), StartOptions(is_fresh=True, is_forced=True)])
@pytest.mark.parametrize("failing", [1, 2, 3])
def test_a_job_that_restarts_by_itself_goes_back_only_once(runs, options, failing):
    first = runs.run()
    latest = first.epochs[-1]
    again = runs.run(options, executor=Failing(runs.lab.plugins, latest + failing))
    assert again.numbers == runs.numbers - first.up_to(options.from_epoch or 0).numbers
    assert again.has_exact_sums


def test_fresh_is_fine_for_a_job_without_checkpoints(runs):
    assert runs.run(StartOptions(is_fresh=True)).is_exact


def test_fresh_refuses_a_job_with_checkpoints_and_says_which(runs):
    runs.kill(Committed, 2)
    with pytest.raises(StartError, match=r"has 2 checkpoints, the newest is epoch 2 of 20\d\d-.*add --force") as caught:
        runs.run(StartOptions(is_fresh=True))
    assert error_domain(caught.value) is Domain.USER
    assert runs.check().parent_epoch == 2


def test_fresh_by_force_starts_over_under_new_numbers(runs):
    runs.kill(Committed, 2)
    start = runs.check(StartOptions(is_fresh=True, is_forced=True))
    assert (start.checkpoint, start.next_epoch) == (None, 3)
    assert start.warnings[0].startswith("going back to the beginning: what sinks committed in epochs 1 to 2 stays")
    committed = runs.run(StartOptions(is_fresh=True, is_forced=True))
    assert committed.epochs[0] == 3
    assert committed.is_exact
    assert runs.checkpoint(3).parent_epoch == 0


def test_old_checkpoints_go_by_the_usual_collection_after_a_fresh_start(runs):
    runs.kill(Committed, 2)
    settings = {"checkpoint": {"interval": "1h", "rows": 4, "keep": 2}}
    runs.run(StartOptions(is_fresh=True, is_forced=True), **settings)
    assert min(runs.backend().list_epochs()) > 2
    assert not [file.path for file in runs.backend().storage.list("lab") if paths.epoch_of("lab", file.path) in (1, 2)]


@pytest.mark.parametrize(
    "options",
    [
        {"from_epoch": 1, "is_fresh": True},
        {"from_epoch": 1, "fork_from": ForkSource(url="/x")},
        {"is_fresh": True, "fork_from": ForkSource(url="/x")},
        {"is_forced": True},
        {"from_epoch": 0},
    ],
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(StartError):
        StartOptions(**options)


@pytest.mark.parametrize(
    "options",
    [StartOptions(), StartOptions(from_epoch=1), StartOptions(is_fresh=True, is_forced=True)],
)
def test_checking_a_start_writes_nothing(runs, options):
    runs.kill(Published, 2)
    storage = runs.backend().storage
    before = [(file.path, storage.read(file.path)) for file in storage.list_root()]
    checked = runs.check(options)
    assert [(file.path, storage.read(file.path)) for file in storage.list_root()] == before
    plan = runs.plan()
    assert resolve_start(runs.backend(is_claimed=True), plan, runs.lab.plugins, options) == checked
