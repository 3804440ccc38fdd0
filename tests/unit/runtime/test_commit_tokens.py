"""Who may commit: a driver that lost its job is stopped before each sink, and sinks are told who commits."""

import importlib
import shutil
import sqlite3
import sys
from contextlib import closing

import pytest

from arroyo_core.api import CommitToken, Origin
from arroyo_core.errors import ConfigError
from arroyo_core.proto.state_pb2 import CheckpointMetadata, GenerationClaim
from arroyo_core.runtime.events import Committed, Published
from arroyo_core.runtime.start import StartOptions
from arroyo_core.state import FencedError, ParquetBackend, get_storage_provider, ownership, paths
from arroyo_core.state.envelope import seal, unseal

from ...document_pages import ROOT, read_steps

COUNT = 20
EVERY = {"checkpoint": {"interval": "1h", "rows": 4}}
SOURCE = {"id": "rows", "operator": "test.rows", "config": {"count": COUNT}}
#: What is there when all rows are committed in their order.
LAST = {key: max(n for n in range(COUNT) if n % 5 == key) for key in range(5)}


def sink(name="last", **config):
    return {"id": name, "operator": "test.last", "inputs": ["rows"], "config": config}


def test_a_driver_that_wakes_up_after_it_published_is_stopped_before_it_commits(lab):
    nodes = [SOURCE, sink()]
    first = lab.job(nodes, **EVERY)
    lab.run_until(first, Published, 2)
    assert lab.run(nodes, **EVERY).is_finished
    assert lab.trace.values == LAST
    committed = list(lab.trace.tokens)
    with pytest.raises(FencedError, match="epoch 2 cannot be committed by generation 1, because generation 2 owns"):
        lab.go_on_until(first, Committed, 2)
    assert lab.trace.tokens == committed
    assert lab.trace.values == LAST


def test_a_driver_is_stopped_between_two_sinks(lab):
    nodes = [SOURCE, sink("one"), sink("two")]
    taken_over = []

    def take_over(token):
        if token.epoch == 2 and not taken_over:
            taken_over.append(True)
            lab.run(nodes, **EVERY)

    lab.trace.on_commit = take_over
    with pytest.raises(FencedError, match="epoch 2 cannot be committed by generation 1"):
        lab.run(nodes, **EVERY)
    old = [token for token in lab.trace.tokens if token.generation == 1]
    # Both sinks in epoch 1; in epoch 2 the first had begun when the job was taken over.
    assert [token.epoch for token in old] == [1, 1, 2]


@pytest.mark.parametrize("honours", [True, False])
def test_between_the_check_and_its_effect_only_the_sink_can_refuse_a_driver(lab, honours):
    nodes = [SOURCE, sink(honours=honours)]
    taken_over = []

    def take_over(token):
        if token.epoch == 2 and not taken_over:
            taken_over.append(True)
            lab.run(nodes, **EVERY)

    lab.trace.on_commit = take_over
    with pytest.raises(FencedError):
        lab.run(nodes, **EVERY)
    # One that does not look at the token ends with old values: docs/exactly-once.md says so.
    assert (lab.trace.values == LAST) is honours


def test_a_sink_that_refuses_by_an_error_is_said_to_have_a_new_owner(lab):
    nodes = [SOURCE, sink()]
    first = lab.job(nodes, **EVERY)
    lab.run_until(first, Published, 2)

    def refuse(token):
        if token.generation == 1:
            lab.trace.on_commit = lambda _: None
            lab.run(nodes, **EVERY)
            raise ConfigError("no such file")

    lab.trace.on_commit = refuse
    with pytest.raises(FencedError, match="generation 2 owns the job now"):
        lab.go_on_until(first, Committed, 2)
    assert lab.trace.values == LAST


def test_what_a_sink_counts_and_warns_of_in_its_commit_is_shown_with_the_epoch(lab):
    lab.trace.tokens.append(CommitToken("", 99, 99))

    def same_incarnation(token):
        lab.trace.tokens[-1] = CommitToken(token.incarnation, 99, 99)

    lab.trace.on_commit = same_incarnation
    result = lab.run([SOURCE, sink(honours=True)])
    assert result.operators["last"].counters == {"refused": 1}
    assert list(result.operators["last"].warnings) == ["a driver that lost the job is refused"]


def test_operators_sources_and_sinks_are_told_who_they_work_for(lab):
    told = []
    passing = {"id": "all", "operator": "test.passing", "inputs": ["rows"]}
    nodes = [SOURCE, passing, {**sink(), "inputs": ["all"]}]
    lab.trace.add = lambda ctx, call: told.append((ctx.task_info.operator_id, ctx.token, ctx.epoch))
    lab.run_until(lab.job(nodes, **EVERY), Committed, 2)
    lab.run(nodes, **EVERY)
    incarnations = {token.incarnation for _, token, _ in told} | {token.incarnation for token in lab.trace.tokens}
    assert len(incarnations) == 1
    assert all(token.epoch == epoch for _, token, epoch in told)
    running = {(token.generation, token.epoch) for _, token, _ in told}
    assert {(1, 1), (1, 2), (2, 3)} <= running
    assert {generation for generation, epoch in running if epoch > 3} == {2}
    committed = [(token.generation, token.epoch) for token in lab.trace.tokens]
    assert committed[:3] == [(1, 1), (1, 2), (2, 3)]
    assert committed == sorted(committed)


def test_a_commit_that_is_replayed_has_the_token_of_who_replays_it(lab):
    nodes = [SOURCE, sink()]
    lab.run_until(lab.job(nodes, **EVERY), Published, 2)
    lab.run(nodes, **EVERY)
    assert [(token.generation, token.epoch) for token in lab.trace.tokens][:3] == [(1, 1), (2, 2), (2, 3)]


def test_an_epoch_of_before_there_were_incarnations_is_committed_and_the_next_one_has_one(lab, tmp_path, monkeypatch):
    nodes = [SOURCE, sink()]
    with monkeypatch.context() as before:
        before.setattr(ownership, "_INCARNATION_BYTES", 0)
        lab.run_until(lab.job(nodes, **EVERY), Published, 2)
    as_of_before(tmp_path / "lab")
    assert lab.run(nodes, **EVERY).is_finished
    assert lab.trace.values == LAST
    assert [(token.generation, token.epoch) for token in lab.trace.tokens][:3] == [(1, 1), (2, 2), (2, 3)]
    assert [token.incarnation for token in lab.trace.tokens][:2] == ["", ""]
    incarnations = {token.incarnation for token in lab.trace.tokens[2:]}
    assert len(incarnations) == 1
    assert "" not in incarnations


def as_of_before(folder):
    """Make sure that no message has the field, and that there is no marker, as in state of the first version."""
    for path in folder.glob("generations/*.claim"):
        assert unseal(path.read_bytes(), GenerationClaim, name=str(path)).incarnation == ""
    for path in folder.glob("checkpoints/*/checkpoint.metadata"):
        assert unseal(path.read_bytes(), CheckpointMetadata, name=str(path)).incarnation == ""
    for path in folder.glob("generations/*incarnation"):
        path.unlink()


@pytest.mark.parametrize("removed", ["lab", "lab/checkpoints"])
def test_a_job_whose_state_was_removed_gives_its_sinks_another_identity(lab, tmp_path, removed, caplog):
    nodes = [SOURCE, sink()]
    lab.run(nodes, **EVERY)
    before = {token.incarnation for token in lab.trace.tokens}
    shutil.rmtree(tmp_path / removed)
    lab.trace.tokens.clear()
    lab.run(nodes, **EVERY)
    assert lab.trace.tokens[0].epoch == 1
    assert len(before | {token.incarnation for token in lab.trace.tokens}) == 2
    warned = "had checkpoints, and they are gone: it starts over as another incarnation" in caplog.text
    # Where everything is gone there is nothing left to tell that by.
    assert warned is (removed != "lab")


def test_starting_fresh_keeps_the_identity_because_numbers_go_on(lab):
    nodes = [SOURCE, sink()]
    lab.run(nodes, **EVERY)
    job = lab.job(nodes, **EVERY)
    job.steps._options = StartOptions(is_fresh=True, is_forced=True)
    last = lab.trace.tokens[-1]
    job.run()
    assert {token.incarnation for token in lab.trace.tokens} == {last.incarnation}
    assert next(token for token in lab.trace.tokens if token > last).epoch == last.epoch + 1


def test_a_marker_does_not_outlive_what_it_stands_for(lab):
    """A job that never came to a checkpoint stays the same one, however often it is started."""
    backends = []
    for _ in range(3):
        backend = ParquetBackend(get_storage_provider(lab.folder), "lab")
        backend.claim_generation()
        backends.append(backend)
    lab.run([SOURCE, sink()])
    assert {token.incarnation for token in lab.trace.tokens} == {backends[0].incarnation}
    assert backends[-1].storage.exists(paths.incarnation_marker("lab", backends[0].incarnation))


@pytest.fixture
def page_sink(tmp_path, monkeypatch):
    """The module that docs/write-a-sink.md shows."""
    (step,) = [step for step in read_steps(ROOT / "docs/write-a-sink.md") if step.name == "acme_sqlite.py"]
    (tmp_path / "page").mkdir()
    (tmp_path / "page/acme_sqlite.py").write_text(step.text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "page"))
    yield importlib.import_module("acme_sqlite")
    del sys.modules["acme_sqlite"]


@pytest.mark.parametrize("removed", ["lab", "lab/checkpoints"])
def test_the_sink_of_the_page_inserts_again_when_the_state_was_removed(lab, tmp_path, page_sink, removed):
    """Seen before there were incarnations: 3 rows read, finished, 0 inserted."""
    with lab.plugins.registry.registering(Origin("acme", "1")):
        page_sink.arroyo_register(lab.plugins.registry)
    database = tmp_path / "events.db"
    sinks = [
        {"id": name, "operator": "acme.sqlite", "inputs": ["rows"], "config": {"path": str(database)}}
        for name in ("one", "two")
    ]
    nodes = [{**SOURCE, "config": {"count": 3}}, *sinks]
    # Two nodes write to one table: both have an epoch 1.
    assert lab.run(nodes).source_rows == 3
    assert count_rows(database) == 6
    shutil.rmtree(tmp_path / removed)
    assert lab.run(nodes).source_rows == 3
    assert count_rows(database) == 12


def count_rows(path):
    with closing(sqlite3.connect(path)) as database:
        return database.execute("select count(*) from events").fetchone()[0]


def test_the_seal_of_a_claim_is_the_same_at_any_time():
    """A driver compares its claim with what it wrote."""
    claim = GenerationClaim(generation=2, time_us=3, owner_id=b"x", incarnation="a1")
    assert seal(claim) == seal(GenerationClaim.FromString(claim.SerializeToString()))
