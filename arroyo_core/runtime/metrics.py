"""What each operator did: rows, bytes, batches, and the time spent in it alone."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import pyarrow as pa

#: Warnings beyond this number are dropped; each text is kept once.
MAX_WARNINGS = 20


@dataclass(slots=True)
class OperatorMetrics:
    rows_received: int = 0
    rows_sent: int = 0
    batches_received: int = 0
    batches_sent: int = 0
    bytes_received: int = 0
    bytes_sent: int = 0
    busy_ns: int = 0
    counters: dict[str, int] = field(default_factory=dict)
    warnings: dict[str, None] = field(default_factory=dict)

    def receive(self, batch: pa.RecordBatch) -> None:
        self.rows_received += batch.num_rows
        self.batches_received += 1
        self.bytes_received += batch.nbytes

    def send(self, batch: pa.RecordBatch) -> None:
        self.rows_sent += batch.num_rows
        self.batches_sent += 1
        self.bytes_sent += batch.nbytes

    def count(self, name: str, amount: int) -> None:
        self.counters[name] = self.counters.get(name, 0) + amount

    def warn(self, message: str) -> None:
        if len(self.warnings) < MAX_WARNINGS:
            self.warnings[message] = None


class Stopwatch:
    """Charges time to whoever runs now: an operator that calls the next one stops its own clock."""

    def __init__(self) -> None:
        self._running: list[OperatorMetrics] = []
        self._since = time.perf_counter_ns()

    def enter(self, metrics: OperatorMetrics) -> None:
        self._charge()
        self._running.append(metrics)

    def leave(self) -> None:
        self._charge()
        self._running.pop()

    def current(self) -> OperatorMetrics | None:
        """Whose code runs now; asked from another thread."""
        running = self._running[-1:]
        return running[0] if running else None

    def _charge(self) -> None:
        now = time.perf_counter_ns()
        if self._running:
            self._running[-1].busy_ns += now - self._since
        self._since = now
