"""Rounds of crash and recovery on a disk in memory; also run in processes of their own, to use all cores."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from crash_filesystem import calls_in_order, running
from laboratory import input_files, make_plugins, plan_job, run_job
from machine import Crash, CrashPoint, Disk, Life, Mode
from verdict import Tables, Truth, check_reader, check_result, table_rows, visible_rows

ROOT = "lab"


@dataclass(frozen=True)
class Round:
    """What one round found: the point in words, and what was wrong, if anything."""

    name: str
    problem: str = ""


class Laboratory:
    """Runs the pipeline on a kind of store, from any disk."""

    def __init__(self, protocol: str) -> None:
        self._url = f"{protocol}://{ROOT}"
        self._plugins = make_plugins()
        disk = self.new_disk()
        self.whole = Life(watch=disk)
        self.run(disk, self.whole)
        self.truth = Truth(
            visible_rows(disk.files, f"{ROOT}/out"), visible_rows(disk.files, f"{ROOT}/bad"), self.tables(disk)
        )

    @property
    def wrecks(self) -> list[tuple[CrashPoint, Disk]]:
        """The disk as a crash at each point of the whole run leaves it."""
        return self.whole.wrecks

    def new_disk(self) -> Disk:
        return Disk({f"{ROOT}/in/{name}": data for name, data in input_files().items()}, {ROOT, f"{ROOT}/in"})

    def run(self, disk: Disk, life: Life) -> None:
        """One process, from its planning to its end, whichever that is."""
        with calls_in_order(), running(disk, life):
            run_job(plan_job(self._plugins, self._url), self._plugins)

    def tables(self, disk: Disk) -> Tables:
        with running(disk, Life()):
            return table_rows(f"{self._url}/state")

    def recover(self, disk: Disk) -> int:
        """Start the job on what a crash left, and check everything; the number of calls that it took."""
        check_reader(disk.files, ROOT, self.truth)
        life = Life()
        self.run(disk, life)
        check_result(disk.files, ROOT, self.tables(disk), self.truth)
        return len(life.calls)

    def crash_point(self, index: int) -> Round:
        """Recover from one point of the whole run."""
        point, disk = self.wrecks[index]
        name = f"{point}: {self.whole.calls[point.call - 1]}"
        return _judged(name, lambda: self.recover(disk.copy()))

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

        return _judged(name, die_and_recover)


def _judged(name: str, attempt: Callable[[], object]) -> Round:
    try:
        attempt()
    except Crash as error:
        return Round(name, f"died where nobody killed it: {error}")
    except Exception as error:
        return Round(name, f"{type(error).__name__}: {error}")
    return Round(name)


_LABORATORIES: dict[str, Laboratory] = {}


def run_rounds(protocol: str, method: str, numbers: Sequence[int]) -> list[Round]:
    """Rounds `method(number)` of the laboratory on a store, in this process."""
    os.environ["ARROYO_STATE_CACHE"] = "off"
    laboratory = _LABORATORIES.get(protocol) or _LABORATORIES.setdefault(protocol, Laboratory(protocol))
    return [getattr(laboratory, method)(number) for number in numbers]


def share_rounds(protocol: str, method: str, numbers: Sequence[int]) -> list[Round]:
    """The same on all cores."""
    workers = max(1, min(4, os.cpu_count() or 1))
    parts = [numbers[worker::workers] for worker in range(workers)]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        found = pool.map(run_rounds, [protocol] * workers, [method] * workers, parts)
        return [each for part in found for each in part]
