"""One run: starts the job, looks at it for its time, stops it, and says what changed."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.nexmark.machine import about

from ..integration.processes import end_session
from .job import Places, Run
from .plot import draw
from .quarters import MIB, Change, Epoch, compare, measures, table, warm_up_s
from .samples import WORKER, Sample, Sampler
from .works import Work, lateness

#: The first epoch waits for Spark to start.
START_S = 300.0


class SoakError(Exception):
    """The job did not do what it must."""


@dataclass(slots=True)
class _Lines:
    """Reads what the job prints, as it comes."""

    run: Run
    started_s: float
    epochs: list[Epoch] = field(default_factory=list)
    end: dict[str, Any] | None = None
    has_begun: threading.Event = field(default_factory=threading.Event)

    def read(self) -> None:
        for line in self.run.lines:
            found = json.loads(line)
            if found["event"] == "end":
                self.end = found
            else:
                self.epochs.append(
                    Epoch(
                        time_s=time.monotonic() - self.started_s,
                        number=found["epoch"],
                        duration_s=found["duration_s"],
                        commit_s=found["commit_s"],
                        source_rows=found["source_rows"],
                    )
                )
                self.has_begun.set()
        self.has_begun.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a soak came to."""

    work: str
    interval_ms: int
    judged: Sequence[str]
    most_worker_mib: float
    has_peaks: bool
    #: What is to be told besides.
    remarks: list[str]
    duration_s: float
    samples: list[Sample]
    epochs: list[Epoch]
    end: dict[str, Any]
    #: The rows that running values counted, by what was committed.
    rows: int
    about: dict[str, object]

    @property
    def start_s(self) -> float:
        """After the warm-up."""
        return warm_up_s(self.duration_s)

    def changes(self) -> list[Change]:
        found = measures(self.samples, self.epochs)
        return [
            compare(
                replace(
                    measure,
                    is_judged=measure.is_judged and measure.name.startswith(tuple(self.judged)),
                    has_peaks=self.has_peaks and measure.name.startswith("memory: "),
                ),
                self.start_s,
                self.duration_s,
            )
            for measure in found
        ]

    @property
    def peak_worker_mib(self) -> float:
        """The most that all Python workers took together when somebody looked."""
        return max(sample.pss_bytes.get(WORKER, 0) for sample in self.samples) / MIB

    def problems(self) -> list[str]:
        """What must hold however short the run was."""
        found = []
        if self.end["outcome"] != "stopped" or self.end["restarts"]:
            found.append(f"the job {self.end['outcome']} with {self.end['restarts']} restarts: {self.end['error']}")
        if self.rows != self.end["source_rows"]:
            found.append(f"sinks have {self.rows} rows of the {self.end['source_rows']} that sources read")
        if self.peak_worker_mib > self.most_worker_mib:
            found.append(
                f"Python workers took {self.peak_worker_mib:,.0f} MiB, and may take {self.most_worker_mib:,.0f}"
            )
        return found

    def grown(self) -> list[str]:
        """What is more in the last quarter than in the first, by over 10 %."""
        return [change.measure.name for change in self.changes() if change.measure.is_judged and not change.is_flat]

    def summary(self) -> str:
        return (
            f"{self.work}: {self.duration_s / 60:.1f} minutes, {len(self.epochs):,} epochs of {self.interval_ms} ms, "
            f"{self.end['source_rows']:,} rows; commit {self.about['commit']}, {self.about['day']}"
        )

    def report(self) -> str:
        remarks = [f"at most {self.peak_worker_mib:,.0f} MiB in Python workers", *self.remarks]
        return f"{self.summary()}; {'; '.join(remarks)}\n\n{table(self.changes())}\n"

    def save(self, json_file: Path, plot: Path) -> None:
        json_file.parent.mkdir(parents=True, exist_ok=True)
        plot.parent.mkdir(parents=True, exist_ok=True)
        json_file.write_text(json.dumps(asdict(self)))
        title = f"Soak: {self.summary()}"
        plot.write_text(draw(self.changes(), start_s=self.start_s, end_s=self.duration_s, title=title))


def soak(work: Work, folder: Path, *, duration_s: float, sample_s: float) -> Outcome:
    """Run the job in `folder`, which must be empty or missing, for so long after its first epoch."""
    with tempfile.TemporaryDirectory(prefix="soak-", ignore_cleanup_errors=True) as temp:
        places = Places(folder, Path(temp))
        places.make()
        return _soak(work, places, duration_s, sample_s)


def _soak(work: Work, places: Places, duration_s: float, sample_s: float) -> Outcome:
    run = Run(places, work.document(places))
    try:
        lines = _Lines(run, time.monotonic())
        reader = threading.Thread(target=lines.read, name="soak-lines", daemon=True)
        reader.start()
        if not lines.has_begun.wait(START_S) or not lines.epochs:
            raise SoakError(f"the job has no epoch:\n{run.said()}")
        lines.started_s += lines.epochs[0].time_s
        sampler = Sampler(run.session, places, sample_s, lambda: len(lines.epochs), lines.started_s)
        sampler.start()
        reader.join(duration_s)
        sampler.stop()
        if not reader.is_alive():
            raise SoakError(f"the job ended by itself:\n{run.said()}")
        measured_s = time.monotonic() - lines.started_s
        run.stop()
        reader.join()
        if lines.end is None:
            raise SoakError(f"the job did not say how it ended:\n{run.said()}")
    finally:
        end_session(run.session)
        run.close()
    return Outcome(
        work=work.name,
        interval_ms=work.interval_ms,
        judged=work.judged,
        most_worker_mib=work.most_worker_mib,
        has_peaks=work.has_peaks,
        remarks=_uneven(sampler.samples[-1], places) if work.is_uneven else [],
        duration_s=measured_s,
        samples=sampler.samples,
        # The first one waited for Spark, and its time is that of the start.
        epochs=lines.epochs[1:],
        end=lines.end,
        rows=work.counted_rows(places),
        about=about(),
    )


def _uneven(last: Sample, places: Places) -> list[str]:
    used = " and ".join(f"{cpu_s:.0f} s" for cpu_s in sorted(last.worker_cpu_s.values(), reverse=True))
    return [f"workers had {used} of the processor", lateness(places)]
