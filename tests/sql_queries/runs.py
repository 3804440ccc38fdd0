"""Checks many queries in several processes."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path

from .checking import Checker, Finding, Verdict

#: So many queries are one task of a process.
CHUNK = 50


@dataclass(slots=True)
class Tally:
    """How many queries came to what, and why those were refused that were."""

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.verdicts.update(other.verdicts)
        self.refusals.update(other.refusals)
        self.findings.extend(other.findings)

    @property
    def count(self) -> int:
        return sum(self.verdicts.values())


def run(seed: int, first: int, last: int, *, processes: int | None = None) -> Iterator[Tally]:
    """Check the queries from `first` up to `last`; what came of each part of them, in any order.

    A process that dies is a finding of the first query of its part.
    """
    starts = range(first, last, CHUNK)
    # Spawned: threads of native libraries do not survive a fork.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes or os.cpu_count(), mp_context=context) as pool:
        parts = {pool.submit(check_part, seed, start, min(start + CHUNK, last)): start for start in starts}
        for part in as_completed(parts):
            try:
                yield part.result()
            except BrokenProcessPool as error:
                text = f"a process died in the {CHUNK} queries from here on, or another one did: {error}"
                finding = Finding(parts[part], Verdict.BROKEN, "", "", text)
                yield Tally(Counter({Verdict.BROKEN: 1}), Counter(), [finding])


def check_part(seed: int, first: int, last: int) -> Tally:
    """Check these queries in this process."""
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="sql-queries-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checker = Checker(Path(folder))
        for number in range(first, last):
            found = checker.find(seed, number)
            tally.verdicts[found.verdict] += 1
            if isinstance(found, Finding):
                tally.findings.append(found)
            elif found.verdict is Verdict.REFUSED:
                tally.refusals[found.text] += 1
        checker.close()
    return tally
