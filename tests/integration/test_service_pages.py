"""The guides for clusters, S3, Spark Connect and output: what they show, as written, against services of the test.

Addresses and sizes are replaced, and nothing else: ports are free ones, and a machine for tests is small.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from arroyo_core import Pipeline

from ..document_pages import ROOT, read_commands, read_steps
from ..waiting import wait_until
from .servers import free_port, is_listening, running, wait_for_port

PIPELINE = """\
name: hot_items
checkpoint: {url: ./state}
nodes:
  - {id: bids, operator: nexmark.source, config: {events: 5000}}
  - {id: out, operator: filesystem.sink, inputs: [bids], config: {path: ./out}}
"""
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


class Page:
    """The blocks of a page that need a service, with other addresses, in a folder with a pipeline."""

    def __init__(self, name: str, folder: Path, replaced: Mapping[str, str], **environment: str) -> None:
        self.folder = folder
        self._steps = [step for step in read_steps(ROOT / "docs" / name) if step.service is not None]
        self._replaced = replaced
        self.environment = {**os.environ, "PATH": PATH, "SPARK_LOCAL_IP": "127.0.0.1", **environment}
        (folder / "pipeline.yaml").write_text(PIPELINE, encoding="utf-8")

    def blocks(self) -> list[str]:
        return [self._adapted(step.text) for step in self._steps]

    def lines(self, block: str) -> list[str]:
        """What is typed. What the test's environment has need not be installed."""
        return [command.line for command in read_commands(block) if not command.line.startswith("pip install ")]

    def run(self, *lines: str) -> str:
        """What they print, one after the other in one shell; all of them succeed."""
        done = subprocess.run(
            ["bash", "-ec", "\n".join(lines)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{lines}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def server(self, block: str) -> list[str]:
        """The command of a block that stays in the foreground."""
        *before, last = self.lines(block)
        return ["bash", "-ec", "\n".join([f"cd {self.folder}", *before, f"exec {last}"])]

    def _adapted(self, text: str) -> str:
        for shown, used in self._replaced.items():
            text = text.replace(shown, used)
        return text


@pytest.mark.timeout(600)
def test_the_page_of_clusters(tmp_path):
    port = str(free_port())
    page = Page(
        "on-a-cluster.md",
        tmp_path,
        {
            "spark://host:7077": f"spark://127.0.0.1:{port}",
            "7077": port,
            "memory=8g": "memory=1g",
            "--parallelism 16": "--parallelism 2",
            "s3://acme/state": str(tmp_path / "state"),
        },
    )
    doctor, run, submit, master, worker, stop = page.blocks()
    with running(page.server(master), tmp_path / "master.log", PATH=PATH) as server:
        wait_for_port(int(port), server)
        with running(page.server(worker), tmp_path / "worker.log", PATH=PATH):
            assert "fail" not in page.run(*page.lines(doctor))
            printed = page.run(*page.lines(run))
            assert f"hot_items: starting Spark (spark://127.0.0.1:{port})" in printed
            assert "hot_items finished: " in printed
            printed = page.run(*page.lines(submit)[:-1], f"{page.lines(submit)[-1]} --fresh --force")
            assert f"hot_items: starting Spark (spark://127.0.0.1:{port}, from spark-submit)" in printed
            assert "hot_items finished: " in printed
            assert "hot_items has finished" in page.run(*page.lines(stop))


@pytest.mark.timeout(600)
def test_the_page_of_s3(tmp_path):
    port = str(free_port())
    page = Page("on-s3.md", tmp_path, {"5000": port, "events: 1000000": "events: 5000"})
    pipeline, moto, client = page.blocks()
    (tmp_path / "pipeline.yaml").write_text(pipeline, encoding="utf-8")
    with running(page.server(moto), tmp_path / "moto.log", PATH=PATH) as server:
        wait_for_port(int(port), server)
        lines = page.lines(client)
        printed = page.run(*lines, "arroyo run pipeline.yaml")
        assert "ok      store: put-if-absent: the second writer of a file is refused" in printed
        assert "hot_items finished: " in printed
        files = page.run(lines[0], "python -c \"import fsspec; print(fsspec.filesystem('s3').ls('acme/out/bids'))\"")
        assert ".parquet" in files


@pytest.mark.timeout(600)
def test_the_page_of_spark_connect(tmp_path):
    port = str(free_port())
    page = Page(
        "on-spark-connect.md",
        tmp_path,
        {"host:15002": f"127.0.0.1:{port}", "15002": port},
        SPARK_SUBMIT_OPTS=f"-Dspark.connect.grpc.binding.port={port} -Dspark.ui.enabled=false",
        SPARK_LOG_DIR=str(tmp_path / "logs"),
        SPARK_PID_DIR=str(tmp_path / "pids"),
        PYSPARK_PYTHON=sys.executable,
    )
    first, trial = page.blocks()
    home, start, run, stop = page.lines(trial)
    page.run(home, start)
    try:
        wait_until(lambda: is_listening(int(port)))
        assert "hot_items finished: " in page.run(run)
        assert "finished in an earlier run" in page.run(*page.lines(first))
    finally:
        page.run(home, stop)


PLACES = """\
name: places
checkpoint: {{url: {folder}/state, rows: 100}}
nodes:
  - {{id: numbers, operator: impulse.source, config: {{count: 400}}}}
  - id: placed
    operator: std.project
    inputs: [numbers]
    config: {{keep: [counter], expressions: {{place: "case counter % 2 when 0 then 'New York, 1/2' else 'Oslo' end"}}}}
  - {{id: out, operator: filesystem.sink, inputs: [placed], config: {{path: {folder}/out, partition_by: [place]}}}}
"""


@pytest.mark.timeout(600)
def test_the_page_of_output_read_by_spark(tmp_path, spark):
    """Spark reads the epochs that are complete, with the values of their folders, and nothing of one that is not."""
    (tmp_path / "places.yaml").write_text(PLACES.format(folder=tmp_path), encoding="utf-8")
    Pipeline.from_yaml(tmp_path / "places.yaml").run(spark)
    (code,) = Page("read-output.md", tmp_path, {"out/": f"{tmp_path}/out/", '"out"': f'"{tmp_path}/out"'}).blocks()

    def read():
        names = {"spark": spark}
        exec(compile(code, "read-output.md", "exec"), names)
        return sorted((row.counter, row.place) for row in names["rows"].collect())

    whole = [(n, "Oslo" if n % 2 else "New York, 1/2") for n in range(400)]
    assert read() == whole
    # As if the driver had died when it had moved one of the two files of the last epoch.
    last = sorted((tmp_path / "out/_committed").glob("*.json"))[-1]
    manifest = json.loads(last.read_bytes())
    (tmp_path / "out" / manifest["files"][0]["path"]).unlink()
    last.with_suffix(".begun").write_text(json.dumps({**manifest, "complete": False}) + "\n", encoding="utf-8")
    last.unlink()
    assert read() == whole[: 400 - manifest["rows"]]
    assert spark.read.parquet(f"{tmp_path}/out").count() == 400 - manifest["files"][0]["rows"]
