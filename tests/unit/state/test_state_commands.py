"""`arroyo checkpoints` and `arroyo state`, over a job's real checkpoints."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from arroyo_core.cli.main import main
from arroyo_core.proto.state_pb2 import CheckpointMetadata
from arroyo_core.state import ParquetBackend, StorageProvider

from .support.state_life import Life, expected_at


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    folder = tmp_path_factory.mktemp("state")
    Life(StorageProvider(str(folder))).run(3)
    return str(folder)


def test_ls_lists_every_epoch(url, capsys):
    assert main(["checkpoints", "ls", url]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["epoch", "1", "2", "3"]
    assert "ready" in lines[-1]


def test_the_url_may_name_the_job_folder(url, capsys):
    assert main(["checkpoints", "ls", f"{url}/job", "--format", "json"]) == 0
    assert [row["epoch"] for row in json.loads(capsys.readouterr().out)] == [1, 2, 3]


def test_the_url_may_name_the_job_as_a_fork_does(url, capsys):
    assert main(["checkpoints", "ls", f"{url}#job", "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 3


def test_a_job_can_be_stopped_before_its_first_checkpoint(tmp_path, capsys):
    assert main(["stop", str(tmp_path)]) == 2
    ParquetBackend(StorageProvider(str(tmp_path)), "job").claim_generation()
    assert main(["stop", str(tmp_path), "--mode", "graceful"]) == 0
    assert "asked the driver of generation 1 to stop" in capsys.readouterr().out
    assert (tmp_path / "job/generations/1.stop").read_text() == "graceful"


def test_tools_read_whether_a_job_was_asked_to_stop(tmp_path, capsys):
    backend = ParquetBackend(StorageProvider(str(tmp_path)), "job")
    backend.claim_generation()
    assert main(["stop", str(tmp_path), "--format", "json"]) == 0
    asked = {"job": "job", "is_asked": True, "finished_epoch": None, "generation": 1, "mode": "checkpoint"}
    asked["state"] = "unknown"
    assert json.loads(capsys.readouterr().out) == asked
    backend.publish(CheckpointMetadata(job_id="job", epoch=1, is_final=True))
    assert main(["stop", str(tmp_path), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        **asked,
        "is_asked": False,
        "finished_epoch": 1,
        "state": "finished",
    }


def test_a_finished_job_is_not_asked_to_stop(tmp_path, capsys):
    backend = ParquetBackend(StorageProvider(str(tmp_path)), "job")
    backend.claim_generation()
    backend.publish(CheckpointMetadata(job_id="job", epoch=1, is_final=True))
    assert main(["stop", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "job has finished, at epoch 1: there is nothing to stop\n"
    assert not (tmp_path / "job/generations/1.stop").exists()


def test_show_tells_operators_and_tables(url, capsys):
    assert main(["checkpoints", "show", url, "--epoch", "2"]) == 0
    text = capsys.readouterr().out
    assert "parent_epoch: 1" in text
    assert "commits, latest, offsets, windows" in text


def test_verify_finds_the_damaged_file(tmp_path, capsys):
    Life(StorageProvider(str(tmp_path))).run(2)
    assert main(["checkpoints", "verify", str(tmp_path)]) == 0
    assert "epoch 2: " in capsys.readouterr().out
    victim = next(tmp_path.glob("job/checkpoints/1/table-op-latest*"))
    victim.write_bytes(victim.read_bytes()[:-1] + b"?")
    assert main(["checkpoints", "verify", str(tmp_path)]) == 1
    assert victim.name in capsys.readouterr().out


def test_tables_lists_the_tables(url, capsys):
    assert main(["state", "tables", url]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert names == ["op.commits", "op.latest", "op.offsets", "op.windows"]


def test_cat_prints_a_global_table_as_json(url, capsys):
    assert main(["state", "cat", url, "op.offsets", "--format", "json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    expected = {json.dumps(list(key)): str(value) for key, value in expected_at(3)["offsets"].items()}
    assert {json.dumps(json.loads(row["key"])): row["value"] for row in found} == expected


def test_cat_prints_rows_as_csv(url, capsys):
    assert main(["state", "cat", url, "op.latest", "--format", "csv"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header == "k,ts,v"
    assert sorted(int(row.split(",")[0]) for row in rows) == [row[0] for row in expected_at(3)["latest"]]


def test_cat_writes_parquet(url, tmp_path, capsys):
    assert main(["state", "cat", url, "op.windows", "--format", "parquet"]) == 2
    assert "give --output FILE" in capsys.readouterr().err
    assert main(["state", "cat", url, "op.windows", "--format", "parquet", "--output", str(tmp_path / "x")]) == 0
    assert pq.read_table(tmp_path / "x").num_rows == len(expected_at(3)["windows"])


def test_diff_shows_what_went_and_what_came(url, capsys):
    assert main(["state", "diff", url, "op.latest", "--format", "json", "--from", "2", "--to", "3"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    before, after = (set(expected_at(epoch)["latest"]) for epoch in (2, 3))
    assert {row["v"] for row in found if row["_change"] == "+"} == {row[2] for row in after - before}
    assert {row["k"] for row in found if row["_change"] == "-"} == {row[0] for row in before - after}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["state", "cat", "URL", "latest"], "names no table"),
        (["state", "cat", "URL", "op.none"], "has no table 'none' (it has: commits, latest, offsets, windows)"),
        (["state", "cat", "URL", "x.latest"], "has no operator 'x' (it has: op)"),
        (["checkpoints", "show", "URL", "--epoch", "9"], "has no checkpoint 9 (it has: 1, 2, 3)"),
        (["checkpoints", "ls", "URL", "--job", "other"], "no checkpoint of job 'other'"),
        (["checkpoints", "ls", "URL/nothing"], "no checkpoint below"),
    ],
)
def test_a_mistake_is_told_with_what_is_there(url, capsys, arguments, message):
    assert main([argument.replace("URL", url) for argument in arguments]) == 2
    assert message in capsys.readouterr().err
