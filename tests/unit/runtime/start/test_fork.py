"""A job starts as a fork of another: it takes over state, not output, and needs the other no more."""

import shutil

import pytest

from arroyo_core.errors import Domain, error_domain
from arroyo_core.runtime import start as start_module
from arroyo_core.runtime.events import Committed, Published
from arroyo_core.runtime.start import StartError, StartOptions, resolve_start
from arroyo_core.state import FencedError, StorageProvider, commit_data, paths
from arroyo_core.state.failures import DamagedStateError, ForkError, MissingFileError
from arroyo_core.state.fork import ForkSource, forked_from
from arroyo_core.state.protocol import referenced_paths


@pytest.fixture
def fork(runs):
    """Options that fork from the job `lab`."""
    return lambda text="#lab", **facts: StartOptions(fork_from=ForkSource.parse(runs.lab.folder + text), **facts)


def test_a_fork_goes_on_after_the_other_jobs_checkpoint_and_leaves_it_alone(runs, fork):
    other = runs.kill(Committed, 2)
    forked = runs.run(fork(), name="copy")
    assert forked.epochs[0] == 3
    assert (other + forked).is_exact
    assert (other + runs.run()).is_exact


def test_a_fork_needs_nothing_of_the_other_job_any_more(runs, fork, tmp_path):
    other = runs.kill(Committed, 2)
    forked = runs.kill(Committed, 3, fork(), name="copy")
    shutil.rmtree(tmp_path / "lab")
    assert (other + forked + runs.run(name="copy")).is_exact


def test_a_fork_may_be_in_another_store_under_the_same_name(runs, fork, tmp_path):
    other = runs.kill(Committed, 2)
    url = (tmp_path / "elsewhere").as_uri()
    assert (other + runs.run(fork(""), url=url)).is_exact
    assert all(path.startswith("lab/") for path in referenced_paths(runs.checkpoint(2, url=url)))


def test_the_forked_checkpoint_is_the_new_jobs_own(runs, fork):
    runs.kill(Committed, 2)
    runs.kill(Committed, 3, fork(), name="copy")
    found = runs.checkpoint(2, "copy")
    assert (found.job_id, found.epoch, found.parent_epoch, found.generation) == ("copy", 2, 0, 1)
    assert not found.needs_commit
    assert not any(data for operator in found.operators for data in commit_data(operator).values())
    assert any(data for operator in runs.checkpoint(2).operators for data in commit_data(operator).values())
    assert {operator.operator_metadata.job_id for operator in found.operators} == {"copy"}
    assert all(paths.check_reference("copy", path) for path in referenced_paths(found))
    assert found.attempt_id != runs.checkpoint(2).attempt_id
    assert found.incarnation == runs.checkpoint(3, "copy").incarnation
    assert found.incarnation not in {"", runs.checkpoint(2).incarnation}


def test_every_later_checkpoint_says_where_the_job_came_from(runs, fork):
    runs.kill(Committed, 2)
    runs.run(fork(), name="copy")
    for epoch in runs.backend("copy").list_epochs():
        origin = forked_from(runs.checkpoint(epoch, "copy"))
        assert (origin.url, origin.job, origin.epoch) == (runs.lab.folder, "lab", 2)


def test_output_that_the_other_job_has_not_committed_is_not_taken_over(runs, fork):
    other = runs.kill(Published, 3)
    forked = runs.run(fork(), name="copy")
    assert forked_from(runs.checkpoint(2, "copy")).epoch == 2
    # What epoch 3 staged is the other job's to commit; the fork reads those rows itself.
    assert (other + forked).is_exact
    with pytest.raises(ForkError, match=r"does not have epoch 3 committed yet"):
        runs.check(fork("#lab@3"), name="third")


def test_a_job_of_which_nothing_is_committed_cannot_be_forked(runs, fork):
    runs.kill(Published, 1)
    with pytest.raises(ForkError, match="does not have a committed checkpoint yet") as caught:
        runs.run(fork(), name="copy")
    assert error_domain(caught.value) is Domain.USER


def test_a_named_epoch_is_taken(runs, fork):
    other = runs.run()
    forked = runs.run(fork("#lab@1"), name="copy")
    assert forked.numbers == runs.numbers - other.up_to(1).numbers
    assert forked.has_exact_sums
    assert forked.epochs[0] == 2


def test_what_is_not_there_is_an_error_that_says_what_is(runs, fork):
    runs.kill(Committed, 2)
    with pytest.raises(ForkError, match=r"job 'lba' has no checkpoint below .* \(jobs there: lab\)"):
        runs.check(fork("#lba"), name="copy")
    with pytest.raises(ForkError, match=r"job 'lab' has no checkpoint 7 \(kept epochs: 1, 2\)"):
        runs.check(fork("#lab@7"), name="copy")
    with pytest.raises(ForkError, match="job 'copy' has no checkpoint"):
        runs.check(fork(""), name="copy")


def test_the_same_command_goes_on_with_the_fork(runs, fork):
    other = runs.kill(Committed, 2)
    forked = runs.kill(Committed, 3, fork(), name="copy")
    start = runs.check(fork(), name="copy")
    assert start.warnings[0].startswith("forked already, from epoch 2 of job 'lab'")
    assert start.warnings[0].endswith("the job goes on from epoch 3")
    assert (other + forked + runs.run(fork(), name="copy")).is_exact


@pytest.mark.parametrize("text", ["#third", "#lab@1"])
def test_a_job_with_checkpoints_is_not_forked_from_anywhere_else(runs, fork, text):
    runs.kill(Committed, 2)
    runs.kill(Committed, 3, fork(), name="copy")
    with pytest.raises(StartError, match="has checkpoints of its own, and was forked from epoch 2 of job 'lab'"):
        runs.check(fork(text), name="copy")


def test_a_job_that_began_by_itself_is_not_forked(runs, fork):
    runs.kill(Committed, 2)
    runs.kill(Committed, 1, name="copy")
    with pytest.raises(StartError, match="has checkpoints of its own, and was not forked from there"):
        runs.check(fork(), name="copy")


def test_a_fresh_start_of_a_fork_is_no_fork_any_more(runs, fork):
    runs.kill(Committed, 2)
    runs.kill(Committed, 3, fork(), name="copy")
    runs.kill(Committed, 4, StartOptions(is_fresh=True, is_forced=True), name="copy")
    assert forked_from(runs.checkpoint(4, "copy")) is None


def test_the_password_of_a_url_is_neither_stored_nor_shown():
    source = ForkSource.parse("s3://key:hunter2@bucket/state?token=hunter2#lab@3")
    assert (source.job_id, source.epoch) == ("lab", 3)
    assert "hunter2" not in repr(source)
    with pytest.raises(ForkError) as caught:
        ForkSource.parse("s3://key:hunter2@bucket/state?token=hunter2#lab@0")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "#lab", "/x#", "/x#lab@", "/x#lab@0", "/x#lab@one", "/x#a b", "/x#@3"])
def test_what_names_no_checkpoint_is_refused(text):
    with pytest.raises(ForkError, match="write URL, URL#JOB or URL#JOB@EPOCH"):
        ForkSource.parse(text)


def test_checking_a_fork_writes_nothing(runs, fork):
    runs.kill(Committed, 2)
    storage = runs.backend().storage
    before = [file.path for file in storage.list_root()]
    start = runs.check(fork(), name="copy")
    assert start.next_epoch == 3
    assert start.warnings[0].startswith("forked from epoch 2 of job 'lab'")
    assert [file.path for file in storage.list_root()] == before


def test_a_fork_of_a_job_whose_data_ended_says_that_nothing_is_left(runs, fork):
    runs.run()
    assert "nothing left to run" in runs.check(fork(), name="copy").warnings[1]
    assert runs.run(fork(), name="copy").epochs == []


class Crashing(StorageProvider):
    """Dies at the call with this number."""

    def __init__(self, url, calls):
        super().__init__(url)
        self.calls = calls

    def _call(self, verb, path, call):
        if verb in ("write", "create"):
            if self.calls == 0:
                raise KeyboardInterrupt
            self.calls -= 1
        return super()._call(verb, path, call)


def test_a_crash_at_any_write_of_a_fork_leaves_a_job_that_can_be_forked(runs, fork):
    other = runs.kill(Committed, 2)
    plan = runs.plan(name="copy")
    crashes = 0
    while True:
        backend = runs.backend("copy", is_claimed=True)
        backend.storage = Crashing(runs.lab.folder, crashes)
        try:
            started = resolve_start(backend, plan, runs.lab.plugins, fork())
        except KeyboardInterrupt:
            assert runs.backend("copy").list_epochs() == []
            crashes += 1
            continue
        break
    assert crashes == len(referenced_paths(started.checkpoint)) + 1
    assert (other + runs.run(fork(), name="copy")).is_exact


def test_a_driver_that_lost_the_job_cannot_publish_its_fork(runs, fork):
    runs.kill(Committed, 2)
    old, new = (runs.backend("copy", is_claimed=True) for _ in range(2))
    plan = runs.plan(name="copy")
    with pytest.raises(FencedError):
        resolve_start(old, plan, runs.lab.plugins, fork())
    assert new.list_epochs() == []
    assert resolve_start(new, plan, runs.lab.plugins, fork()).next_epoch == 3


def test_a_checkpoint_that_the_other_job_deletes_meanwhile_is_replaced_by_a_newer_one(runs, fork, monkeypatch):
    runs.kill(Committed, 2)
    real = start_module.copy_files
    calls = []

    def outrun(checkpoint, *args, **facts):
        calls.append(checkpoint.epoch)
        if len(calls) == 1:
            runs.kill(Committed, 3)
            raise MissingFileError("deleted")
        return real(checkpoint, *args, **facts)

    monkeypatch.setattr(start_module, "copy_files", outrun)
    backend = runs.backend("copy", is_claimed=True)
    assert resolve_start(backend, runs.plan(name="copy"), runs.lab.plugins, fork()).parent_epoch == 3
    assert calls == [2, 3]


def test_a_named_checkpoint_that_the_other_job_deletes_meanwhile_is_an_error(runs, fork, monkeypatch):
    runs.kill(Committed, 2)

    def outrun(*args, **facts):
        raise MissingFileError("deleted")

    monkeypatch.setattr(start_module, "copy_files", outrun)
    backend = runs.backend("copy", is_claimed=True)
    with pytest.raises(ForkError, match="the other job deleted its checkpoint while it was copied"):
        resolve_start(backend, runs.plan(name="copy"), runs.lab.plugins, fork("#lab@2"))


def test_a_damaged_file_is_not_forked(runs, fork):
    runs.kill(Committed, 2)
    storage = runs.backend().storage
    path = sorted(referenced_paths(runs.checkpoint(2)))[0]
    data = storage.read(path)
    storage.write(path, data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(DamagedStateError, match="is not what was written"):
        runs.run(fork(), name="copy")
    assert runs.backend("copy").list_epochs() == []


def test_files_of_a_remote_store_are_copied_side_by_side(runs, fork, monkeypatch):
    """Checked on every file, as if the store were far away."""
    other = runs.kill(Committed, 3)
    monkeypatch.setattr(StorageProvider, "is_remote", True)
    forked = runs.kill(Committed, 4, fork(), name="copy")
    monkeypatch.undo()
    assert (other + forked + runs.run(name="copy")).is_exact


def test_a_fork_that_drops_state_copies_only_what_it_keeps(runs, fork, node_of):
    runs.kill(Committed, 2)
    nodes = [node_of("rows", "rows", count=24), node_of("copies", "sink", "rows")]
    backend = runs.backend("copy", is_claimed=True)
    plan = runs.plan(nodes, name="copy")
    started = resolve_start(backend, plan, runs.lab.plugins, fork(allow_drop=True))
    files = [file.path for file in backend.storage.list("copy/checkpoints") if file.path.endswith(".parquet")]
    assert set(files) == referenced_paths(started.checkpoint)
    assert {operator.operator_metadata.operator_id for operator in started.checkpoint.operators} == {"rows", "copies"}
