"""Fuzzes targets, each in a process of its own, which begins again where an input has ended it."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .fuzzing import FINDING, HANG_SECONDS, MEMORY_MIB
from .targets import ROOT, Target

OUT = ROOT / "build" / "fuzz"
#: A process that ends so often before its time has found enough.
MOST_ENDS = 20
#: How many times as long as an input may take it may wait: on a busy machine, most of that is for the processor.
_WAITING = 30
#: As libFuzzer names the input that ended it.
_ENDED_BY = {"crash-": "a crash", "timeout-": "a hang", "oom-": "too much memory"}
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
        path = self.path.relative_to(ROOT) if self.path.is_relative_to(ROOT) else self.path
        return f"python -m tests.fuzz {self.target} --input {path}"


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


def fuzz(target: Target, seconds: int, *, out: Path = OUT) -> Iterator[Finding | Report]:
    """Findings as they come, and the report at the end; their inputs are in a folder of the target below `out`."""
    folder = out / target.name
    folder.mkdir(parents=True, exist_ok=True)
    report, known = Report(target.name), set[str]()
    begun = time.monotonic()
    for _ in range(MOST_ENDS):
        left = int(seconds - (time.monotonic() - begun))
        if left < 1:
            break
        process = _Process(target, left, folder, report)
        for finding in process.run():
            if finding.what not in known:
                known.add(finding.what)
                report.findings.append(finding)
                yield finding
        if process.is_whole:
            break
    report.seconds = time.monotonic() - begun
    yield report


class _Process:
    """One process, until its time is over or an input has ended it."""

    def __init__(self, target: Target, seconds: int, folder: Path, report: Report) -> None:
        self._target = target
        self._command = [sys.executable, "-m", "tests.fuzz.fuzzing", target.name, str(seconds), str(folder)]
        self._folder = folder
        self._report = report
        #: Whether its time is over.
        self.is_whole = False

    def run(self) -> Iterator[Finding]:
        before = set(self._folder.iterdir())
        log = self._folder / "log.txt"
        with log.open("w", encoding="utf-8") as told:
            process = subprocess.Popen(self._command, cwd=ROOT, stdout=subprocess.PIPE, stderr=told, text=True)
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith(FINDING):
                    found = json.loads(line.removeprefix(FINDING))
                    yield Finding(self._target.name, found["what"], Path(found["path"]))
            process.stdout.close()
            self.is_whole = process.wait() == 0
        lines = log.read_text(encoding="utf-8", errors="backslashreplace").splitlines()
        _count(lines, self._report)
        ended_by = list(self._ended_by(set(self._folder.iterdir()) - before))
        yield from (finding for finding in ended_by if self._is_finding(finding))
        if not self.is_whole and not ended_by:
            raise RuntimeError(f"fuzzing {self._target.name} ended:\n" + "\n".join(lines[-30:]))

    def _ended_by(self, files: set[Path]) -> Iterator[Finding]:
        for path in sorted(files):
            for prefix, what in _ENDED_BY.items():
                if path.name.startswith(prefix):
                    yield Finding(self._target.name, f"{what}: {path.name}", path)

    def _is_finding(self, finding: Finding) -> bool:
        """A crash is; time and memory may be those of the search itself, which grows, or of a busy machine."""
        return finding.path.name.startswith("crash-") or is_excessive(self._target, finding.path)


def is_excessive(target: Target, path: Path, *, seconds: float = HANG_SECONDS, mebibytes: int = MEMORY_MIB) -> bool:
    """Whether an input alone, in another process, takes more time or memory than any may.

    Of time that of the processor counts, so that a busy machine makes no findings; one that waits may for longer.
    """
    command = [sys.executable, "-m", "tests.fuzz", target.name, "--input", str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        limit = math.ceil(seconds)
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (limit, limit))
        guard = threading.Timer(_WAITING * seconds, _kill, (process.pid,))
        guard.start()
        _, _, used = os.wait4(process.pid, 0)
        is_late = not guard.is_alive() or used.ru_utime + used.ru_stime >= seconds
        guard.cancel()
        # It is waited for already.
        process.returncode = 0
    return is_late or used.ru_maxrss > mebibytes * 1024


def _kill(pid: int) -> None:
    """Not `Popen.kill`, which takes the status of a process that has ended: whoever waits for it would get none."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


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
