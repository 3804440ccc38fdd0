"""Whether something is sent to executors, and who is asked for it."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from arroyo_core.cli.log_lines import LogFormat, LogLines
from arroyo_core.cli.provisioning import provision_for
from arroyo_core.plugin import PluginSet
from arroyo_core.spark import Provider, Provision
from arroyo_core.spark.target import Target


class Wheels(Provider):
    asked_by = "--ship wheels"

    def prepare(self, tell):
        tell("packing")
        return Provision(asked_by=self.asked_by, packages=Path("/w.zip"))


class Hooks:
    """Stands for the plugins of an environment."""

    def __init__(self, provider):
        self.provider = provider

    def call_one(self, hook, kind, *, what, **arguments):
        assert (hook, kind, set(arguments)) == ("arroyo_provision", Provider, {"args", "plans"})
        return self.provider


def provided(provider, master):
    plugins = PluginSet(None, [], hooks=Hooks(provider))
    lines = LogLines(LogFormat.TEXT)
    return provision_for(argparse.Namespace(), [], plugins, target=Target(master=master), lines=lines)


@pytest.mark.parametrize("master", ["spark://h:7077", "sc://h", "yarn"])
def test_what_a_plugin_makes_is_sent_to_other_machines(master, capsys):
    assert provided(Wheels(), master).packages == Path("/w.zip")
    assert "arroyo: packing" in capsys.readouterr().err


def test_on_this_machine_nothing_is_made(capsys):
    assert provided(Wheels(), "local[2]") is None
    said = capsys.readouterr().err
    assert "--ship wheels has no effect on local[2]: tasks run in the driver's own Python" in said
    assert "packing" not in said


def test_nothing_is_sent_where_nobody_has_anything(capsys):
    assert provided(None, "spark://h:7077") is None
    assert capsys.readouterr().err == ""
