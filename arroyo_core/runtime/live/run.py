"""One run of an epoch in one worker: a thread for each wave, and where frames go from it.

A run may begin before the driver asks for it: a wave that has sent the barrier of one run goes on with the rows of the
next, while the waves behind it are still at the first, and while storage is waited for. Frames carry the number of
their run, so that those of a channel which is ahead wait until all channels of a wave have come to their barrier.
"""

from __future__ import annotations

import logging
import struct
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa

from arroyo_core.pipeline.plan import Plan, Routing
from arroyo_core.runtime.clocks import task_clock
from arroyo_core.runtime.confirmation import Confirmation, RunAbandonedError
from arroyo_core.runtime.frames import DRIVER_CHAIN, Frame, FrameKind
from arroyo_core.runtime.live.flow import (
    Delivery,
    Mailbox,
    Window,
    size_of,
    window_bytes,
)
from arroyo_core.runtime.live.wire import Connection, Message, MessageKind
from arroyo_core.runtime.request import EpochRequest, TaskEnvironment
from arroyo_core.runtime.wave import run_wave

logger = logging.getLogger(__name__)

#: Run and wave, then the fields of the frame but its payload.
_FRAME = struct.Struct("<QHiiiiqqb")
#: Run, wave, bytes.
_CREDIT = struct.Struct("<QHQ")


class Layout:
    """What of a plan every run needs to know."""

    def __init__(self, plan: Plan, index: int, workers: int) -> None:
        self.plan = plan
        self.index = index
        self.workers = workers
        self.wave_of = {chain.id: chain.wave for chain in plan.chains}
        #: The waves that have a subtask in this worker.
        self.waves = [wave for wave in range(plan.wave_count) if index < plan.wave_parallelism(wave)]

    def barriers(self, wave: int) -> int:
        """How many a subtask of a wave gets: one along each channel from an earlier wave."""
        return sum(
            1 if edge.routing is Routing.FORWARD else self.plan.nodes[edge.source].parallelism
            for chain in self.plan.wave_chains(wave)
            if self.index < chain.parallelism
            for edge in self.plan.inputs_of(chain.head)
            if self.wave_of[self.plan.chain_of(edge.source).id] < wave
        )

    def attempt(self, run: int, wave: int) -> int:
        """Differs for all tasks of all runs of a driver."""
        return (run * self.plan.wave_count + wave) * self.workers + self.index + 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """Who hears what a run comes to."""

    #: Is given each report.
    report: Callable[[pa.Buffer], None]
    #: There are no more reports.
    done: Callable[[], None]
    #: A wave has ended in a way that nobody can report.
    fail: Callable[[], None]


class Run:
    """Mailboxes and windows of one run; frames of others may come before the run begins here."""

    def __init__(self, number: int, layout: Layout, peers: Mapping[int, Connection]) -> None:
        self.number = number
        self._layout = layout
        self._peers = peers
        self.is_abandoned = threading.Event()
        self._mailboxes = {wave: Mailbox(layout.barriers(wave), on_taken=self._credit(wave)) for wave in layout.waves}
        size = window_bytes(layout.workers)
        self._windows = {
            (worker, wave): Window(size) for worker in range(layout.workers) for wave in range(layout.plan.wave_count)
        }
        self._left = len(layout.waves)
        self._lock = threading.Lock()
        self._confirmation = Confirmation()
        #: What the waves that have begun before the driver asked for the run were told; all of them the same.
        self.early: EpochRequest | None = None
        #: The thread of each wave that has begun.
        self.threads: dict[int, threading.Thread] = {}

    def attempt(self, wave: int) -> int:
        return self._layout.attempt(self.number, wave)

    def confirm(self, request: EpochRequest) -> list[int]:
        """The driver asks for the run; returns the waves that have not begun yet."""
        self._confirmation.give(request)
        return [wave for wave in self._layout.waves if wave not in self.threads]

    def confirmation(self) -> Confirmation | None:
        """What a wave that begins now has to wait for; None where the driver has asked for the run."""
        return None if self._confirmation.is_here else self._confirmation

    def following(self) -> EpochRequest:
        """What the run after this one is told before the driver asks for it; once the driver has asked for this one."""
        request = self._confirmation.wait()
        # Time is the driver's, as it was heard of last, and does not go back.
        now_us = max(task_clock(told).now_us() for told in (request, self.early) if told is not None)
        return request.following(keep=self._layout.plan.checkpoint.keep, timestamp_us=now_us)

    def start(self, wave: int, request: EpochRequest, environment: TaskEnvironment, outcome: Outcome) -> None:
        """Begin a wave."""
        self.threads[wave] = thread = threading.Thread(
            target=self._run_wave,
            args=(wave, request, environment, outcome),
            name=f"arroyo-wave-{wave}",
            daemon=True,
        )
        thread.start()

    def receive(self, message: Message, worker: int) -> None:
        """Take what another worker sent: a frame, or credit."""
        if message.kind is MessageKind.CREDIT:
            _, wave, size = _CREDIT.unpack(message.head)
            self._windows[worker, wave].give(size)
            return
        _, wave, target, chain, number, sender, attempt, seq, kind = _FRAME.unpack(message.head)
        frame = Frame(target, chain, number, sender, attempt, seq, FrameKind(kind), message.payload)
        self._mailboxes[wave].put(Delivery(frame, worker))

    def abandon(self) -> None:
        """Whatever waits in this run ends."""
        self.is_abandoned.set()
        self._confirmation.abandon()
        for window in self._windows.values():
            window.close()
        for mailbox in self._mailboxes.values():
            mailbox.close()

    def _run_wave(
        self,
        wave: int,
        request: EpochRequest,
        environment: TaskEnvironment,
        outcome: Outcome,
    ) -> None:
        try:
            with closing(run_wave(self._layout.plan, wave, request, environment, self._mailboxes[wave])) as frames:  # type: ignore[type-var]
                for frame in frames:
                    if frame.chain == DRIVER_CHAIN:
                        outcome.report(frame.payload)
                    else:
                        self._send(frame)
        except (RunAbandonedError, OSError):
            # Whoever lost the connection sees to the rest.
            return
        except Exception:
            logger.exception("wave %d of worker %d", wave, self._layout.index)
            outcome.fail()
            return
        with self._lock:
            self._left -= 1
            is_last = not self._left
        if is_last:
            outcome.done()

    def _send(self, frame: Frame) -> None:
        wave = self._layout.wave_of[frame.chain]
        size = size_of(frame)
        if size:
            self._windows[frame.target, wave].take(size)
        if frame.target == self._layout.index:
            self._mailboxes[wave].put(Delivery(frame, frame.target))
            return
        head = _FRAME.pack(
            self.number,
            wave,
            frame.target,
            frame.chain,
            frame.input,
            frame.sender,
            frame.attempt,
            frame.seq,
            frame.kind,
        )
        self._peers[frame.target].send(MessageKind.FRAME, head, frame.payload)

    def _credit(self, wave: int) -> Callable[[Delivery], None]:
        def give(delivery: Delivery) -> None:
            size = size_of(delivery.frame)
            if not size:
                return
            if delivery.worker == self._layout.index:
                self._windows[delivery.worker, wave].give(size)
                return
            try:
                self._peers[delivery.worker].send(MessageKind.CREDIT, _CREDIT.pack(self.number, wave, size))
            except OSError as error:
                # Called from inside of the wave, which must not take it for an error of an operator.
                raise RunAbandonedError from error

        return give


def run_number(message: Message) -> int:
    """The run that a frame or a credit belongs to."""
    number: int = struct.unpack_from("<Q", message.head)[0]
    return number
