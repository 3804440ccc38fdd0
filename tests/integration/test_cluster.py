"""The same pipeline on a real standalone cluster and through Spark Connect."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import assert_same_rows
from .servers import connect_server, standalone_cluster
from .test_exact import DIAMOND, DIAMOND_SQL, struck, write


def on_cluster(path: Path, folder: Path, **values: object) -> Path:
    """State must be where every executor can reach it."""
    path.write_text(path.read_text().replace("nodes:", f"checkpoint: {{url: {folder}/state}}\nnodes:", 1))
    return path


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster.url


def test_a_standalone_cluster_gives_the_same_rows(arroyo, cluster, bids, tmp_path):
    path = on_cluster(write(tmp_path, DIAMOND, bids=bids, out=tmp_path / "out"), tmp_path)
    done = arroyo("run", path, "--master", cluster)
    assert done.returncode == 0, done.stderr
    assert_same_rows(tmp_path / "out", DIAMOND_SQL, bids=bids)


def test_a_relative_checkpoint_path_is_the_drivers_folder_on_every_executor(arroyo, cluster, bids, tmp_path):
    path = on_cluster(write(tmp_path, DIAMOND, bids=bids, out=tmp_path / "out"), Path())
    done = arroyo("run", path, "--master", cluster)
    assert done.returncode == 0, done.stderr
    verified = arroyo("checkpoints", "verify", "state")
    assert verified.returncode == 0, verified.stdout
    assert list((tmp_path / "state").rglob("*.parquet"))


def test_an_executor_killed_after_it_served_its_rows_changes_nothing(arroyo, cluster, bids, tmp_path):
    path = struck(tmp_path, bids, "kill_executor", "after")
    path.write_text(path.read_text().replace("interval: 1h", f"interval: 1h, url: {tmp_path}/state"))
    done = arroyo("run", path, "--master", cluster)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "struck-0").exists()
    assert assert_same_rows(tmp_path / "out", "select * from bids", bids=bids) == 200_000


def test_spark_connect_gives_the_same_rows(arroyo, bids, tmp_path):
    path = on_cluster(write(tmp_path, DIAMOND, bids=bids, out=tmp_path / "out"), tmp_path)
    with connect_server(tmp_path) as connect:
        done = arroyo("run", path, "--master", connect.url)
    assert done.returncode == 0, done.stderr
    assert_same_rows(tmp_path / "out", DIAMOND_SQL, bids=bids)


def test_an_unreachable_connect_server_is_one_clear_sentence(arroyo, bids, tmp_path):
    path = write(tmp_path, DIAMOND, bids=bids, out=tmp_path / "out")
    done = arroyo("run", path, "--master", "sc://127.0.0.1:1")
    # Whoever supervises it tries again.
    assert done.returncode == 1
    assert "Spark Connect at sc://127.0.0.1:1 cannot be reached" in done.stderr
    assert "Traceback" not in done.stderr
