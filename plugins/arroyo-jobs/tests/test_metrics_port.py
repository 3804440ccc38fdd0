"""`arroyo run --metrics-port`."""

import argparse
import socket
from urllib.request import urlopen

import pytest
from arroyo_jobs.metrics_port import MetricsPort

from arroyo_core.cli.main import main
from arroyo_core.runtime.results import JobResult

PIPELINE = """\
name: served
nodes:
  - {id: numbers, operator: impulse.source, config: {count: 60}}
  - {id: out, operator: std.blackhole, inputs: [numbers]}
"""
NODES = [
    {"id": "in", "operator": "test.rows", "config": {"count": 20}},
    {"id": "out", "operator": "test.sink", "inputs": ["in"]},
]


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.mark.usefixtures("own_logging")
def test_a_port_that_is_taken_ends_the_command_before_anything_runs(listener, tmp_path, capsys):
    (tmp_path / "p.yaml").write_text(PIPELINE)
    port = listener.getsockname()[1]
    assert main(["run", str(tmp_path / "p.yaml"), "--in-process", "--metrics-port", str(port)]) == 2
    said = capsys.readouterr().err
    assert f"metrics cannot be served on port {port} of 127.0.0.1" in said
    assert "epoch" not in said


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_a_job_that_has_ended_is_not_waited_for(lab):
    plans = [lab.plan(NODES, name=name) for name in ("one", "other")]
    arguments = argparse.Namespace(metrics_port=free_port(), metrics_bind="127.0.0.1")
    with MetricsPort(arguments, plans) as observer:
        observer.on_start(JobResult(job_id="other"))
        observer.on_end("one")
        observer.on_end("other")
        with urlopen(f"http://127.0.0.1:{arguments.metrics_port}/ready") as answer:
            assert answer.status == 200
