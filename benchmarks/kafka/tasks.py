"""What a measured process is given, and what it says of itself; only the standard library is imported here."""

from __future__ import annotations

from dataclasses import dataclass

from ..nexmark.tasks import Task, Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicTask(Task):
    """`data` is the topic that is read; `answer` the one that is written, empty where rows are forgotten."""

    servers: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicTiming(Timing):
    """`rows` came out at the end, as the engine counts them; the bare loop adds their prices, too."""

    rows: int = 0
    price_sum: int | None = None
