"""docs/kafka.md runs as it is written, with a broker of its own address."""

from __future__ import annotations

import contextlib
import io
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from arroyo_kafka.broker import Broker
from arroyo_kafka.open_consumers import open_consumers

from arroyo_core.cli.main import main
from tests.document_pages import ROOT, read_commands, read_steps

from .support.cluster import Cluster

SHOWN = "127.0.0.1:9092"
NOT_RUN = ["the job above has ended; plugins/arroyo-kafka/tests/test_commands.py does it with another one"]


def run(line: str) -> str:
    """What a command prints, to stdout and stderr together."""
    name, *arguments = shlex.split(line)
    if name == "python":
        done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True)
        return done.stdout + done.stderr
    if arguments[0] == "run":
        arguments.append("--in-process")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        assert main(arguments) == 0, printed.getvalue()
    return printed.getvalue()


def test_the_page_runs_as_it_is_written(
    broker: Broker, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KAFKA", broker.bootstrap_servers)
    shutil.copytree(ROOT / "examples" / "kafka", tmp_path / "examples" / "kafka")
    for other in cluster.admin.list_topics(timeout=30).topics:
        if not other.startswith("__"):
            cluster.delete(other)
    not_run = []
    for step in read_steps(ROOT / "docs" / "kafka.md"):
        if step.reason is not None:
            not_run.append(step.reason)
            continue
        assert step.kind == "console"
        for command in read_commands(step.text):
            if command.line.startswith("arroyo kafka broker"):
                continue  # it is the broker of the tests
            printed = run(command.line.replace(SHOWN, broker.bootstrap_servers))
            # A free port has five digits, mostly: the heading is as wide as what is below it.
            command.check(printed.replace(broker.bootstrap_servers, SHOWN).replace("brokers  ", "brokers ", 1))
    assert not_run == NOT_RUN
    open_consumers.close_all()
