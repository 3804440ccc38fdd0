"""How a job starts: from its latest checkpoint, from an older one, or fresh; run in process, the output checked."""

from collections import Counter

import pytest

from arroyo_core.errors import Domain, ExternalError, error_domain
from arroyo_core.proto.state_pb2 import CheckpointMetadata
from arroyo_core.runtime.events import Committed, EpochAccepted, Published
from arroyo_core.runtime.job import Job
from arroyo_core.runtime.lanes import InlineLanes
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.start import StartError, StartOptions, check_start, resolve_start
from arroyo_core.state import ParquetBackend, get_storage_provider, paths
from arroyo_core.state.failures import DamagedStateError
from arroyo_core.state.fork import ForkSource

COUNT = 24
EVERY = {"checkpoint": {"interval": "1h", "rows": 4}}


def line(source=None, **nodes):
    """A source, a total by key and the rows themselves, each into a sink of its own."""
    return [
        {"id": "rows", "operator": "test.rows", "config": {"count": COUNT, **(source or {})}},
        {"id": "totals", "operator": "test.totals", "inputs": ["rows"]},
        {"id": "sums", "operator": "test.sink", "inputs": ["totals"]},
        {"id": "copies", "operator": "test.sink", "inputs": ["rows"]},
    ]


SUMS = {key: sum(n for n in range(COUNT) if n % 5 == key) for key in range(5)}


class Runs:
    """Jobs over one pipeline after the other, with what their sinks committed."""

    def __init__(self, lab):
        self.lab = lab

    def job(self, options=None, *, nodes=None, name="lab", executor=None, **settings):
        return Job(
            self.lab.plan(nodes or line(), name=name, **{**EVERY, **settings}),
            executor or LocalExecutor(self.lab.plugins),
            plugins=self.lab.plugins,
            storage_url=self.lab.folder,
            lanes=InlineLanes(),
            start=options,
        )

    def run(self, options=None, **facts):
        """Run to the end; returns what was committed meanwhile, by epoch."""
        before = len(self.lab.trace.committed)
        self.job(options, **facts).run()
        return self.lab.trace.committed[before:]

    def kill(self, kind, epoch, options=None, **facts):
        """Run until this event, and go no further, as if the driver had been killed."""
        before = len(self.lab.trace.committed)
        self.lab.run_until(self.job(options, **facts), kind, epoch)
        return self.lab.trace.committed[before:]

    def backend(self, name="lab", *, claim=False):
        backend = ParquetBackend(get_storage_provider(self.lab.folder), name)
        if claim:
            backend.claim_generation()
        return backend

    def checkpoint(self, epoch, name="lab") -> CheckpointMetadata:
        return self.backend(name).load_checkpoint_metadata(name, epoch)

    def check(self, options=None, *, nodes=None):
        plan = self.lab.plan(nodes or line(), **EVERY)
        return check_start(self.backend(), plan, self.lab.plugins, options or StartOptions())


@pytest.fixture
def runs(lab):
    return Runs(lab)


def is_sum(row):
    return row["at"].startswith("1970-01-01T00:00:00+") and row["n"] == SUMS[row["key"]]


def numbers(committed):
    """How often each number of the source was committed, and the totals at the end."""
    rows = [row for _, part in committed for row in part]
    sums = Counter((row["key"], row["n"]) for row in rows if is_sum(row))
    return Counter(row["n"] for row in rows if not is_sum(row)), sums


def epochs_of(committed):
    return sorted({epoch for epoch, _ in committed})


ALL_SUMS = Counter(dict.fromkeys(SUMS.items(), 1))


def test_a_job_without_checkpoints_begins_with_epoch_1(runs):
    start = runs.check()
    assert (start.checkpoint, start.next_epoch, start.parent_epoch, start.needs_commit) == (None, 1, 0, False)


def test_a_job_goes_on_after_its_latest_checkpoint(runs):
    committed = runs.kill(Committed, 3)
    start = runs.check()
    assert (start.parent_epoch, start.next_epoch, start.needs_commit, start.warnings) == (3, 4, False, ())
    committed += runs.run()
    assert numbers(committed) == (Counter(range(COUNT)), ALL_SUMS)
    assert [runs.checkpoint(epoch).parent_epoch for epoch in runs.backend().list_epochs()][:5] == [0, 1, 2, 3, 4]


def test_a_commit_that_was_broken_off_is_replayed(runs):
    committed = runs.kill(Published, 3)
    assert runs.check().needs_commit
    committed += runs.run()
    assert numbers(committed) == (Counter(range(COUNT)), ALL_SUMS)


def test_from_an_epoch_what_came_after_it_comes_again_under_new_numbers(runs):
    first = runs.run()
    latest = epochs_of(first)[-1]
    start = runs.check(StartOptions(from_epoch=2))
    assert (start.parent_epoch, start.next_epoch, start.needs_commit) == (2, latest + 1, False)
    assert start.warnings == (
        f"going back to epoch 2: what sinks committed in epochs 3 to {latest} stays, and the same rows are "
        "written again",
    )

    again = runs.run(StartOptions(from_epoch=2))
    assert epochs_of(again)[0] == latest + 1
    seen, _ = numbers([part for part in first if part[0] <= 2])
    assert numbers(again) == (Counter(range(COUNT)) - seen, ALL_SUMS)
    assert runs.checkpoint(latest + 1).parent_epoch == 2
    assert runs.checkpoint(latest + 2).parent_epoch == latest + 1


def test_a_start_without_flags_follows_the_epochs_after_going_back(runs):
    first = runs.run()
    latest = epochs_of(first)[-1]
    runs.kill(Committed, latest + 1, StartOptions(from_epoch=2))
    assert runs.check().parent_epoch == latest + 1


def test_a_driver_that_dies_before_it_publishes_has_not_gone_back(runs):
    first = runs.run()
    latest = epochs_of(first)[-1]
    runs.kill(EpochAccepted, latest + 1, StartOptions(from_epoch=2))
    assert runs.check().parent_epoch == latest
    assert runs.run() == []


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
    assert numbers(committed) == (Counter(range(COUNT)), ALL_SUMS)


def test_going_back_gives_up_an_epoch_that_was_never_committed(runs):
    committed = runs.kill(Published, 3)
    assert epochs_of(committed) == [1, 2]
    start = runs.check(StartOptions(from_epoch=2))
    assert "epoch 3 was published and not yet committed: what it staged is given up" in start.warnings[1]
    committed += runs.run(StartOptions(from_epoch=2))
    assert 3 not in epochs_of(committed)
    # Nothing of epoch 3 was visible, so nothing comes twice.
    assert numbers(committed) == (Counter(range(COUNT)), ALL_SUMS)


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
    assert epochs_of(committed)[0] == 4
    assert numbers(committed)[1] == ALL_SUMS


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
    latest = epochs_of(first)[-1]
    again = runs.run(options, executor=Failing(runs.lab.plugins, latest + failing))
    seen = numbers([part for part in first if part[0] <= 2])[0] if options.from_epoch else Counter()
    assert numbers(again) == (Counter(range(COUNT)) - seen, ALL_SUMS)


def test_fresh_is_fine_for_a_job_without_checkpoints(runs):
    assert numbers(runs.run(StartOptions(is_fresh=True))) == (Counter(range(COUNT)), ALL_SUMS)


def test_fresh_refuses_a_job_with_checkpoints_and_says_which(runs):
    runs.kill(Committed, 2)
    with pytest.raises(StartError, match=r"has 2 checkpoints, the newest is epoch 2 of 20\d\d-.*add --force") as caught:
        runs.run(StartOptions(is_fresh=True))
    assert error_domain(caught.value) is Domain.USER
    assert runs.check().parent_epoch == 2


def test_fresh_by_force_begins_anew_under_new_numbers(runs):
    runs.kill(Committed, 2)
    start = runs.check(StartOptions(is_fresh=True, is_forced=True))
    assert (start.checkpoint, start.next_epoch) == (None, 3)
    assert start.warnings[0].startswith("going back to the beginning: what sinks committed in epochs 1 to 2 stays")
    committed = runs.run(StartOptions(is_fresh=True, is_forced=True))
    assert epochs_of(committed)[0] == 3
    assert numbers(committed) == (Counter(range(COUNT)), ALL_SUMS)
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
    plan = runs.lab.plan(line(), **EVERY)
    assert resolve_start(runs.backend(claim=True), plan, runs.lab.plugins, options) == checked
