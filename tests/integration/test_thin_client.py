"""Spark Connect with the thin client: pyspark without a JVM, without contexts and RDDs, and without py4j."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyspark
import pytest

from .conftest import assert_same_rows
from .servers import connect_server
from .test_cluster import on_cluster
from .test_exact import DIAMOND, DIAMOND_SQL, write

#: What the distribution pyspark-client leaves out of the package.
LEFT_OUT = ("bin", "core", "data", "examples", "jars", "licenses", "messages", "python", "sbin", "__pycache__")


@pytest.fixture(scope="module")
def thin(tmp_path_factory) -> dict[str, str]:
    """The environment of a process that has the thin client."""
    folder = tmp_path_factory.mktemp("thin")
    shutil.copytree(Path(pyspark.__file__).parent, folder / "pyspark", ignore=shutil.ignore_patterns(*LEFT_OUT))
    (folder / "py4j").mkdir()
    (folder / "py4j/__init__.py").write_text('raise ModuleNotFoundError("No module named \'py4j\'", name="py4j")\n')
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))}


def test_the_thin_client_runs_pipelines_on_spark_connect(arroyo, thin, bids, tmp_path):
    path = on_cluster(write(tmp_path, DIAMOND, bids=bids, out=tmp_path / "out"), tmp_path)
    with connect_server(tmp_path) as connect:
        done = arroyo("run", path, "--master", connect.url, timeout=500, **thin)
    assert done.returncode == 0, done.stderr
    assert_same_rows(tmp_path / "out", DIAMOND_SQL, bids=bids)


@pytest.mark.parametrize("master", ["local[2]", "spark://127.0.0.1:1"])
def test_the_thin_client_says_that_it_reaches_nothing_else(arroyo, thin, bids, tmp_path, master):
    path = write(tmp_path, DIAMOND, bids=bids, out=tmp_path / "out")
    done = arroyo("run", path, "--master", master, **thin)
    assert done.returncode == 2
    assert f"this Python has pyspark-client, which only reaches Spark Connect, and cannot start Spark on {master}" in (
        done.stderr
    )
    assert "Traceback" not in done.stderr
