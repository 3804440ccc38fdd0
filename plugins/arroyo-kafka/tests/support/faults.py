"""Clients whose calls to the cluster fail when a test says so: before they are done, or after."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from arroyo_kafka.client import Client
from confluent_kafka import KafkaError, KafkaException

#: Calls that wait for a broker, or hand something over to be sent.
BROKER_CALLS = frozenset(
    {
        "init_transactions",
        "begin_transaction",
        "list_topics",
        "produce",
        "produce_batch",
        "flush",
        "send_offsets_to_transaction",
        "commit_transaction",
        "abort_transaction",
        "committed",
        "consume",
        "get_watermark_offsets",
    }
)


class Crash(BaseException):
    """The process is gone: nothing may handle this."""


class Fault(StrEnum):
    """What happens at a call."""

    CRASH_BEFORE = "the process dies before the call"
    CRASH_AFTER = "the process dies when the call is done"
    REFUSED = "the call fails, nothing is done"
    ANSWER_LOST = "the call is done, and its answer is lost"


@dataclass(slots=True)
class Calls:
    """Counts calls, and does something at one of them."""

    #: Given the number of the call, from 1, and what does it; returns its result.
    at: Callable[[int, Callable[[], Any]], Any] = lambda number, call: call()
    names: list[str] = field(default_factory=list)
    #: A process that died does nothing more, whatever its code still says.
    is_dead: bool = False

    def make(self, name: str, call: Callable[[], Any]) -> Any:
        if self.is_dead:
            raise Crash
        if name == "consume" and self.names[-1:] == [name]:
            # One read, in as many steps as it takes.
            return call()
        self.names.append(name)
        return self.at(len(self.names), call)

    def fail(self, number: int, fault: Fault) -> None:
        """Have call `number` fail so."""

        def at(now: int, call: Callable[[], Any]) -> Any:
            if now != number:
                return call()
            if fault in (Fault.CRASH_AFTER, Fault.ANSWER_LOST):
                call()
            if fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER):
                self.is_dead = True
                raise Crash
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "a fault of the test", retriable=True))

        self.at = at


class FaultyClient(Client):
    """A cluster as a process with faults sees it."""

    def __init__(self, bootstrap_servers: str, calls: Calls, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(bootstrap_servers, settings or {})
        object.__setattr__(self, "calls", calls)
        #: What a process that died had open stays open, as for the cluster.
        object.__setattr__(self, "made", [])

    def consumer(self, own: Mapping[str, Any]) -> Any:
        return self._watch(super().consumer(own))

    def producer(self, own: Mapping[str, Any]) -> Any:
        return self._watch(super().producer(own))

    def _watch(self, made: Any) -> Any:
        self.made.append(made)
        return Watched(made, self.calls)

    calls: Calls
    made: list[Any]


class Watched:
    """A client of librdkafka; its calls to the cluster are counted."""

    def __init__(self, inner: Any, calls: Calls) -> None:
        self._inner = inner
        self._calls = calls

    def __len__(self) -> int:
        return len(self._inner)

    def __getattr__(self, name: str) -> Any:
        inner = getattr(self._inner, name)
        if name in BROKER_CALLS:
            return lambda *args, **options: self._calls.make(name, lambda: inner(*args, **options))
        if name in ("close", "purge") and self._calls.is_dead:
            return lambda *args, **options: None
        return inner
