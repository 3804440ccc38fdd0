"""What each operator did: rows, bytes, batches, and the time spent in it alone."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from arroyo_core.runtime.latest import LatestRows
from arroyo_core.runtime.metric import Kind, measured, metrics_of

#: Warnings beyond this number are dropped; of each topic the last text is kept.
MAX_WARNINGS = 20
#: What operators count themselves is one metric, with their name for it as a label.
OWN_COUNTERS = "arroyo_worker_counter"
OWN_COUNTERS_HELP = "What operators count themselves"


@dataclass(slots=True)
class OperatorMetrics:
    """What an operator did in an epoch. A new metric is a field that is `measured`, and whoever counts it."""

    rows_received: int = measured(
        "Rows received",
        unit="rows",
        kind=Kind.COUNTER,
        prometheus="arroyo_worker_messages_recv",
        key="rows_in",
        running="arroyo_running_messages_recv",
    )
    rows_sent: int = measured(
        "Rows sent",
        unit="rows",
        kind=Kind.COUNTER,
        prometheus="arroyo_worker_messages_sent",
        key="rows_out",
        running="arroyo_running_messages_sent",
    )
    batches_received: int = measured(
        "Batches received", unit="batches", kind=Kind.COUNTER, prometheus="arroyo_worker_batches_recv"
    )
    batches_sent: int = measured(
        "Batches sent", unit="batches", kind=Kind.COUNTER, prometheus="arroyo_worker_batches_sent"
    )
    bytes_received: int = measured(
        "Bytes received",
        unit="bytes",
        kind=Kind.COUNTER,
        prometheus="arroyo_worker_bytes_recv",
        key="bytes_in",
        running="arroyo_running_bytes_recv",
    )
    bytes_sent: int = measured(
        "Bytes sent",
        unit="bytes",
        kind=Kind.COUNTER,
        prometheus="arroyo_worker_bytes_sent",
        key="bytes_out",
        running="arroyo_running_bytes_sent",
    )
    busy_ns: int = measured(
        "Time in the operator",
        unit="seconds",
        kind=Kind.COUNTER,
        prometheus="arroyo_worker_busy_seconds",
        key="busy_s",
        running="arroyo_running_busy_seconds",
        per_unit=10**9,
    )
    backlog: int = measured(
        "Rows that a source knows of and has not read",
        unit="rows",
        prometheus="arroyo_worker_backlog",
        key="backlog",
        running="arroyo_running_backlog",
    )
    cache_bytes: int = measured(
        "What the warm cache of the host keeps for the subtask",
        unit="bytes",
        prometheus="arroyo_worker_cache_bytes",
        key="cache_bytes",
    )
    counters: dict[str, int] = field(default_factory=dict)
    #: By topic.
    warnings: dict[str, str] = field(default_factory=dict)
    #: Where somebody looks at its rows.
    latest: LatestRows | None = field(default=None, compare=False, repr=False)

    @classmethod
    def from_values(cls, values: Iterable[int]) -> OperatorMetrics:
        """What `values` gave, in another process."""
        metrics = cls()
        for name, value in zip(metrics_of(cls), values, strict=False):
            setattr(metrics, name, value)
        return metrics

    def values(self) -> list[int]:
        """All that is measured, in the order of the fields."""
        return [getattr(self, name) for name in metrics_of(type(self))]

    def add(self, other: OperatorMetrics) -> None:
        """Those of another subtask in the same epoch."""
        for name in metrics_of(type(self)):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.add_notes(other)

    def add_epoch(self, other: OperatorMetrics) -> None:
        """Those of a later epoch: counters grow, a gauge is what it was last."""
        for name, metric in metrics_of(type(self)).items():
            before = getattr(self, name) if metric.kind is Kind.COUNTER else 0
            setattr(self, name, before + getattr(other, name))
        self.add_notes(other)

    def add_notes(self, other: OperatorMetrics) -> None:
        """What operators count and warn of themselves."""
        for name, amount in other.counters.items():
            self.count(name, amount)
        for topic, warning in other.warnings.items():
            self.warn(warning, topic=topic)

    def receive(self, batch: pa.RecordBatch) -> None:
        self.rows_received += batch.num_rows
        self.batches_received += 1
        self.bytes_received += batch.nbytes
        if self.latest is not None and self.latest.is_sink:
            self.latest.add(batch)

    def send(self, batch: pa.RecordBatch) -> None:
        self.rows_sent += batch.num_rows
        self.batches_sent += 1
        self.bytes_sent += batch.nbytes
        if self.latest is not None and not self.latest.is_sink:
            self.latest.add(batch)

    def count(self, name: str, amount: int) -> None:
        self.counters[name] = self.counters.get(name, 0) + amount

    def warn(self, message: str, *, topic: str | None = None) -> None:
        topic = message if topic is None else topic
        if topic in self.warnings or len(self.warnings) < MAX_WARNINGS:
            self.warnings[topic] = message


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
