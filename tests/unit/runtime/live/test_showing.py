"""Text that operators show before their epoch is committed."""

from __future__ import annotations

import io
import threading

import pytest
from arroyo_testing.live import live_executor

from arroyo_core.errors import ExternalError
from arroyo_core.runtime import wave
from arroyo_core.runtime.events import RunEpoch
from arroyo_core.runtime.showing import Screen, Shown

NODES = [
    {"id": "rows", "operator": "test.rows", "config": {"count": 30}},
    {"id": "shown", "operator": "test.passing", "inputs": ["rows"], "config": {"keys": ["key"], "shows": True}},
    {"id": "out", "operator": "test.sink", "inputs": ["shown"]},
]
SETTINGS = {"parallelism": 2, "checkpoint": {"interval": "1h"}}


@pytest.fixture
def executor(lab):
    executor = live_executor(lab.plugins)
    yield executor
    executor.close()


class Terminal(io.StringIO):
    """Sets an event when so many lines have come."""

    def __init__(self, lines):
        super().__init__()
        self.is_full = threading.Event()
        self._lines = lines

    def write(self, text):
        count = super().write(text)
        if self.getvalue().count("\n") >= self._lines:
            self.is_full.set()
        return count


def test_rows_are_shown_while_their_epoch_runs(lab, executor, monkeypatch):
    """The source goes on only when all its rows were seen, and a wave that waits for it looks up too late for that."""
    monkeypatch.setattr(wave, "_LIVE_WAIT_S", 60.0)
    monkeypatch.setattr(wave, "_IDLE_WAIT_S", 60.0)
    terminal = Terminal(lines=31)
    monkeypatch.setattr("sys.stdout", terminal)
    seen = []

    def fail_when_seen():
        seen.append(terminal.is_full.wait(30))
        raise LookupError("it has seen enough")

    lab.trace.on_wait = fail_when_seen
    nodes = [{**NODES[0], "config": {"count": 30, "then_wait": True}}, *NODES[1:]]
    job = lab.job(nodes, executor=executor, **SETTINGS)
    reports = executor.run_epoch(job.plan, job.steps.request(RunEpoch(1, 3_600_000)))
    job.close()
    assert "it has seen enough" in reports[-1].error.message
    assert seen[0]
    heading, *lines = terminal.getvalue().splitlines()
    assert (heading, sorted(map(int, lines))) == ("n", list(range(30)))


def test_jobs_show_nothing(lab, capsys):
    lab.run(NODES, **SETTINGS)
    assert capsys.readouterr().out == ""
    assert "shows False" in lab.trace.of("shown")


def test_an_output_that_cannot_be_written_fails_the_job(lab, executor, monkeypatch):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("sys.stdout", Full())
    job = lab.job(NODES, executor=executor, **SETTINGS)
    with pytest.raises(ExternalError, match=r"cannot write rows to the standard output.*No space left"):
        executor.run_epoch(job.plan, job.steps.request(RunEpoch(1, 3_600_000)))
    job.close()


def test_a_heading_comes_once_for_each_operator(capsys):
    screen = Screen()
    for operator, text in (("a", "1\n"), ("b", "2\n"), ("a", "3\n")):
        screen.show(Shown(operator, f"{operator}:\n", text))
    assert capsys.readouterr().out == "a:\n1\nb:\n2\n3\n"
