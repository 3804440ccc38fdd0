"""Credit and alignment in random graphs, with any order of events: all comes, in order, in bounded memory."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.runtime.frames import FrameKind
from arroyo_core.runtime.live.credit import Alignment, Credit

RUNS = 3


@dataclass(frozen=True)
class Graph:
    """Waves of several chains; an edge leads from a chain to one of a later wave, and some chains have several."""

    workers: int
    #: The wave of each chain.
    waves: list[int]
    edges: list[tuple[int, int]]
    credit: int
    #: The worker that gets most of the rows.
    hot: int


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    workers = draw(st.integers(1, 3))
    waves = sorted(draw(st.lists(st.integers(1, 3), min_size=1, max_size=5)))
    waves = [0, *waves]
    edges = []
    for chain, wave in enumerate(waves):
        before = [other for other, earlier in enumerate(waves) if earlier < wave]
        if before:
            # Several inputs from one chain, or from chains that have one before them in common, are diamonds.
            inputs = draw(st.lists(st.sampled_from(before), min_size=1, max_size=3))
            edges += [(other, chain) for other in inputs]
    return Graph(workers, waves, edges, draw(st.integers(1, 20)), draw(st.integers(0, workers - 1)))


@dataclass
class Frame:
    kind: FrameKind
    edge: int
    sender: int
    seq: int
    size: int = 0


@dataclass
class Task:
    """One wave of a worker in one run: what it still has to send before it takes its next frame."""

    alignment: Alignment
    mailbox: deque[Frame] = field(default_factory=deque)
    unsent: deque[tuple[int, int, Frame]] = field(default_factory=deque)
    has_begun: bool = False
    has_sent_barriers: bool = False

    @property
    def is_over(self) -> bool:
        return self.has_sent_barriers and not self.unsent


class Flow:
    """Workers that run a graph, one step at a time, in any order. A wave is in one run after the other."""

    def __init__(self, graph: Graph, seed: int) -> None:
        self.graph = graph
        self.rng = random.Random(seed)
        self.wave_count = max(graph.waves) + 1
        places = [
            (run, worker, wave) for run in range(RUNS) for worker in range(graph.workers) for wave in self.all_waves
        ]
        self.tasks = {place: Task(Alignment(self.channels(place[2]))) for place in places}
        self.credits = {
            (run, sender, target, wave): Credit(graph.credit)
            for run, sender, wave in places
            for target in range(graph.workers)
        }
        self.under_way: dict[tuple[int, int, int, int], list[int]] = {key: [] for key in self.credits}
        self.seqs: dict[tuple[int, int, int, int], int] = {}
        self.received: dict[tuple[int, int, int, int], list[int]] = {}

    @property
    def all_waves(self) -> range:
        return range(self.wave_count)

    def channels(self, wave: int) -> int:
        inputs = [edge for edge in self.graph.edges if self.graph.waves[edge[1]] == wave]
        return len(inputs) * self.graph.workers

    def run(self) -> None:
        while not all(task.is_over for task in self.tasks.values()):
            possible = [place for place in self.tasks if self.can_step(place)]
            assert possible, "stuck"
            self.step(self.rng.choice(possible))

    def can_step(self, place: tuple[int, int, int]) -> bool:
        run, worker, wave = place
        task = self.tasks[place]
        if task.is_over or (run > 0 and not self.tasks[run - 1, worker, wave].is_over):
            return False
        if task.unsent:
            target, later, frame = task.unsent[0]
            return not frame.size or not self.credits[run, worker, target, later].is_spent
        if task.mailbox or not task.has_begun:
            return True
        # A run ends only when the one before has ended everywhere: then the driver asks for it.
        is_asked_for = run == 0 or all(last.is_over for key, last in self.tasks.items() if key[0] == run - 1)
        return task.alignment.is_complete and is_asked_for

    def step(self, place: tuple[int, int, int]) -> None:
        run, worker, wave = place
        task = self.tasks[place]
        if task.unsent:
            self.send(run, worker, *task.unsent.popleft())
        elif not task.has_begun:
            task.has_begun = True
            for _ in range(self.rng.randint(0, 8) if wave == 0 else 0):
                self.emit(place)
        elif task.mailbox:
            self.take(place, task.mailbox.popleft())
        else:
            task.has_sent_barriers = True
            for target in range(self.graph.workers):
                self.put_all(place, target, FrameKind.BARRIER)

    def take(self, place: tuple[int, int, int], frame: Frame) -> None:
        run, worker, wave = place
        self.received.setdefault((run, frame.edge, frame.sender, worker), []).append(frame.seq)
        self.tasks[place].alignment.take(frame.kind)
        if frame.size:
            self.credits[run, frame.sender, worker, wave].give(frame.size)
            self.under_way[run, frame.sender, worker, wave].remove(frame.size)
            self.emit(place)

    def emit(self, place: tuple[int, int, int]) -> None:
        target = self.graph.hot if self.rng.random() < 0.7 else self.rng.randrange(self.graph.workers)
        self.put_all(place, target, FrameKind.DATA)

    def put_all(self, place: tuple[int, int, int], target: int, kind: FrameKind) -> None:
        run, worker, wave = place
        for edge, (source, sink) in enumerate(self.graph.edges):
            if self.graph.waves[source] == wave:
                channel = (run, edge, worker, target)
                seq = self.seqs.get(channel, 0)
                self.seqs[channel] = seq + 1
                size = self.rng.randint(1, 30) if kind is FrameKind.DATA else 0
                later = self.graph.waves[sink]
                self.tasks[place].unsent.append((target, later, Frame(kind, edge, worker, seq, size)))

    def send(self, run: int, worker: int, target: int, wave: int, frame: Frame) -> None:
        if frame.size:
            under_way = self.under_way[run, worker, target, wave]
            self.credits[run, worker, target, wave].spend(frame.size)
            assert sum(under_way) < self.graph.credit, "more is under way than there was credit for"
            under_way.append(frame.size)
        self.tasks[run, target, wave].mailbox.append(frame)


@settings(deadline=None)
@given(graph=graphs(), seed=st.integers(0, 2**32))
def test_any_graph_comes_to_its_end_in_any_order_of_events(graph: Graph, seed: int) -> None:
    """Diamonds, unions, one worker that gets most rows, credit for less than a frame; runs that follow closely."""
    flow = Flow(graph, seed)
    flow.run()
    assert flow.seqs == {channel: len(seqs) for channel, seqs in flow.received.items()}
    assert all(seqs == list(range(len(seqs))) for seqs in flow.received.values())
    assert all(task.alignment.is_complete and not task.mailbox for task in flow.tasks.values())


def test_a_frame_that_is_larger_than_all_credit_gets_through() -> None:
    credit = Credit(1)
    credit.spend(100)
    assert credit.is_spent
    credit.give(99)
    assert credit.is_spent
    credit.give(1)
    assert not credit.is_spent
