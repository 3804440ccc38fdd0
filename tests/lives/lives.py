"""A job of a pipeline file: run whole, killed again and again, or resumed at other parallelisms."""

from __future__ import annotations

import dataclasses
import os
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

from arroyo_testing.adversary import Adversary
from arroyo_testing.lanes import InlineLanes, Killed, MortalLanes
from arroyo_testing.live import live_executor
from google.protobuf import json_format

from arroyo_core.pipeline import plan_pipeline
from arroyo_core.pipeline.plan import Node, Plan
from arroyo_core.plugin import PluginSet, installed_plugins
from arroyo_core.runtime.events import Committed, EpochAccepted, Event, Published
from arroyo_core.runtime.job import MAX_RESTARTS, Job
from arroyo_core.runtime.live.executor import LiveExecutor
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.results import JobResult
from arroyo_core.runtime.steps import EpochExecutor

from .dozing import with_dozing_sources
from .hostile_storage import hostile_storage

#: How the lives of a job end, one after the other: at the end of an epoch; between publication and commit; again at the
#: end of one; with an epoch that nobody ever published; and from then on at the end of every epoch.
DEATHS: tuple[type[Event], ...] = (Committed, Published, Committed, EpochAccepted)


class PipelineFile:
    """A pipeline file, and the lives that a job of it can have in the current folder.

    `epoch_rows` are the rows of an epoch, of all lives but the first. `settings` are fields of configs, in their JSON
    form, that all nodes of an operator are given instead of those in the file. `plugins` are by default those that are
    installed.
    """

    def __init__(
        self,
        path: Path,
        *,
        epoch_rows: int,
        settings: Mapping[str, Mapping[str, object]] | None = None,
        plugins: PluginSet | None = None,
    ) -> None:
        self._path = path
        self._epoch_rows = epoch_rows
        self._settings = settings or {}
        self._plugins: PluginSet = plugins or installed_plugins()

    def run_whole(self) -> JobResult:
        """All in one epoch, unless the file says how many rows are one."""
        return self._job(self._plan(2), InlineLanes()).run()

    def run_against(self, adversary: Adversary, root: Path, *, max_lives: int = 200) -> int:
        """Through all that the adversary does, at changing parallelism; the number of its drivers.

        What is below `root` is the adversary's too.
        """
        for number in range(1, max_lives):
            if number > max_lives // 2:
                adversary.make_peace()
            plan = self._plan(adversary.random.choice((1, 2, 2, 2, 3)), epoch_rows=self._epoch_rows)
            executor, lanes = adversary.executor(self._plugins), adversary.lanes()
            try:
                with hostile_storage(adversary, root):
                    assert self._job(plan, lanes, executor).run().is_finished
            except Killed:
                continue
            return number
        raise AssertionError("a job dies for ever")

    def run_killed(self) -> int:
        """Kill the job at every epoch, until it finds itself finished; returns the number of its deaths."""
        for deaths, death in enumerate(self._deaths()):
            if self._live(2, death):
                return deaths
        raise AssertionError("a job dies for ever")

    def run_rescaled(self) -> JobResult:
        """Two epochs with two subtasks, one with three, and the rest with one."""
        for parallelism in (2, 2, 3):
            assert not self._live(parallelism, Committed), "the rows were all read too early"
        return self._job(self._plan(1, epoch_rows=self._epoch_rows), InlineLanes()).run()

    def run_live(self) -> JobResult:
        """An epoch as jobs have it, one in three workers that live on, and the rest in two."""
        assert not self._live(2, Committed), "the rows were all read too early"
        with closing(live_executor(self._plugins)) as executor:
            assert not self._live(3, Committed, executor=executor), "the rows were all read too early"
            return self._job(self._plan(2, epoch_rows=self._epoch_rows), InlineLanes(), executor).run()

    def run_cut(self, seed: int) -> None:
        """Lives at any parallelism, of epochs of any size; each ends with its first epoch, until the rows are read.

        A third of them are in live workers, which have begun the next epoch when they end. Some
        subtasks of sources are idle at times.
        """
        rng = random.Random(seed)
        files = [
            self._with_plugins(with_dozing_sources(self._plugins, seed, are_beside=is_live))
            for is_live in (False, True)
        ]
        for _ in range(rng.randint(4, 8)):
            width, rows = rng.randint(1, 4), rng.randint(1, 2 * self._epoch_rows)
            is_live = rng.random() < 1 / 3
            file = files[is_live]
            with closing(file._executor(is_live=is_live)) as executor:
                if file._live(width, Committed, epoch_rows=rows, executor=executor):
                    return
        file = files[False]
        assert file._job(file._plan(rng.randint(1, 4), epoch_rows=self._epoch_rows), InlineLanes()).run().is_finished

    def _executor(self, *, is_live: bool) -> LiveExecutor | LocalExecutor:
        return live_executor(self._plugins) if is_live else LocalExecutor(self._plugins)

    def _with_plugins(self, plugins: PluginSet) -> PipelineFile:
        return PipelineFile(self._path, epoch_rows=self._epoch_rows, settings=self._settings, plugins=plugins)

    def _deaths(self) -> Iterator[type[Event]]:
        yield from DEATHS
        while True:
            yield Committed

    def _live(
        self,
        parallelism: int,
        death: type[Event],
        *,
        epoch_rows: int | None = None,
        executor: EpochExecutor | None = None,
    ) -> bool:
        """One life, with everything made new; whether it came to its end by itself."""
        plan = self._plan(parallelism, epoch_rows=epoch_rows or self._epoch_rows)
        try:
            result = self._job(plan, MortalLanes(death), executor).run()
        except Killed:
            return False
        assert result.is_finished
        return True

    def _job(self, plan: Plan, lanes: InlineLanes, executor: EpochExecutor | None = None) -> Job:
        assert plan.checkpoint.url is not None
        return Job(
            plan,
            executor or LocalExecutor(self._plugins),
            plugins=self._plugins,
            storage_url=plan.checkpoint.url,
            lanes=lanes,
            # Waiting takes no time here, so that no run of a job is long enough to count as healthy.
            max_restarts=MAX_RESTARTS if executor is None else 1000,
        )

    def _plan(self, parallelism: int, *, epoch_rows: int | None = None) -> Plan:
        plan = plan_pipeline(self._path, plugins=self._plugins, environment={}, parallelism=parallelism)
        checkpoint = dataclasses.replace(
            plan.checkpoint,
            url=Path("state").absolute().as_uri(),
            rows=epoch_rows or plan.checkpoint.rows,
            interval_ms=3_600_000,
        )
        nodes = {name: self._with_settings(node) for name, node in plan.nodes.items()}
        return dataclasses.replace(plan, nodes=nodes, checkpoint=checkpoint)

    def _with_settings(self, node: Node) -> Node:
        if node.operator not in self._settings:
            return node
        message = self._plugins.registry.constructors[node.operator].config_type.FromString(node.config)
        json_format.ParseDict(dict(self._settings[node.operator]), message)
        return dataclasses.replace(node, config=message.SerializeToString())


#: A life of a job, and what must hold of it apart from its rows.
Life = Callable[[PipelineFile], None]


def whole(file: PipelineFile) -> None:
    assert file.run_whole().is_finished


def killed_at_every_epoch(file: PipelineFile) -> None:
    assert file.run_killed() > len(DEATHS), "too few epochs for every kind of death"


def rescaled(file: PipelineFile) -> None:
    result = file.run_rescaled()
    assert result.is_finished
    assert result.epochs > 0


def in_live_workers(file: PipelineFile) -> None:
    result = file.run_live()
    assert result.is_finished
    assert (result.epochs > 1, result.restarts) == (True, 0)


def cut_anywhere(seed: int) -> Life:
    """`EPOCH_CUT_SEED=7 pytest tests/golden tests/nexmark -k anywhere` repeats a run."""

    def life(file: PipelineFile) -> None:
        print(f"EPOCH_CUT_SEED={seed}")
        file.run_cut(seed)

    return life


def cuts_anywhere() -> dict[str, Life]:
    """One, or as many as `EPOCH_CUT_SEEDS` says: `make cuts SEEDS=300 SEED=7`."""
    # The same in CI every time, as Hypothesis has it: what another seed finds is found by people.
    first = int(os.environ.get("EPOCH_CUT_SEED") or (7 if os.environ.get("CI") else random.randrange(10**6)))
    seeds = range(first, first + int(os.environ.get("EPOCH_CUT_SEEDS") or 1))
    return {"cut anywhere" if len(seeds) == 1 else f"cut anywhere {seed}": cut_anywhere(seed) for seed in seeds}


LIVES: Mapping[str, Life] = {
    "whole": whole,
    "killed at every epoch": killed_at_every_epoch,
    "from 2 to 3 to 1 subtasks": rescaled,
    "in live workers": in_live_workers,
    **cuts_anywhere(),
}
