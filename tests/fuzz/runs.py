"""Fuzzes targets, each in a process of its own, which begins again where an input has ended it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .fuzzing import FINDING
from .targets import ROOT, Target

OUT = ROOT / "build" / "fuzz"
#: A process that ends so often before its time has found enough.
MOST_ENDS = 20
#: As libFuzzer names the input that ended it.
_ENDED_BY = {"crash-": "a crash", "timeout-": "a hang", "oom-": "too much memory", "leak-": "a leak"}
_PROGRESS = re.compile(r"^#(\d+)\t\w+ +cov: (\d+) ft: \d+ corp: (\d+)/")
_EXECUTED = re.compile(r"^stat::number_of_executed_units: (\d+)")
_MEMORY = re.compile(r"^stat::peak_rss_mb: +(\d+)")


@dataclass(frozen=True, slots=True)
class Finding:
    """An input that did harm."""

    target: str
    what: str
    path: Path

    @property
    def repeat(self) -> str:
        return f"python -m tests.fuzz {self.target} --input {self.path.relative_to(ROOT)}"


@dataclass(slots=True)
class Report:
    """What fuzzing one target came to."""

    target: str
    seconds: float = 0
    executions: int = 0
    #: Branches that were reached, and inputs that reach them all.
    coverage: int = 0
    inputs: int = 0
    memory_mib: int = 0
    findings: list[Finding] = field(default_factory=list)

    def __str__(self) -> str:
        rate = self.executions / self.seconds if self.seconds else 0
        return (
            f"{self.target}: {self.seconds:.0f} s, {self.executions:,} executions ({rate:,.0f} a second), coverage "
            f"{self.coverage:,} by {self.inputs:,} inputs, {self.memory_mib} MiB, {len(self.findings)} findings"
        )


def fuzz(target: Target, seconds: int) -> Iterator[Finding | Report]:
    """Findings as they come, and the report at the end."""
    folder = OUT / target.name
    folder.mkdir(parents=True, exist_ok=True)
    report, known = Report(target.name), set[str]()
    begun = time.monotonic()
    for _ in range(MOST_ENDS):
        left = seconds - (time.monotonic() - begun)
        if left < 1:
            break
        for finding in _run(target, int(left), folder, report):
            if finding.what not in known:
                known.add(finding.what)
                report.findings.append(finding)
                yield finding
    report.seconds = time.monotonic() - begun
    yield report


def _run(target: Target, seconds: int, folder: Path, report: Report) -> Iterator[Finding]:
    """One process, until its time is over or an input has ended it."""
    before = set(folder.iterdir())
    log = folder / "log.txt"
    command = [sys.executable, "-m", "tests.fuzz.fuzzing", target.name, str(seconds), str(folder)]
    with log.open("w", encoding="utf-8") as told:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=told, text=True, errors="backslashreplace"
        )
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(FINDING):
                found = json.loads(line.removeprefix(FINDING))
                yield Finding(target.name, found["what"], Path(found["path"]))
        code = process.wait()
    lines = log.read_text(encoding="utf-8", errors="backslashreplace").splitlines()
    _count(lines, report)
    ended_by = [
        Finding(target.name, f"{what}: {path.name}", path)
        for path in sorted(set(folder.iterdir()) - before)
        for prefix, what in _ENDED_BY.items()
        if path.name.startswith(prefix)
    ]
    yield from ended_by
    if code and not ended_by:
        raise RuntimeError(f"fuzzing {target.name} ended with {code}:\n" + "\n".join(lines[-30:]))


def _count(lines: list[str], report: Report) -> None:
    """Take the numbers out of what libFuzzer says."""
    executed, seen = None, 0
    for line in lines:
        if found := _PROGRESS.match(line):
            seen = int(found[1])
            report.coverage = max(report.coverage, int(found[2]))
            report.inputs = max(report.inputs, int(found[3]))
        elif found := _EXECUTED.match(line):
            executed = int(found[1])
        elif found := _MEMORY.match(line):
            report.memory_mib = max(report.memory_mib, int(found[1]))
    report.executions += seen if executed is None else executed
