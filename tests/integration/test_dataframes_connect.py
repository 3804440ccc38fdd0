"""DataFrames, `spark.sink`, `apply` and state on Spark Connect."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import assert_same_rows
from .dataframes import windows
from .servers import connect_server

EXPECTED = """
    select auction, time_bucket(interval 10 seconds, date_time) as window_start,
           window_start + interval 10 seconds as window_end, window_end - interval 1 microsecond as window_time,
           count(*) as bids, sum(price)::bigint as total, max(channel) as channel
    from bids group by auction, window_start
"""


@pytest.mark.timeout(900)
def test_dataframes_feed_pipelines_on_spark_connect(bids, tmp_path):
    shutil.copytree(bids, tmp_path / "bids")
    windows(tmp_path / "windows")
    with connect_server(tmp_path) as connect:
        done = subprocess.run(
            [sys.executable, str(Path(__file__).with_name("connect_frames.py")), str(tmp_path), connect.url],
            env=os.environ,
            capture_output=True,
            text=True,
            timeout=800,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.splitlines() == ["windows 1 200000", "copied True", "applied True", "stream True", "state 1"]
    assert_same_rows(tmp_path / "windows" / "out", EXPECTED, bids=tmp_path / "bids")
