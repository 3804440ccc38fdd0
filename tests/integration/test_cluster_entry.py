"""Ways into a cluster: spark-submit, another Python for its executors, executors that lack packages, wrong clocks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from collections import Counter
from pathlib import Path

import duckdb
import pytest

import arroyo_core

from .conftest import assert_same_rows
from .servers import SPARK_SUBMIT, standalone_cluster
from .test_cluster import on_cluster
from .test_exact import DIAMOND, DIAMOND_SQL, write

ENTRY = Path(arroyo_core.__file__).with_name("__main__.py")

#: A worker's wall clock, as Python sees it.
WRONG_CLOCK = """
import time

_real = time.time_ns
_ahead_ns = 86_400 * 10**9
time.time_ns = lambda: _real() + _ahead_ns
time.time = lambda: time.time_ns() / 1e9
"""

COUNTS = """
name: counts
parallelism: 2
checkpoint: {{url: {folder}/state, rows: 20}}
nodes:
  - {{id: rows, operator: filesystem.source, config: {{path: {folder}/in.csv, batch_rows: 10,
      schema: {{key: int64, number: int64}}}}, parallelism: 1}}
  - id: counts
    operator: std.updating_aggregate
    inputs: [rows]
    config: {{keys: [key], ttl: 1h, aggregates: [{{function: count, as: n}}]}}
  - {{id: out, operator: filesystem.sink, inputs: [counts], config: {{path: {folder}/out, updating: keep_meta}}}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def cluster(folder):
    """Two workers; the clock of the first is a day ahead."""
    (folder / "wrong_clock").mkdir()
    (folder / "wrong_clock/sitecustomize.py").write_text(WRONG_CLOCK)
    paths = os.pathsep.join(filter(None, [str(folder / "wrong_clock"), os.environ.get("PYTHONPATH")]))
    with standalone_cluster(folder, environments=[{"PYTHONPATH": paths}]) as cluster:
        yield cluster.url


@pytest.fixture
def diamond(bids, tmp_path):
    return on_cluster(write(tmp_path, DIAMOND, bids=bids, out=tmp_path / "out"), tmp_path)


def applications(folder: Path) -> set[str]:
    """Every application that an executor of the cluster was started for."""
    return {path.name for path in folder.glob("worker-*/app-*")}


def spark_submit(*arguments: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SPARK_SUBMIT), *map(str, arguments)],
        cwd=cwd,
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"} | environment,
        stdout=subprocess.PIPE,
        # As spark-submit itself does with what the driver writes.
        stderr=subprocess.STDOUT,
        text=True,
        timeout=500,
        check=False,
    )


def test_spark_submit_chooses_the_master(cluster, folder, diamond, bids, tmp_path):
    before = applications(folder)
    done = spark_submit(
        *("--master", cluster, "--conf", f"spark.pyspark.python={sys.executable}", ENTRY, "run", diamond), cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert f"diamond: starting Spark ({cluster}, from spark-submit)" in done.stdout
    assert len(applications(folder) - before) == 1, "it ran there"
    assert_same_rows(tmp_path / "out", DIAMOND_SQL, bids=bids)


def test_a_mistake_under_spark_submit_keeps_its_exit_code(tmp_path):
    (tmp_path / "p.yaml").write_text("name: p\nnodes: []\n")
    done = spark_submit("--master", "local[1]", ENTRY, "run", "p.yaml", cwd=tmp_path, PYSPARK_PYTHON=sys.executable)
    assert done.returncode == 2, done.stdout[-3000:]
    assert "p.yaml:2" in done.stdout


def test_the_package_can_be_run(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "arroyo_core", "--version"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("arroyo-core ")


def test_executors_run_the_python_that_spark_is_told(arroyo, cluster, diamond, bids, tmp_path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho run >> {tmp_path}/ran\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    done = arroyo("run", diamond, "--master", cluster, "--conf", f"spark.pyspark.python={python}", timeout=500)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "ran").read_text().startswith("run")
    assert_same_rows(tmp_path / "out", DIAMOND_SQL, bids=bids)


def test_executors_without_the_packages_are_one_sentence(arroyo, cluster, diamond, tmp_path):
    venv.create(tmp_path / "bare", symlinks=True)
    python = tmp_path / "bare/bin/python"
    done = arroyo("run", diamond, "--master", cluster, "--conf", f"spark.pyspark.python={python}", timeout=500)
    assert done.returncode == 2, done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("arroyo: ")]
    assert len(said) == 1, done.stderr
    assert said[0].startswith("arroyo: executors have no arroyo-core ")
    # Each worker has an address of its own.
    assert re.search(rf"on 127\.0\.0\.\d+ \({re.escape(str(python))}\): install the driver's packages there", said[0])
    assert said[0].endswith("see docs/on-a-cluster.md")
    assert "Traceback" not in done.stderr
    assert "goes on from its last checkpoint" not in done.stderr, "a restart cannot help"


def test_executors_without_python_are_one_sentence(arroyo, cluster, diamond, tmp_path):
    done = arroyo("run", diamond, "--master", cluster, PYSPARK_PYTHON="/nosuch/bin/python3", timeout=500)
    assert done.returncode == 2, done.stderr
    said = r"arroyo: executors cannot start Python on 127\.0\.0\.\d+: there is no /nosuch/bin/python3\."
    assert re.search(said, done.stderr), done.stderr
    assert "Traceback" not in done.stderr


def test_a_host_whose_clock_is_ahead_does_not_forget_state(arroyo, cluster, tmp_path):
    # Each group has rows in every other epoch only.
    rows = [(number // 20 % 2 * 10 + number % 5, number) for number in range(200)]
    (tmp_path / "in.csv").write_text("key,number\n" + "".join(f"{key},{number}\n" for key, number in rows))
    (tmp_path / "counts.yaml").write_text(COUNTS.format(folder=tmp_path))
    done = arroyo("run", "counts.yaml", "--master", cluster, timeout=500)
    assert done.returncode == 0, done.stderr
    with duckdb.connect() as db:
        found = db.execute(
            f"select key, n, sum(case when _updating_meta.is_retract then -1 else 1 end) as rest "
            f"from '{tmp_path}/out/part-*.parquet' group by all having rest <> 0"
        ).fetchall()
    assert {key: (n, rest) for key, n, rest in found} == {
        key: (n, 1) for key, n in Counter(key for key, _ in rows).items()
    }


def test_a_spark_that_is_active_is_used_and_left_running(spark, diamond, bids, tmp_path):
    result = arroyo_core.Pipeline.from_yaml(diamond).run()
    assert result.is_finished
    assert_same_rows(tmp_path / "out", DIAMOND_SQL, bids=bids)
    assert spark.range(3).count() == 3
