"""Who else is told about the jobs of `arroyo run`."""

from contextlib import ExitStack

import pytest

from arroyo_core.api import Origin, Registry
from arroyo_core.cli.main import main
from arroyo_core.cli.observers import Observer, enter_observers
from arroyo_core.errors import PluginError
from arroyo_core.plugin import PluginSet, hookimpl, installed_plugins
from arroyo_core.plugin.discovery import Hooks

PIPELINE = """\
name: watched
checkpoint: {url: STATE, interval: 1h, rows: 20}
nodes:
  - {id: numbers, operator: impulse.source, config: {count: 60}}
  - {id: out, operator: std.blackhole, inputs: [numbers]}
"""


class Diary(Observer):
    def __init__(self):
        self.entries = []

    def __enter__(self):
        self.entries.append("enter")
        return self

    def __exit__(self, *_):
        self.entries.append("exit")

    def on_start(self, job):
        self.entries.append(f"start of {job.job_id}")

    def on_epoch(self, result, job):
        self.entries.append(f"epoch {result.epoch}")

    def on_end(self, job_id):
        self.entries.append(f"end of {job_id}")


class Watching:
    """A plugin with an observer."""

    def __init__(self, observer):
        self.observer = observer

    @hookimpl
    def arroyo_observe(self, plans):
        return self.observer


@pytest.fixture
def diary():
    """An observer that is there for one test."""
    found = Diary()
    plugin, hooks = Watching(found), installed_plugins().hooks
    hooks.register(plugin, Origin("acme-watching", "1.0"))
    yield found
    hooks.unregister(plugin)


@pytest.mark.usefixtures("own_logging")
def test_an_observer_is_told_all_of_a_run_in_order(diary, tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(PIPELINE.replace("STATE", str(tmp_path / "state")))
    assert main(["run", str(path), "--in-process", "--progress", "none"]) == 0
    first, *epochs, last, end = diary.entries[1:]
    assert (diary.entries[0], first, last, end) == ("enter", "start of watched", "end of watched", "exit")
    assert epochs == [f"epoch {number + 1}" for number in range(len(epochs))]
    assert len(epochs) >= 3


@pytest.mark.usefixtures("own_logging")
def test_an_observer_is_told_of_the_end_of_a_job_that_fails(diary, tmp_path):
    path = tmp_path / "p.yaml"
    text = PIPELINE.replace("STATE", str(tmp_path / "state")).replace("inputs: [numbers]", "inputs: [bad]")
    node = "  - {id: bad, operator: std.filter, inputs: [numbers], config: {predicate: '1 / (counter - 5) > 0'}}\n"
    path.write_text(text + node)
    assert main(["run", str(path), "--in-process", "--progress", "none"]) == 2
    assert diary.entries[-2:] == ["end of watched", "exit"]


def test_what_is_not_an_observer_is_an_error_that_names_its_distribution():
    hooks = Hooks()
    hooks.register(Watching("view"), Origin("acme-watching", "1.0"))
    message = "arroyo_observe of acme-watching 1.0 returns str, expected Observer"
    with ExitStack() as resources, pytest.raises(PluginError, match=message):
        enter_observers(None, [], PluginSet(Registry(), [], hooks=hooks), resources)
