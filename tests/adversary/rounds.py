"""Rounds against the adversary: a seed is a pipeline and all that happens to it; also in processes of their own."""

from __future__ import annotations

import faulthandler
import logging
import multiprocessing
import os
import traceback
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field

from arroyo_core.testing.adversary import Adversary, Deed

from .cases import cases


@dataclass(frozen=True, slots=True)
class Round:
    """What a seed came to."""

    seed: int
    case: str
    drivers: int
    deeds: Counter[Deed]
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"seed {self.seed} ({self.case}), repeat with: make adversary SEED={self.seed} SEEDS=1\n" + "\n".join(
            self.problems
        )


def run_round(seed: int) -> Round:
    """One job from its first driver to its end, and what is wrong with its output."""
    known = cases()
    case = list(known.values())[seed % len(known)]
    adversary = Adversary(seed)
    drivers, problems = 0, []
    with case.place() as place:
        try:
            drivers = case.file().run_against(adversary, place.folder)
            problems = case.problems(place)
        except Exception:
            problems = [traceback.format_exc()]
        finally:
            adversary.close()
    return Round(seed, case.name, drivers, adversary.deeds, problems)


def run_rounds(seeds: Sequence[int]) -> list[Round]:
    # That epochs are discarded and jobs start over is the purpose.
    logging.disable(logging.WARNING)
    faulthandler.enable()
    return [run_round(seed) for seed in seeds]


def share_rounds(seeds: Sequence[int]) -> list[Round]:
    """In processes of their own, on all cores; the seeds that take longest are not all in one."""
    workers = max(1, min(4, os.cpu_count() or 1))
    size = max(1, min(20, -(-len(seeds) // workers)))
    shares = [seeds[start : start + size] for start in range(0, len(seeds), size)]
    rounds, lost = _run_shares(shares, workers)
    if lost:
        # Seen once in some ten runs, and never with the same seeds again: a process ends without a word, perhaps
        # because threads of lost attempts are still in native code. What is under test is the output of jobs.
        print(f"adversary: a process died; the rounds of {sum(map(len, lost))} seeds are run again, one by one")
        again, lost = _run_shares([[seed] for share in lost for seed in share], 1)
        rounds += again
        if lost:
            raise RuntimeError(f"a process died in the rounds of seeds {lost}, for the second time")
    return rounds


def _run_shares(shares: Sequence[Sequence[int]], workers: int) -> tuple[list[Round], list[Sequence[int]]]:
    """What came of the shares, and those whose process died."""
    rounds: list[Round] = []
    lost = []
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(run_rounds, share) for share in shares]
        for share, future in zip(shares, futures, strict=True):
            try:
                rounds += future.result()
            except BrokenProcessPool:
                lost.append(share)
    return rounds, lost
