"""Rounds against the adversary: a seed is a pipeline and all that happens to it; also in processes of their own."""

from __future__ import annotations

import faulthandler
import logging
import os
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context

from arroyo_testing.adversary import Adversary, Deed

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


def share_rounds(seeds: Sequence[int]) -> Iterator[Round]:
    """In processes of their own, on all cores; the seeds that take longest are not all in one."""
    workers = max(1, min(4, os.cpu_count() or 1))
    size = max(1, min(20, -(-len(seeds) // workers)))
    shares = [seeds[start : start + size] for start in range(0, len(seeds), size)]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for rounds in pool.map(run_rounds, shares):
            yield from rounds
