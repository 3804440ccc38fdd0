"""From the producer's clock to a consumer of committed messages: a steady stream through q1, from topic to topic."""

from __future__ import annotations

import itertools
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from confluent_kafka import Consumer, Producer

from ..modules import ENVIRONMENT, module_command
from ..nexmark.processes import BenchError, become_subreaper, inherited_environment, kill_session
from . import topics
from .cases import PARTITIONS, SENT_US, Engine
from .measuring import Measurer
from .tasks import TopicTask

RATE = 2_000
#: Before and while it is measured.
WARM_UP_S = 8
MEASURED_S = 20
#: Between two lots of messages of the producer.
STEP_S = 0.01
#: For the engine's first message, and for the last.
PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Milliseconds of all messages that were produced after the warm-up; `wrong` where they did not come once each."""

    engine: str
    messages: int = 0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    wrong: str = ""


class _Sent(msgspec.Struct):
    sent_us: int


def measure(measurer: Measurer, engine: Engine, *, seconds: int = MEASURED_S) -> Latency:
    """Run the engine until all messages have come out."""
    measurer.build.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="latency-", dir=measurer.build) as name:
        folder = Path(name)
        task = TopicTask(
            case="latency",
            data=f"in-{folder.name}",
            answer=f"out-{folder.name}",
            scratch=str(folder / "scratch"),
            format="json",
            servers=measurer.servers,
        )
        (folder / "scratch").mkdir()
        task.write(folder / "task.json")
        topics.create(task.servers, task.data, task.answer)
        consumer = topics.committed(task.servers, task.answer)
        stream = _Stream(task, [row for row, _ in zip(topics.bids(measurer.dataset), range(1000), strict=False)])
        try:
            with _running(measurer, engine, folder):
                return _measure(engine, stream, consumer, seconds)
        except BenchError as error:
            return Latency(engine=engine.name, wrong=f"failed: {error}")
        finally:
            stream.stop()
            consumer.close()
            topics.delete(task.servers, task.data, task.answer)


def _measure(engine: Engine, stream: _Stream, consumer: Consumer, seconds: int) -> Latency:
    _wait_for_first(stream, consumer)
    begun_us = time.time_ns() // 1000 + WARM_UP_S * 1_000_000
    stream.start(WARM_UP_S + seconds)
    found: list[tuple[int, int]] = []
    last_s = time.monotonic() + WARM_UP_S + seconds + PATIENCE_S
    while stream.is_running or len(found) < len(stream.sent_us):
        if time.monotonic() > last_s:
            break
        values = topics.values_of(consumer.consume(RATE, STEP_S))
        now_us = time.time_ns() // 1000
        moments = [msgspec.json.decode(value, type=_Sent).sent_us for value in values]
        found += [(moment, now_us - moment) for moment in moments if moment >= stream.begun_us]
    expected, seen = Counter(stream.sent_us), Counter(moment for moment, _ in found)
    if expected != seen:
        wrong = f"{(expected - seen).total()} messages are missing, {(seen - expected).total()} came too often"
        return Latency(engine=engine.name, wrong=wrong)
    waits_ms = np.array([wait for moment, wait in found if moment >= begun_us]) / 1000
    p50_ms, p99_ms = np.percentile(waits_ms, [50, 99])
    return Latency(engine=engine.name, messages=len(waits_ms), p50_ms=float(p50_ms), p99_ms=float(p99_ms))


def _wait_for_first(stream: _Stream, consumer: Consumer) -> None:
    """Send a message now and then until one comes out: the engine is up."""
    last_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < last_s:
        stream.send(1)
        if topics.values_of(consumer.consume(RATE, 1.0)):
            return
    raise BenchError(f"no message came out within {PATIENCE_S:.0f} s")


class _Stream:
    """Produces bids at a steady rate, in a thread of its own; each says when it was produced."""

    def __init__(self, task: TopicTask, rows: list[dict[str, object]]) -> None:
        self._producer = Producer({"bootstrap.servers": task.servers, "linger.ms": 1})
        self._topic = task.data
        self._rows = itertools.cycle(rows)
        self._partitions = itertools.cycle(range(PARTITIONS))
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()
        #: Of the messages of the steady stream.
        self.begun_us = 0
        self.sent_us: list[int] = []

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self, seconds: int) -> None:
        self.begun_us = time.time_ns() // 1000
        self._thread = threading.Thread(target=self._run, args=(seconds,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def send(self, count: int) -> list[int]:
        """Send messages; returns the moments that they hold."""
        moments = []
        for _ in range(count):
            moments.append(time.time_ns() // 1000)
            value = msgspec.json.encode({**next(self._rows), SENT_US: moments[-1]})
            self._producer.produce(self._topic, value, partition=next(self._partitions))
        self._producer.poll(0)
        return moments

    def _run(self, seconds: int) -> None:
        started_s = time.monotonic()
        total = seconds * RATE
        while len(self.sent_us) < total and not self._stopped.wait(STEP_S):
            due = min(total, round((time.monotonic() - started_s) * RATE))
            self.sent_us += self.send(due - len(self.sent_us))
        self._producer.flush(PATIENCE_S)


@contextmanager
def _running(measurer: Measurer, engine: Engine, folder: Path) -> Iterator[None]:
    """The engine, which is killed at the end: it has none of its own."""
    become_subreaper()
    command = module_command(
        engine.module, folder / "task.json", folder / "timing.json", python=measurer.python(engine)
    )
    log = folder / "process.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=inherited_environment() | ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield
    except BenchError as error:
        raise BenchError(f"{error}\n{log.read_text(errors='replace')[-1500:]}") from error
    finally:
        kill_session(process.pid)
        process.wait()
