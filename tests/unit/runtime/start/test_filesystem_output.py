"""Files of `filesystem.sink` when a job goes back, begins again, or is forked: none is torn, none is lost."""

import shutil
from collections import Counter
from contextlib import closing

import pyarrow.parquet as pq
import pytest
from arroyo_testing.lanes import InlineLanes

from arroyo_core.pipeline import plan_text
from arroyo_core.plugin import installed_plugins
from arroyo_core.runtime.events import Committed, EpochAccepted, Published
from arroyo_core.runtime.job import Job
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.start import StartOptions
from arroyo_core.state import ownership
from arroyo_core.state.fork import ForkSource

PIPELINE = """\
name: {name}
checkpoint: {{interval: 1h, rows: 1000}}
nodes:
  - {{id: numbers, operator: impulse.source, config: {{count: 5000}}}}
  - {{id: out, operator: filesystem.sink, inputs: [numbers], config: {{path: "{out}"}}}}
"""


class Files:
    def __init__(self, folder):
        self.folder = folder
        self.out = folder / "out"

    def job(self, options=None, *, name="files", state="state"):
        plugins = installed_plugins()
        plan = plan_text(PIPELINE.format(name=name, out=self.out), plugins=plugins, environment={})
        return Job(
            plan,
            LocalExecutor(plugins),
            plugins=plugins,
            storage_url=str(self.folder / state),
            lanes=InlineLanes(),
            start=options,
        )

    def kill(self, kind, epoch, options=None):
        with closing(self.job(options)) as job:
            job.begin()
            go_on_until(job, kind, epoch)

    def swap_disks(self):
        """Go to the other machine: what was below `state` is out of sight there."""
        other, state, between = self.folder / "other", self.folder / "state", self.folder / "between"
        other.mkdir(exist_ok=True)
        state.rename(between)
        other.rename(state)
        between.rename(other)

    def numbers(self):
        """How often each number is in a file that a reader would see."""
        found = Counter()
        for path in self.out.rglob("*.parquet"):
            if "_arroyo_staging" not in path.parts:
                found.update(pq.read_table(path, partitioning=None).column("counter").to_pylist())
        return found

    def staged(self):
        return [path for path in self.out.rglob("*") if "_arroyo_staging" in path.parts and path.is_file()]


def go_on_until(job, kind, epoch):
    while True:
        event = job.step()
        if isinstance(event, kind) and event.epoch == epoch:
            return


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


def test_two_deployments_with_equal_paths_of_state_share_a_folder(files):
    """Each has a disk of its own, on which its state has the same path; the folder of the sink is one for both."""
    with closing(files.job()) as one:
        one.begin()
        go_on_until(one, Published, 1)
        assert files.staged()
        files.swap_disks()
        # Counts the same epochs, and sweeps what it knows as its own.
        assert files.job().run().is_finished
        files.swap_disks()
        while not one.is_ended:
            one.step()
    assert files.numbers() == Counter(dict.fromkeys(range(5000), 2))
    assert files.staged() == []


@pytest.mark.parametrize("removed", ["state/files", "state/files/checkpoints"])
def test_a_job_whose_state_was_removed_writes_all_rows_again(files, removed):
    files.job().run()
    shutil.rmtree(files.folder / removed)
    assert files.job().run().source_rows == 5000
    assert files.numbers() == Counter(dict.fromkeys(range(5000), 2))


def test_what_drivers_staged_that_died_before_the_first_checkpoint_is_swept(files):
    for _ in range(3):
        files.kill(EpochAccepted, 1)
    assert len(files.staged()) == 3
    files.job().run()
    assert files.numbers() == Counter(range(5000))
    assert files.staged() == []


def test_what_was_staged_before_there_were_incarnations_is_committed_and_swept(files, monkeypatch):
    with monkeypatch.context() as before:
        before.setattr(ownership, "_INCARNATION_BYTES", 0)
        files.kill(EpochAccepted, 2)
        files.kill(Published, 2)
    (marker,) = files.folder.rglob("*.incarnation")
    marker.unlink()
    assert files.staged()
    files.job().run()
    assert files.numbers() == Counter(range(5000))
    assert files.staged() == []


def test_an_epoch_that_was_staged_and_given_up_never_becomes_visible(files):
    files.kill(Published, 3)
    assert len(files.numbers()) < 3000
    assert files.staged()
    files.job(StartOptions(from_epoch=2)).run()
    assert files.numbers() == Counter(range(5000))
    assert files.staged() == []


def test_going_back_repeats_exactly_what_came_after_the_epoch(files):
    files.kill(Committed, 2)
    before = files.numbers()
    files.kill(Committed, 3)
    twice = files.numbers() - before
    files.job(StartOptions(from_epoch=2)).run()
    assert files.numbers() == Counter(range(5000)) + twice
    assert twice


def test_a_fresh_start_repeats_everything(files):
    files.kill(Committed, 2)
    before = files.numbers()
    files.job(StartOptions(is_fresh=True, is_forced=True)).run()
    assert files.numbers() == Counter(range(5000)) + before


@pytest.mark.parametrize(("name", "state"), [("copy", "state"), ("files", "elsewhere")])
def test_a_fork_into_the_same_folder_neither_commits_nor_sweeps_what_the_other_job_staged(files, name, state):
    files.kill(Published, 3)
    staged = files.staged()
    before = files.numbers()
    fork = StartOptions(fork_from=ForkSource(url=str(files.folder / "state"), job_id="files"))
    files.job(fork, name=name, state=state).run()
    assert files.numbers() == Counter(range(5000))
    assert files.staged() == staged
    files.job().run()
    assert files.numbers() == Counter(range(5000)) + (Counter(range(5000)) - before)
