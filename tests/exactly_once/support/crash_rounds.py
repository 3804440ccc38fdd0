"""Rounds of crash and recovery on a disk in memory; also run in processes of their own, to use all cores."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from multiprocessing import get_context
from typing import Any

from arroyo_testing.crash_filesystem import running
from arroyo_testing.lanes import InlineLanes
from arroyo_testing.live import live_executor
from arroyo_testing.machine import Crash, CrashPoint, Disk, Life, Mode

from arroyo_core.runtime.events import Lane

from .calls import moves_in_order
from .laboratory import input_files, make_plugins, plan_job, run_job
from .verdict import Tables, Truth, check_reader, check_result, table_rows, visible_rows

ROOT = "lab"


@dataclass(frozen=True)
class Round:
    """What one round found: the point in words, and what was wrong, if anything."""

    name: str
    problem: str = ""


class Order(StrEnum):
    """What is done first where an epoch waits to be published and the next one could run."""

    PUBLISH_FIRST = "publish first"
    RUN_FIRST = "run first"

    def lanes(self) -> InlineLanes:
        if self is Order.PUBLISH_FIRST:
            return InlineLanes((Lane.PUBLISH, Lane.COLLECT, Lane.RUN))
        return InlineLanes((Lane.RUN, Lane.COLLECT, Lane.PUBLISH))


class Laboratory:
    """Runs the pipeline on a kind of store, from any disk."""

    def __init__(
        self, protocol: str, order: Order, *, is_live: bool = False, sink: Mapping[str, Any] | None = None
    ) -> None:
        """With `is_live` the run that dies is one in live workers, whose epochs overlap; those that recover are not.

        `sink` are more settings of the sink.
        """
        self.sink = sink
        self._url = f"{protocol}://{ROOT}"
        self._order = order
        self._plugins = make_plugins()
        # A wave whose subtasks wait for what others write could not be ahead.
        self._is_partitioned = is_live
        disk = self.new_disk()
        self.whole = Life(watch=disk)
        self.run(disk, self.whole, is_live=is_live)
        self.truth = Truth(
            visible_rows(disk.files, f"{ROOT}/out"), visible_rows(disk.files, f"{ROOT}/bad"), self.tables(disk)
        )

    @property
    def wrecks(self) -> list[tuple[CrashPoint, Disk]]:
        """The disk as a crash at each point of the whole run leaves it."""
        return self.whole.wrecks

    def different_points(self, is_wanted: Callable[[CrashPoint], bool] = lambda point: True) -> list[int]:
        """Of the wrecks at such points, one of each content.

        What a new process does depends on the store alone: crashes that leave the same need one recovery.
        """
        found: dict[object, int] = {}
        for index, (point, disk) in enumerate(self.wrecks):
            if is_wanted(point):
                found.setdefault((frozenset(disk.files.items()), frozenset(disk.folders)), index)
        return list(found.values())

    def new_disk(self) -> Disk:
        return Disk({f"{ROOT}/in/{name}": data for name, data in input_files().items()}, {ROOT, f"{ROOT}/in"})

    def run(self, disk: Disk, life: Life, *, is_live: bool = False) -> None:
        """One process, from its planning to its end, whichever that is."""
        with moves_in_order(), running(disk, life), ExitStack() as ending:
            executor = live_executor(self._plugins) if is_live else None
            if executor is not None:
                ending.callback(executor.close)
            plan = plan_job(self._plugins, self._url, is_partitioned=self._is_partitioned, sink=self.sink)
            run_job(plan, self._plugins, lanes=self._order.lanes(), executor=executor)

    def tables(self, disk: Disk) -> Tables:
        with running(disk, Life()):
            return table_rows(f"{self._url}/state")

    def recover(self, disk: Disk) -> int:
        """Start the job on what a crash left, and check everything; the number of calls that it took."""
        check_reader(disk.files, ROOT, self.truth, may_tear=self._url.startswith("crash-object:"))
        life = Life()
        self.run(disk, life)
        check_result(disk.files, ROOT, self.tables(disk), self.truth)
        return len(life.calls)

    def crash_point(self, index: int) -> Round:
        """Recover from one point of the whole run."""
        point, disk = self.wrecks[index]
        name = f"{point}: {self.whole.calls[point.call - 1]}"
        return judge(name, lambda: self.recover(disk.copy()))

    def crash_twice(self, seed: int) -> Round:
        """Recover from a point of the whole run, die while at it, and recover again."""
        choose = random.Random(seed)
        first, wreck = choose.choice(self.wrecks)
        disk = wreck.copy()
        left = max(20, len(self.whole.calls) - first.call)
        second = CrashPoint(choose.randint(1, left), choose.choice(list(Mode)))
        name = f"seed {seed}, {first}, then {second}"

        def die_and_recover() -> None:
            life = Life(second)
            try:
                self.run(disk, life)
            except BaseException:
                if not life.is_dead:
                    raise
            else:
                assert not life.is_dead, "the process lived on after its death"
            self.recover(disk)

        return judge(name, die_and_recover)


def judge(name: str, attempt: Callable[[], object]) -> Round:
    """What came of an attempt."""
    try:
        attempt()
    except Crash as error:
        return Round(name, f"died where nobody killed it: {error}")
    except Exception as error:
        return Round(name, f"{type(error).__name__}: {error}")
    return Round(name)


@lru_cache
def _laboratory(protocol: str, order: Order) -> Laboratory:
    return Laboratory(protocol, order)


def run_rounds(protocol: str, order: Order, method: str, numbers: Sequence[int]) -> list[Round]:
    """Rounds `method(number)` of the laboratory on a store, in this process."""
    laboratory = _laboratory(protocol, order)
    return [getattr(laboratory, method)(number) for number in numbers]


def share_rounds(rounds: Callable[..., list[Round]], *arguments: object, numbers: Sequence[int]) -> list[Round]:
    """`rounds(*arguments, numbers)` in processes of their own, on all cores."""
    workers = max(1, min(4, os.cpu_count() or 1))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        shares = [pool.submit(rounds, *arguments, numbers[part::workers]) for part in range(workers)]
        return [each for share in shares for each in share.result()]
