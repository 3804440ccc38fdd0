"""A run that was interrupted goes on by itself, and the output is as if it had not been."""

from __future__ import annotations

import signal

from .conftest import assert_same_rows
from .terminal import run_until_epochs
from .test_exact import write

PIPELINE = """
name: resumed
parallelism: 2
checkpoint: {{url: {state}, rows: 20000}}
nodes:
  - {{id: bids, operator: filesystem.source, config: {{path: {bids}, format: parquet, batch_rows: 5000}}}}
  - {{id: keyed, operator: std.key_by, inputs: [bids], config: {{keys: [auction]}}}}
  - {{id: files, operator: filesystem.sink, inputs: [keyed], config: {{path: {out}, format: parquet}}}}
"""


def test_a_killed_run_goes_on_at_another_parallelism_and_finishes_once(arroyo, bids, tmp_path):
    path = write(tmp_path, PIPELINE, bids=bids, state=tmp_path / "state", out=tmp_path / "out")
    killed = run_until_epochs(path, 3, number=signal.SIGKILL)
    assert killed.code == -signal.SIGKILL, killed.text
    done = arroyo("run", path, "--master", "local[2]", "--parallelism", 3)
    assert done.returncode == 0, done.stderr
    assert "resumed: going on after epoch" in done.stderr
    assert assert_same_rows(tmp_path / "out", "select * from bids", bids=bids) == 200_000
    again = arroyo("run", path, "--master", "local[2]")
    assert again.returncode == 0
    assert "finished in an earlier run" in again.stderr
    assert assert_same_rows(tmp_path / "out", "select * from bids", bids=bids) == 200_000
