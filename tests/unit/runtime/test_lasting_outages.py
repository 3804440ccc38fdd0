"""A job whose service is down for several epochs: people are told, no row is lost, and a limit ends it."""

import io
from itertools import pairwise

import pyarrow as pa
import pytest
from arroyo_testing.lanes import InlineLanes

from arroyo_core.api import (
    OUTAGES,
    ArroyoSchema,
    Origin,
    Outages,
    Registry,
    RetryPolicy,
    SourceFinishType,
    SourceOperator,
)
from arroyo_core.cli.progress import REPEAT_S, Progress
from arroyo_core.errors import OperatorError
from arroyo_core.plugin import PluginSet
from arroyo_core.runtime.job import Job
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.metrics import OperatorMetrics
from arroyo_core.runtime.results import EpochResult
from arroyo_core.state import global_table_config

from .conftest import OPERATORS, Constructor

COUNT = 12
QUICK = {"checkpoint": {"interval": "50ms", "rows": 2}}
NODES = [{"id": "feed", "operator": "test.feed"}, {"id": "out", "operator": "test.sink", "inputs": ["feed"]}]


class Feed(SourceOperator):
    """Numbers of a service that is down in the epochs that the trace names."""

    policy = RetryPolicy(first_wait_s=0.001, longest_wait_s=0.001)

    def __init__(self, config, trace):
        self._down = trace.down

    def name(self):
        return "test.feed"

    def output_schema(self, inputs):
        return ArroyoSchema(pa.schema({"n": pa.int64()}))

    def tables(self):
        return {
            **global_table_config("position", "the next number"),
            **global_table_config(OUTAGES, "services that fail", is_partitioned=True),
        }

    def on_start(self, ctx):
        self._position = ctx.table_manager.get_global_keyed_state("position", key_type=str, value_type=int)
        self._outages = Outages(ctx, self.policy)

    def run(self, ctx, collector):
        position = self._position.get("next") or 0
        while position < COUNT:
            if (message := self._outages.wait()) is not None:
                return message.finish_type
            if ctx.epoch in self._down:
                self._outages.failed(ConnectionRefusedError("the feed refuses connections"))
                continue
            self._outages.succeeded()
            collector.collect(pa.record_batch({"n": pa.array([position], pa.int64())}))
            position += 1
            self._position.insert("next", position)
        return SourceFinishType.FINAL


class ImpatientFeed(Feed):
    policy = RetryPolicy(first_wait_s=0.001, longest_wait_s=0.001, max_duration_s=0.001)


class Screen(Progress):
    """What a person sees, and what the epochs said."""

    def __init__(self, plan):
        super().__init__(io.StringIO())
        self.epochs = []

    def on_epoch(self, result, job):
        self.epochs.append(result)
        super().on_epoch(result, job)


@pytest.fixture
def feed(lab):
    def install(kind, down):
        lab.trace.down = down
        registry = Registry()
        with registry.registering(Origin("arroyo-test", "0.1")):
            for name, each in {**OPERATORS, "test.feed": kind}.items():
                registry.add(name, Constructor(each, lab.trace))
        lab.plugins = PluginSet(registry, [])

    return install


def test_an_outage_of_several_epochs_is_shown_and_loses_no_row(lab, feed):
    feed(Feed, {2, 3, 4})
    screens = []
    result = lab.run(NODES, listener=lambda plan: screens.append(Screen(plan)) or screens[0], **QUICK)
    assert result.is_finished
    assert sorted(lab.trace.numbers()) == list(range(COUNT))
    assert result.operators["feed"].counters["retries"] >= 1
    (screen,) = screens
    assert [epoch.source_rows for epoch in screen.epochs][1:4] == [0, 0, 0]
    shown = shown_on(screen)
    assert shown[0].startswith("warning: feed: the feed refuses connections; failing since 2")
    # One line for three epochs, and one when it is over.
    assert [line.partition(",")[0] for line in shown[1:]] == ["warning: feed: works again"]
    # Machines see it in every epoch in which it lasts.
    assert all(epoch.operators["feed"].warnings for epoch in screen.epochs[1:4])


def test_past_a_limit_the_job_ends_and_says_why(lab, feed):
    feed(ImpatientFeed, set(range(2, 10**6)))
    job = Job(
        lab.plan(NODES, **QUICK),
        LocalExecutor(lab.plugins),
        plugins=lab.plugins,
        storage_url=lab.folder,
        lanes=InlineLanes(),
        max_restarts=0,
    )
    with pytest.raises(OperatorError, match=r"the feed refuses connections; failing since .*: given up"):
        job.run()


def shown_on(screen):
    """Its lines, without their times."""
    return [line.partition(" ")[2] for line in screen.out.getvalue().splitlines()]


def epoch_with(*warnings, operator="feed"):
    metrics = OperatorMetrics()
    for topic, text in warnings:
        metrics.warn(text, topic=topic)
    return EpochResult(
        epoch=1,
        duration_s=0.2,
        operators={operator: metrics},
        subtasks={},
        source_rows=0,
        watermark_us=None,
        is_final=False,
    )


def test_a_lasting_warning_is_shown_again_as_it_is_then_and_not_in_every_epoch():
    now = [0.0]
    screen = Progress(io.StringIO(), monotonic=lambda: now[0])
    shown_s = []
    for step in range(1000):
        now[0] = step * 0.2
        before = len(screen.out.getvalue())
        screen.on_epoch(epoch_with(("outage", f"down for {step}")), None)
        if len(screen.out.getvalue()) > before:
            shown_s.append(now[0])
    assert shown_on(screen)[:2] == ["warning: feed: down for 0", "warning: feed: down for 300"]
    assert shown_s[0] == 0
    assert all(REPEAT_S <= later - earlier < REPEAT_S + 0.3 for earlier, later in pairwise(shown_s))
    assert len(shown_s) == 4


def test_warnings_of_other_topics_and_operators_are_shown_at_once():
    screen = Progress(io.StringIO(), monotonic=lambda: 0.0)
    for _ in range(2):
        screen.on_epoch(epoch_with(("outage", "down"), (None, "a bad line")), None)
        screen.on_epoch(epoch_with(("outage", "down"), operator="other"), None)
    assert shown_on(screen) == [
        "warning: feed: down",
        "warning: feed: a bad line",
        "warning: other: down",
    ]
