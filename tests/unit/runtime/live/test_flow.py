"""Frames between waves of live workers: bounded, complete, and never stuck."""

from __future__ import annotations

import queue
import random
import threading

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.runtime.confirmation import RunAbandonedError
from arroyo_core.runtime.frames import EMPTY, Frame, FrameKind
from arroyo_core.runtime.live.flow import Delivery, Mailbox, Window, size_of, window_bytes


def frame(kind: FrameKind = FrameKind.DATA, *, size: int = 10, seq: int = 0, sender: int = 0) -> Frame:
    payload = pa.py_buffer(b"x" * size) if kind is FrameKind.DATA else EMPTY
    return Frame(0, 0, 0, sender, 1, seq, kind, payload)


def test_only_rows_take_credit() -> None:
    batch = pa.record_batch({"n": [1, 2]})
    assert size_of(frame(size=7)) == 7
    assert size_of(Frame(0, 0, 0, 0, 1, 0, FrameKind.DATA, batch)) == batch.nbytes
    assert [size_of(frame(kind)) for kind in FrameKind if kind is not FrameKind.DATA] == [0] * 5


@given(sizes=st.lists(st.integers(1, 50), max_size=40), window=st.integers(1, 60), data=st.data())
def test_no_more_is_under_way_than_a_window_and_one_frame(sizes: list[int], window: int, data: st.DataObject) -> None:
    """A sender takes whenever it need not wait; the receiver gives back what it takes, in order."""
    opened = Window(window)
    under_way: list[int] = []
    for size in sizes:
        while opened.is_spent:
            opened.give(under_way.pop(0))
        opened.take(size)
        under_way.append(size)
        assert sum(under_way[:-1]) < window
        if data.draw(st.booleans()) and under_way:
            opened.give(under_way.pop(0))


def test_who_waits_for_credit_goes_on_when_it_comes_or_the_run_ends() -> None:
    window = Window(1)
    window.take(5)
    told: queue.Queue[str] = queue.Queue()

    def send() -> None:
        try:
            window.take(5)
            told.put("sent")
            window.take(5)
        except RunAbandonedError:
            told.put("abandoned")

    threading.Thread(target=send, daemon=True).start()
    window.give(5)
    assert told.get(timeout=30) == "sent"
    window.close()
    assert told.get(timeout=30) == "abandoned"
    with pytest.raises(RunAbandonedError):
        window.take(1)


def test_a_mailbox_ends_with_its_last_barrier_and_says_when_it_is_empty() -> None:
    taken: list[Delivery] = []
    mailbox = Mailbox(2, on_taken=taken.append)
    frames = [frame(seq=0), frame(FrameKind.BARRIER, seq=1), frame(sender=1), frame(FrameKind.BARRIER, sender=1, seq=1)]
    found = iter(mailbox)
    assert next(found) is None
    for item in frames:
        mailbox.put(Delivery(item, item.sender))
    assert [item for item in found if item is not None] == frames
    assert [delivery.worker for delivery in taken] == [0, 0, 1, 1]


def test_a_mailbox_without_senders_is_over_at_once() -> None:
    assert list(Mailbox(0, on_taken=lambda _: None)) == []


def test_a_mailbox_of_a_run_that_is_given_up_raises() -> None:
    mailbox = Mailbox(1, on_taken=lambda _: None)
    mailbox.close()
    with pytest.raises(RunAbandonedError):
        list(mailbox)


@pytest.mark.parametrize("seed", range(20))
def test_waves_that_send_to_each_other_are_never_stuck(seed: int) -> None:
    """Any number of workers and waves, any skew, windows of a few bytes: all frames come, in order."""
    rng = random.Random(seed)
    workers, waves, window = rng.randint(1, 4), rng.randint(2, 4), rng.randint(1, 40)
    frames_each = rng.randint(1, 30)
    hot = rng.randrange(workers)
    windows = {
        (sender, target, wave): Window(window)
        for sender in range(workers)
        for target in range(workers)
        for wave in range(waves)
    }
    received: dict[tuple[int, int], list[Delivery]] = {}

    def credit(target: int, wave: int) -> Mailbox:
        def give(delivery: Delivery) -> None:
            if size_of(delivery.frame):
                windows[delivery.worker, target, wave].give(size_of(delivery.frame))

        # Each wave hears of all waves before it.
        return Mailbox(workers * wave, on_taken=give)

    boxes = {(worker, wave): credit(worker, wave) for worker in range(workers) for wave in range(waves)}

    def run(worker: int, wave: int) -> None:
        local = random.Random(f"{seed}.{worker}.{wave}")
        seqs: dict[tuple[int, int], int] = {}

        def send(target: int, later: int, kind: FrameKind) -> None:
            seq = seqs.get((target, later), 0)
            seqs[target, later] = seq + 1
            sent = Frame(target, wave, 0, worker, 1, seq, kind, EMPTY if kind is FrameKind.BARRIER else payload)
            if size_of(sent):
                windows[worker, target, later].take(size_of(sent))
            boxes[target, later].put(Delivery(sent, worker))

        def work() -> None:
            for later in range(wave + 1, waves):
                target = hot if local.random() < 0.7 else local.randrange(workers)
                send(target, later, FrameKind.DATA)

        payload = pa.py_buffer(b"x" * local.randint(1, 60))
        found = received.setdefault((worker, wave), [])
        for item in boxes[worker, wave]:
            if item is not None:
                found.append(Delivery(item, item.sender))
                if item.kind is FrameKind.DATA:
                    work()
        for _ in range(frames_each if wave == 0 else 0):
            work()
        for later in range(wave + 1, waves):
            for target in range(workers):
                send(target, later, FrameKind.BARRIER)

    threads = [threading.Thread(target=run, args=place, daemon=True) for place in boxes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "stuck"
    for found in received.values():
        channels: dict[tuple[int, int], list[int]] = {}
        for delivery in found:
            channels.setdefault((delivery.worker, delivery.frame.chain), []).append(delivery.frame.seq)
        assert all(seqs == list(range(len(seqs))) for seqs in channels.values())


def test_all_windows_of_a_mailbox_together_are_bounded() -> None:
    assert window_bytes(1) == 64 << 20
    assert window_bytes(64) * 64 == 64 << 20
    assert window_bytes(300) == 1 << 20
