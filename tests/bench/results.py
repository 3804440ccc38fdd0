"""Measurements, and what they come to: medians, spreads, ratios."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of one engine. `wall_s` is the whole process: the interpreter, Spark's start, the job."""

    case: str
    engine: str
    job_s: float
    wall_s: float
    epochs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All runs of one engine in one case."""

    case: str
    engine: str
    job_s: float
    fastest_s: float
    slowest_s: float
    wall_s: float
    epochs: int


@dataclass(slots=True, kw_only=True)
class Results:
    events: int
    rows: int = 0
    answer_rows: int = 0
    input_bytes: int = 0
    runs: list[Run] = field(default_factory=list)

    def summaries(self, case: str) -> list[Summary]:
        """In the order in which the engines first ran."""
        engines = dict.fromkeys(run.engine for run in self.runs if run.case == case)
        return [self._summary(case, engine) for engine in engines]

    def _summary(self, case: str, engine: str) -> Summary:
        runs = [run for run in self.runs if (run.case, run.engine) == (case, engine)]
        job_s = [run.job_s for run in runs]
        return Summary(
            case=case,
            engine=engine,
            job_s=median(job_s),
            fastest_s=min(job_s),
            slowest_s=max(job_s),
            wall_s=median(run.wall_s for run in runs),
            epochs=max(run.epochs for run in runs),
        )

    def ratio(self, case: str, engine: str) -> float | None:
        """How many times the rows per second of `engine` Arroyo has; None where one of them did not run."""
        by_engine = {summary.engine: summary.job_s for summary in self.summaries(case)}
        if "arroyo" not in by_engine or engine not in by_engine:
            return None
        return by_engine[engine] / by_engine["arroyo"]

    def write_json(self, path: Path) -> None:
        document = {"machine": machine(), "versions": versions(), **asdict(self)}
        path.write_text(json.dumps(document, indent=2) + "\n")


def machine() -> dict[str, object]:
    """What the numbers depend on; nothing that names the machine."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = models[0] if models else model
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "memory_gib": round(memory_gib, 1),
        "day": f"{datetime.now(UTC):%Y-%m-%d}",
    }


def versions() -> dict[str, str]:
    packages = ("arroyo-core", "arroyo-filesystem", "arroyo-std", "pyarrow", "pyspark", "duckdb")
    return {"python": platform.python_version(), **{package: version(package) for package in packages}}
