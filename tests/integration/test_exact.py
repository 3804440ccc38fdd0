"""Results on a real Spark equal DuckDB's on the same files, also when workers die."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from arroyo_core import OperatorError, Pipeline

from ..waiting import wait_until
from .conftest import assert_same_rows

DIAMOND = """
name: diamond
parallelism: 2
nodes:
  - {{id: bids, operator: filesystem.source, config: {{path: {bids}, format: parquet}}, parallelism: 3}}
  - {{id: dear, operator: std.filter, inputs: [bids], config: {{predicate: price > 5000}}}}
  - {{id: by_auction, operator: std.key_by, inputs: [dear], config: {{keys: [auction]}}}}
  - {{id: cheap, operator: std.filter, inputs: [bids], config: {{predicate: price <= 100}}, parallelism: 1}}
  - {{id: both, operator: std.union, inputs: [by_auction, cheap, bids], parallelism: 4}}
  - id: out
    operator: std.project
    inputs: [both]
    config:
      expressions: {{auction: auction, price: price * 2, channel: upper(channel)}}
  - {{id: files, operator: filesystem.sink, inputs: [out], config: {{path: {out}, format: parquet}}}}
"""
DIAMOND_SQL = """
    select auction, price * 2 as price, upper(channel) as channel from (
        select * from bids where price > 5000
        union all select * from bids where price <= 100
        union all select * from bids)
"""

STRUCK = """
name: struck
parallelism: 2
checkpoint: {{interval: 1h}}
nodes:
  - {{id: bids, operator: filesystem.source, config: {{path: {bids}, format: parquet, batch_rows: 5000}}}}
  {before}
  - {{id: keyed, operator: std.key_by, inputs: [{first}], config: {{keys: [auction]}}}}
  {after}
  - {{id: files, operator: filesystem.sink, inputs: [{last}], config: {{path: {out}, format: parquet}}}}
"""


def write(folder: Path, text: str, **values: object) -> Path:
    path = folder / "pipeline.yaml"
    path.write_text(text.format(**values))
    return path


def strike(deed: str, marker: Path, source: str, **more: object) -> str:
    settings = ", ".join(f"{key}: {value}" for key, value in {"deed": deed, "marker": marker, **more}.items())
    return f"- {{id: strike, operator: chaos.strike, inputs: [{source}], config: {{{settings}}}}}"


def struck(folder: Path, bids: Path, deed: str, where: str, **more: object) -> Path:
    """A pipeline with a shuffle, struck before or after it."""
    is_before = where == "before"
    return write(
        folder,
        STRUCK,
        bids=bids,
        out=folder / "out",
        before=strike(deed, folder / "struck", "bids", **more) if is_before else "",
        first="strike" if is_before else "bids",
        after="" if is_before else strike(deed, folder / "struck", "keyed", **more),
        last="keyed" if is_before else "strike",
    )


def test_a_diamond_with_a_union_and_several_parallelisms_equals_duckdb(spark, bids, tmp_path):
    result = Pipeline.from_yaml(write(tmp_path, DIAMOND, bids=bids, out=tmp_path / "out")).run(spark)
    assert result.is_finished
    assert assert_same_rows(tmp_path / "out", DIAMOND_SQL, bids=bids) > 200_000


def test_many_epochs_give_the_same_rows_as_one(spark, bids, tmp_path):
    path = write(
        tmp_path, DIAMOND.replace("nodes:", "checkpoint: {{rows: 60000}}\nnodes:"), bids=bids, out=tmp_path / "out"
    )
    result = Pipeline.from_yaml(path).run(spark)
    assert result.epochs >= 3
    assert_same_rows(tmp_path / "out", DIAMOND_SQL, bids=bids)


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("deed", ["kill_worker", "outage"])
def test_a_worker_killed_in_mid_epoch_changes_nothing(spark, bids, tmp_path, deed, where):
    path = struck(tmp_path, bids, deed, where, at=3, times=2)
    result = Pipeline.from_yaml(path).run(spark)
    assert (tmp_path / "struck-1").exists()
    assert result.source_rows == 200_000
    assert assert_same_rows(tmp_path / "out", "select * from bids", bids=bids) == 200_000


def test_a_failing_operator_shows_python_and_no_java(spark, bids, tmp_path):
    path = struck(tmp_path, bids, "fail", "after", times=100)
    with pytest.raises(OperatorError) as caught:
        Pipeline.from_yaml(path).run(spark)
    error = caught.value
    assert error.operator_id == "strike"
    assert "ValueError: this row is cursed" in str(error)
    assert "arroyo_chaos.py" in error.traceback
    assert "org.apache.spark" not in str(error) + error.traceback
    # Both subtasks may fail, each of them once: what cannot be fixed is not retried.
    assert len(list(tmp_path.glob("struck-*"))) <= 2
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").glob("part-*"))


def test_an_outage_that_outlasts_sparks_retries_is_sat_out_by_the_job(spark, bids, tmp_path):
    # Spark tries each task four times.
    path = struck(tmp_path, bids, "outage", "before", times=9)
    result = Pipeline.from_yaml(path).run(spark)
    assert result.is_finished
    assert result.restarts >= 1
    assert assert_same_rows(tmp_path / "out", "select * from bids", bids=bids) == 200_000


def test_a_lasting_outage_is_reported_after_all_retries(spark, bids, tmp_path):
    path = struck(tmp_path, bids, "outage", "before", times=100)
    with pytest.raises(OperatorError, match="the service is away"):
        Pipeline.from_yaml(path).run(spark, max_restarts=1)
    # Two subtasks, four tries by Spark, and all of it once more.
    assert 8 <= len(list(tmp_path.glob("struck-*"))) <= 16


def test_the_command_shows_progress_and_a_summary(arroyo, bids, tmp_path):
    done = arroyo("run", write(tmp_path, DIAMOND, bids=bids, out=tmp_path / "out"), "--master", "local[2]")
    assert done.returncode == 0, done.stderr
    assert "epoch    1" in done.stderr
    assert "diamond finished: 1 epoch, 200,000 rows in" in done.stderr
    assert_same_rows(tmp_path / "out", DIAMOND_SQL, bids=bids)


def test_the_command_tells_of_a_failing_operator_without_java(arroyo, bids, tmp_path):
    done = arroyo("run", struck(tmp_path, bids, "fail", "before", times=100))
    assert done.returncode != 0
    assert "operator 'strike', subtask" in done.stderr
    assert "ValueError: this row is cursed" in done.stderr
    assert "at org.apache" not in done.stderr


def test_the_command_without_java_says_what_to_install(arroyo, bids, tmp_path):
    path = write(tmp_path, DIAMOND, bids=bids, out=tmp_path / "out")
    done = arroyo("run", path, PATH=str(Path(sys.executable).parent), JAVA_HOME="")
    assert done.returncode == 2
    assert "no Java found" in done.stderr
    assert "apt-get install openjdk-17-jre-headless" in done.stderr
    assert "Traceback" not in done.stderr


ENDLESS = """
name: endless
parallelism: 2
checkpoint: {{interval: {interval}}}
nodes:
  - {{id: numbers, operator: impulse.source, config: {{rate: 2000}}}}
  - {{id: files, operator: filesystem.sink, inputs: [numbers], config: {{path: {out}, format: parquet}}}}
"""


def test_ctrl_c_ends_the_epoch_cleanly_and_every_row_counts_once(tmp_path):
    path = write(tmp_path, ENDLESS, interval="1s", out=tmp_path / "out")
    command = [str(Path(sys.executable).with_name("arroyo")), "run", str(path), "--master", "local[2]"]
    command += ["--progress", "plain"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            if "Z epoch    3 " in line:
                process.send_signal(signal.SIGINT)
        process.wait(timeout=120)
    text = "".join(lines)
    assert process.returncode == 0, text
    assert "endless stopped:" in text
    with duckdb.connect() as db:
        found = db.execute(
            f"select count(*), count(distinct counter), max(counter) from read_parquet('{tmp_path}/out/part-*.parquet')"
        ).fetchone()
    assert found is not None
    rows, distinct, last = found
    # Each subtask may be some numbers ahead of the other; none is lost or repeated behind them.
    assert 0 < rows == distinct <= last + 1


def test_a_second_ctrl_c_stops_at_once_and_commits_nothing(tmp_path):
    path = write(tmp_path, ENDLESS, interval="1h", out=tmp_path / "out")
    command = [str(Path(sys.executable).with_name("arroyo")), "run", str(path), "--master", "local[2]"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stderr is not None
        wait_until((tmp_path / "out").exists)
        process.send_signal(signal.SIGINT)
        lines = []
        for line in process.stderr:
            lines.append(line)
            if "Z stopping after this epoch" in line:
                process.send_signal(signal.SIGINT)
        process.wait(timeout=120)
    text = "".join(lines)
    assert process.returncode == 130, text
    assert "Traceback" not in text
    assert text.rstrip().endswith("interrupted")
    assert not list((tmp_path / "out").glob("part-*"))
