"""Whole pipelines through the in-process runner: the same waves and frames as on Spark."""

from collections import Counter
from contextlib import closing
from uuid import uuid4

import pytest
from arroyo_testing.lanes import InlineLanes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arroyo_core.api import END_OF_TIME_US, Origin, Registry
from arroyo_core.errors import Domain, ExchangeError, OperatorError, PluginError, RetryHint
from arroyo_core.plugin import PluginSet
from arroyo_core.runtime.controller import replay
from arroyo_core.runtime.events import Committed, EpochAccepted, Lane, Published, StopMode, read_events
from arroyo_core.runtime.lanes import ThreadLanes
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.state import FencedError, StorageProvider
from arroyo_core.state.failures import DamagedStateError, MissingFileError

#: Publish an epoch before the next one runs, or after.
ORDERS = [(Lane.PUBLISH, Lane.COLLECT, Lane.RUN), (Lane.RUN, Lane.PUBLISH, Lane.COLLECT)]

EVERY = {"checkpoint": {"interval": "1h", "rows": 4}}


def chain(*nodes):
    """Nodes in a row, each reading the one before."""
    out = []
    for index, (operator, config) in enumerate(nodes):
        node = {"id": f"n{index}", "operator": operator, "config": config}
        if index:
            node["inputs"] = [f"n{index - 1}"]
        out.append(node)
    return out


LINE = chain(("test.rows", {"count": 20}), ("test.passing", {}), ("test.sink", {}))


def test_a_line_delivers_every_row_once(lab):
    result = lab.run(LINE)
    assert lab.trace.numbers() == Counter(range(20))
    assert result.is_finished
    assert result.source_rows == 20
    assert result.operators["n2"].rows_received == 20


def test_epochs_follow_each_other_and_the_last_one_is_committed_too(lab):
    result = lab.run(LINE, **EVERY)
    assert result.epochs > 3
    assert lab.trace.numbers() == Counter(range(20))
    assert [epoch for epoch, _ in lab.trace.committed] == list(range(1, result.epochs + 1))
    assert lab.trace.committed[-1][1]


def test_the_life_of_an_operator(lab):
    lab.run(chain(("test.rows", {"count": 3}), ("test.passing", {}), ("test.sink", {})))
    assert lab.trace.of("n1") == [
        "start",
        "batch 0/1",
        "watermark 2",
        f"watermark {END_OF_TIME_US}",
        "close end_of_data",
        "checkpoint 1",
    ]


def test_an_instance_that_goes_away_between_epochs_is_closed_after_its_checkpoint(lab):
    lab.run(chain(("test.rows", {"count": 4}), ("test.passing", {}), ("test.sink", {})), checkpoint={"rows": 1})
    calls = lab.trace.of("n1")
    first = calls[: calls.index("start", 1)]
    assert first == ["start", "batch 0/1", "watermark 2", "checkpoint 1", "close None"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(
    widths=st.tuples(*[st.integers(1, 4)] * 4),
    keys=st.sampled_from([None, ["key"], []]),
    rows=st.sampled_from([None, 5]),
    size=st.integers(1, 7),
)
def test_a_diamond_with_a_union_and_any_parallelisms_is_exact(lab, widths, keys, rows, size):
    lab.trace.committed.clear()
    source, left, right, joined = widths
    keyed = {} if keys is None else {"keys": keys}
    nodes = [
        {"id": "s", "operator": "test.rows", "parallelism": source, "config": {"count": 40, "batch": size}},
        {"id": "l", "operator": "test.passing", "parallelism": left, "inputs": ["s"], "config": keyed},
        {"id": "r", "operator": "test.passing", "parallelism": right, "inputs": ["s"]},
        {"id": "deep", "operator": "test.passing", "inputs": ["r"], "config": {"keys": ["n"]}},
        {"id": "u", "operator": "test.passing", "parallelism": joined, "inputs": ["l", "deep", "s"]},
        {"id": "o", "operator": "test.sink", "inputs": ["u"]},
    ]
    lab.run(nodes, name=f"lab-{uuid4()}", checkpoint={"interval": "1h"} | ({"rows": rows} if rows else {}))
    assert lab.trace.numbers() == Counter(dict.fromkeys(range(40), 3))


@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("rows", [None, 4])
def test_keyed_state_goes_from_epoch_to_epoch(lab, parallelism, rows):
    nodes = chain(("test.rows", {"count": 50}), ("test.totals", {}), ("test.sink", {}))
    lab.run(nodes, parallelism=parallelism, checkpoint={"interval": "1h"} | ({"rows": rows} if rows else {}))
    totals = {row["key"]: row["n"] for row in lab.trace.rows}
    assert totals == {key: sum(n for n in range(50) if n % 5 == key) for key in range(5)}
    assert len(lab.trace.rows) == 5


def test_sources_finish_one_by_one_and_each_chain_is_closed_once(lab):
    nodes = [
        {"id": "short", "operator": "test.rows", "config": {"count": 2}},
        {"id": "long", "operator": "test.rows", "config": {"count": 40}},
        {"id": "p", "operator": "test.passing", "inputs": ["short"]},
        {"id": "o", "operator": "test.sink", "inputs": ["p", "long"]},
    ]
    result = lab.run(nodes, checkpoint={"interval": "1h", "rows": 6})
    assert result.epochs > 3
    assert lab.trace.numbers() == Counter(range(40)) + Counter(range(2))
    assert lab.trace.of("p").count("close end_of_data") == 1
    assert lab.trace.of("p").count(f"watermark {END_OF_TIME_US}") == 1


def test_the_two_inputs_of_a_join_keep_their_numbers(lab):
    nodes = [
        {"id": "a", "operator": "test.rows", "config": {"count": 6}},
        {"id": "b", "operator": "test.rows", "config": {"count": 6}},
        {"id": "j", "operator": "test.passing", "inputs": ["a", "b"], "config": {"keys": ["key"]}},
        {"id": "o", "operator": "test.sink", "inputs": ["j"]},
    ]
    lab.run(nodes, parallelism=2)
    batches = {call for call in lab.trace.of("j") + lab.trace.of("j", 1) if call.startswith("batch")}
    assert batches == {"batch 0/2", "batch 1/2"}


def test_watermarks_of_many_senders_merge_to_the_least(lab):
    nodes = chain(("test.rows", {"count": 24, "batch": 1}), ("test.passing", {"keys": []}), ("test.sink", {}))
    lab.run(nodes, parallelism=2, **EVERY)
    times = [int(call.split()[1]) for call in lab.trace.of("n1") if call.startswith("watermark")]
    assert times == sorted(set(times))
    assert times[-1] == END_OF_TIME_US
    assert 0 < max(times[:-1]) <= 22


def test_a_failing_operator_is_named_with_its_own_traceback(lab):
    nodes = chain(("test.rows", {}), ("test.passing", {}), ("test.passing", {"fail_at": 7}), ("test.sink", {}))
    with pytest.raises(OperatorError) as caught:
        lab.run(nodes)
    error = caught.value
    assert (error.operator_id, error.subtask, error.epoch) == ("n2", 0, 1)
    assert "ZeroDivisionError: seven is not allowed" in str(error)
    assert "in process_batch" in error.traceback
    assert (error.cause_domain, error.cause_retry) == (Domain.USER, RetryHint.NO_RETRY)


def test_the_first_cause_is_reported_not_its_effect_downstream(lab):
    nodes = chain(("test.rows", {"fail": "raise"}), ("test.passing", {"keys": ["n"]}), ("test.sink", {}))
    with pytest.raises(OperatorError, match="the source is broken"):
        lab.run(nodes, parallelism=2)


def test_a_source_that_calls_exit_fails_the_job_instead_of_hanging_it(lab):
    with pytest.raises(OperatorError, match="SystemExit"):
        lab.run(chain(("test.rows", {"fail": "exit"}), ("test.sink", {})))


def test_an_outage_can_be_retried(lab):
    nodes = chain(("test.rows", {}), ("test.passing", {"fail_at": 7, "outage": True}), ("test.sink", {}))
    with pytest.raises(OperatorError) as caught:
        lab.run(nodes)
    assert (caught.value.cause_domain, caught.value.cause_retry) == (Domain.EXTERNAL, RetryHint.WITH_BACKOFF)


def test_rows_that_do_not_fit_the_declared_schema_are_an_error(lab):
    with pytest.raises(OperatorError, match=r"emitted columns \[n: int64, at.*declares \[n: int64, key"):
        lab.run(chain(("test.rows", {}), ("test.passing", {"wrong_schema": True}), ("test.sink", {})))


def test_an_executor_with_another_plugin_version_refuses(lab):
    other = lab.plugins_of(Origin("arroyo-test", "9.9"))
    with pytest.raises(PluginError, match=r"but this executor has arroyo-test 9\.9"):
        lab.run(LINE, executor=LocalExecutor(other))


def test_an_executor_without_the_plugin_says_what_is_missing_where(lab):
    bare = PluginSet(Registry(), [])
    with pytest.raises(
        PluginError, match=r"planned with arroyo-test .*, and .*python.* on .* does not have it"
    ) as caught:
        lab.run(LINE, executor=LocalExecutor(bare))
    assert "install the same version on the driver and on every executor" in str(caught.value)


class Disagreeing(LocalExecutor):
    """The first tries of each epoch report another attempt than was consumed, as after a lost executor."""

    def __init__(self, plugins, tries):
        super().__init__(plugins)
        self.tries = tries
        self.runs = 0

    def run_epoch(self, plan, request):
        reports = super().run_epoch(plan, request)
        self.runs += 1
        if self.runs % (self.tries + 1):
            reports[0].attempt += 1000
        return reports


SHUFFLED = chain(("test.rows", {"count": 20}), ("test.passing", {"keys": ["key"]}), ("test.sink", {}))


def test_an_epoch_that_senders_and_receivers_disagree_on_is_run_again(lab):
    executor = Disagreeing(lab.plugins, tries=2)
    result = lab.run(SHUFFLED, executor=executor, **EVERY)
    assert executor.runs == 3 * result.epochs
    assert lab.trace.numbers() == Counter(range(20))


def test_a_lasting_disagreement_ends_the_job(lab):
    with pytest.raises(ExchangeError, match="consumed"):
        lab.run(SHUFFLED, executor=Disagreeing(lab.plugins, tries=100))
    assert lab.trace.committed == []


@pytest.mark.parametrize("mode", list(StopMode))
def test_a_stop_request_ends_the_job_and_a_restart_goes_on(lab, mode):
    job = lab.job(LINE, **EVERY)
    lab.run_until(job, Committed, 1)
    job.stop.request(mode)
    while job.result.epochs < 50 and not job.is_ended:
        job.step()
    assert not job.result.is_finished
    assert lab.trace.numbers() < Counter(range(20))
    assert lab.run(LINE, **EVERY).is_finished
    assert lab.trace.numbers() == Counter(range(20))


def test_the_last_epoch_before_a_stop_says_so_and_reads_nothing(lab):
    job = lab.job(LINE, **EVERY)
    lab.run_until(job, Committed, 1)
    job.stop.request(StopMode.CHECKPOINT)
    while not job.is_ended:
        job.step()
    barriers = [call for call in lab.trace.of("n1") if "then_stop" in call]
    assert len(barriers) == 1
    assert lab.trace.committed[-1][1] == []


def test_a_graceful_stop_closes_operators_with_stop_and_does_not_flush(lab):
    job = lab.job(LINE, **EVERY)
    lab.run_until(job, Committed, 1)
    job.stop.request(StopMode.GRACEFUL)
    while not job.is_ended:
        job.step()
    assert lab.trace.of("n1")[-2:] == ["close stop", f"checkpoint {job.result.epochs} then_stop"]
    assert f"watermark {END_OF_TIME_US}" not in lab.trace.of("n1")


@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("kind", [EpochAccepted, Published, Committed])
@pytest.mark.parametrize("order", ORDERS)
def test_a_job_that_died_goes_on_where_it_was_at_any_parallelism(lab, parallelism, kind, order):
    nodes = chain(("test.rows", {"count": 50}), ("test.totals", {}), ("test.sink", {}))
    lab.run_until(lab.job(nodes, parallelism=2, lanes=InlineLanes(order), **EVERY), kind, 3)
    result = lab.run(nodes, parallelism=parallelism, **EVERY)
    unpublished = 0 if kind is not EpochAccepted else 1 + (order[0] is Lane.RUN)
    assert result.resumed_from == 3 - unpublished
    assert {row["key"]: row["n"] for row in lab.trace.rows} == {
        key: sum(n for n in range(50) if n % 5 == key) for key in range(5)
    }
    assert len(lab.trace.rows) == 5


def test_a_finished_job_is_not_run_again(lab):
    lab.run(LINE)
    result = lab.run(LINE)
    assert result.is_finished
    assert (result.epochs, result.resumed_from) == (0, 1)
    assert lab.trace.numbers() == Counter(range(20))


def test_a_commit_that_was_broken_off_is_finished_at_the_next_start(lab):
    lab.run_until(lab.job(LINE), Published, 1)
    assert lab.trace.committed == []
    assert lab.run(LINE).is_finished
    assert lab.trace.numbers() == Counter(range(20))


@pytest.mark.parametrize("order", ORDERS)
def test_an_older_driver_is_fenced_out_by_a_newer_one(lab, order):
    old = lab.job(LINE, lanes=InlineLanes(order), **EVERY)
    lab.run_until(old, Committed, 1)
    lab.run(LINE, **EVERY)
    with pytest.raises(FencedError):
        lab.go_on_until(old, Committed, 100)
    assert lab.trace.numbers() == Counter(range(20))


def test_a_driver_that_sleeps_while_it_publishes_is_fenced_out(lab, monkeypatch):
    """What it had half written is deleted with the epoch meanwhile: that is not a fault of the storage."""
    old = lab.job(LINE, **EVERY)
    lab.run_until(old, Committed, 1)
    create = StorageProvider.put_if_absent
    asleep = iter([True])

    def sleep(storage, path, data):
        if path.endswith("/2/checkpoint.metadata") and next(asleep, False):
            lab.run(LINE, **EVERY)
            raise MissingFileError(f"cannot create {path}: there is no such bucket or folder")
        return create(storage, path, data)

    monkeypatch.setattr(StorageProvider, "put_if_absent", sleep)
    with pytest.raises(FencedError, match="generation 2 owns the job now"):
        lab.go_on_until(old, Committed, 2)
    assert lab.trace.numbers() == Counter(range(20))


def test_a_driver_that_restarts_after_it_lost_the_job_runs_nothing_more(lab):
    class Taken(Outages):
        def run_epoch(self, plan, request):
            if request.epoch == 2:
                lab.run(LINE, **EVERY)
                # What a driver says whose files were deleted, for want of better knowledge.
                raise ConnectionError("down")
            return super().run_epoch(plan, request)

    job = lab.job(LINE, executor=Taken(lab.plugins, epochs={}), **EVERY)
    job.steps._check_turn = lambda epoch: None
    with pytest.raises(FencedError, match="generation 2 owns the job now"):
        job.run()
    assert job.result.restarts == 1
    assert lab.trace.numbers() == Counter(range(20))


def test_state_that_the_driver_does_not_find_is_refused_before_anything_is_published(lab, tmp_path):
    class Elsewhere(LocalExecutor):
        """Writes to a folder of the same name on a machine of its own."""

        def run_epoch(self, plan, request):
            reports = super().run_epoch(plan, request)
            for path in tmp_path.glob("lab/checkpoints/*/table-*.parquet"):
                path.unlink()
            return reports

    with pytest.raises(DamagedStateError, match="URL must be a place that the driver and all executors share"):
        lab.run(LINE, executor=Elsewhere(lab.plugins), **EVERY)
    assert lab.trace.committed == []
    assert not list(tmp_path.rglob("checkpoint.metadata"))


def test_the_next_epoch_runs_before_the_last_one_is_published(lab):
    job = lab.job(LINE, lanes=InlineLanes((Lane.RUN, Lane.PUBLISH, Lane.COLLECT)), **EVERY)
    with closing(job):
        job.begin()
        seen = [job.step() for _ in range(4)]
    assert [(type(event).__name__, getattr(event, "epoch", 0)) for event in seen] == [
        ("Restored", 0),
        ("EpochAccepted", 1),
        ("EpochAccepted", 2),
        ("Published", 1),
    ]


def test_an_outage_restarts_the_job_from_its_last_checkpoint(lab):
    outages = Outages(lab.plugins, epochs={2: 3, 4: 1})
    result = lab.run(LINE, executor=outages, **EVERY)
    assert result.is_finished
    assert result.restarts == 4
    assert lab.trace.numbers() == Counter(range(20))


@pytest.mark.parametrize("step", ["publish", "commit"])
@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_an_epoch_that_is_completed_after_an_outage_counts_once(lab, step, is_done, order):
    job = lab.job(LINE, lanes=InlineLanes(order), **EVERY)
    work, outages = getattr(job.steps, step), [2, 3]

    def away(epoch):
        if epoch not in outages:
            return work(epoch)
        outages.remove(epoch)
        if is_done:
            work(epoch)
        raise ConnectionError("the answer was lost")

    setattr(job.steps, step, away)
    result = job.run()
    assert result.restarts == 2
    assert result.source_rows == 20
    assert result.epochs == max(epoch for epoch, _ in lab.trace.committed)
    assert lab.trace.numbers() == Counter(range(20))


def test_an_outage_that_lasts_ends_the_job_with_its_reason(lab):
    with pytest.raises(ConnectionError, match="down"):
        lab.run(LINE, executor=Outages(lab.plugins, epochs={2: 1000}), **EVERY)
    assert [epoch for epoch, _ in lab.trace.committed] == [1]


def test_a_mistake_is_not_retried(lab):
    nodes = chain(("test.rows", {"count": 20}), ("test.passing", {"fail_at": 7}), ("test.sink", {}))
    job = lab.job(nodes, **EVERY)
    with pytest.raises(OperatorError, match="seven"):
        job.run()
    assert job.result.restarts == 0


def test_a_job_ends_with_the_cause_and_not_with_the_epoch_that_was_given_up_for_it(lab):
    class Killed(LocalExecutor):
        def run_epoch(self, plan, request):
            if request.epoch == 2:
                raise RuntimeError("the job was cancelled")
            return super().run_epoch(plan, request)

    def refuse(epoch):
        raise PermissionError(f"epoch {epoch} must not be written there")

    job = lab.job(LINE, executor=Killed(lab.plugins), **EVERY)
    job.steps.commit = refuse
    with pytest.raises(PermissionError, match="epoch 1 must not be written there"):
        job.run()


def test_the_event_log_of_a_run_leads_the_controller_to_the_same_decisions(lab, tmp_path):
    job = lab.job(LINE, executor=Outages(lab.plugins, epochs={2: 1}), **EVERY)
    instructions = record_instructions(job)
    job.run()
    files = sorted(tmp_path.glob("lab/checkpoints/*/events-*.jsonl"), key=lambda path: int(path.parent.name))
    lines = [line for path in files for line in path.read_text().splitlines()]
    assert replay(job.policy, read_events(lines)) == instructions


def test_a_job_in_threads_comes_to_the_same(lab):
    result = lab.run(LINE, lanes=ThreadLanes(), **EVERY)
    assert result.is_finished
    assert lab.trace.numbers() == Counter(range(20))


class Outages(LocalExecutor):
    """Some epochs fail some times."""

    def __init__(self, plugins, epochs):
        super().__init__(plugins)
        self.epochs = dict(epochs)

    def run_epoch(self, plan, request):
        left = self.epochs.get(request.epoch, 0)
        if left:
            self.epochs[request.epoch] = left - 1
            raise ConnectionError("down")
        return super().run_epoch(plan, request)


def record_instructions(job):
    found = []
    carry_out = job._carry_out
    job._carry_out = lambda instruction: (found.append(instruction), carry_out(instruction))[1]
    return found
