"""`arroyo ps`, `arroyo status` and `arroyo stop`: jobs that run, and jobs that do not, in other processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from arroyo_core.cli.main import main
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.metrics import OperatorMetrics
from arroyo_core.runtime.results import EpochResult, JobResult
from arroyo_core.runtime.status import DriverStatus, Ending, Life, StatusWriter, judge_life
from arroyo_core.spark.pipeline import Pipeline
from arroyo_core.state import ParquetBackend, get_storage_provider
from arroyo_core.state.failures import DamagedStateError
from tests.waiting import wait_until

PIPELINE = """\
name: NAME
checkpoint: {url: state, interval: 300ms, rows: 100}
nodes:
  - {id: numbers, operator: impulse.source, config: {COUNT}}
  - {id: out, operator: std.blackhole, inputs: [numbers]}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, name: str, *, count: str = "rate: 500") -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(PIPELINE.replace("NAME", name).replace("COUNT", count))
    return path


@pytest.fixture
def start(folder):
    """Starts `arroyo run` in a process of its own, and waits for its first commit."""
    started = []

    def run(path: Path) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "arroyo_core", "run", str(path), "--in-process"]
        with (folder / f"{path.stem}.log").open("wb") as log:
            process = subprocess.Popen(command, cwd=folder, stderr=log, stdout=log)
        started.append(process)
        status = folder / "state" / path.stem / "generations" / "1.status"
        wait_until(lambda: status.exists() or process.poll() is not None)
        assert process.poll() is None, (folder / f"{path.stem}.log").read_text()
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()


def states(capsys, *places):
    assert main(["ps", *places, "--format", "json"]) == 0
    return {job["job"]: job for job in json.loads(capsys.readouterr().out)}


def test_a_job_is_followed_from_its_start_to_its_end(folder, start, capsys):
    path = write(folder, "orders")
    assert states(capsys)["orders"]["state"] == "not started"
    process = start(path)
    (found,) = states(capsys, "state").values()
    assert (found["state"], found["pid"], found["generation"]) == ("running", process.pid, 1)
    wait_until(lambda: states(capsys)["orders"]["epoch"] is not None)
    assert main(["status", str(path)]) == 0
    shown = capsys.readouterr().out
    assert f"pid {process.pid}" in shown
    assert "state:       running" in shown
    assert main(["stop", str(path)]) == 0
    assert "asked the driver of generation 1 to stop (checkpoint)" in capsys.readouterr().out
    assert process.wait() == 0
    stopped = states(capsys)["orders"]
    assert stopped["state"] == "stopped"
    assert stopped["committed_us"] >= stopped["started_us"]
    # Nobody is asked who does not listen.
    assert main(["stop", str(path)]) == 0
    assert f"orders was stopped, at epoch {stopped['epoch']}: there is nothing to stop" in capsys.readouterr().out


def test_status_shows_how_far_a_running_epoch_is(folder, capsys):
    numbers = OperatorMetrics(rows_sent=1234)
    epoch = EpochResult(
        epoch=3,
        duration_s=12.5,
        operators={"numbers": numbers},
        subtasks={("numbers", 0): numbers},
        source_rows=1234,
        watermark_us=None,
        is_final=False,
    )
    backend = ParquetBackend(get_storage_provider(str(folder / "state")), "orders")
    pages = "http://driver:4040"
    job = JobResult(job_id="orders", generation=backend.claim_generation(), look=lambda: epoch, spark_ui=pages)
    with StatusWriter(backend.storage, "orders") as writer:
        writer.on_start(job)
        assert main(["status", "state"]) == 0
        shown = capsys.readouterr().out
        assert main(["status", "state", "--format", "json"]) == 0
        told = json.loads(capsys.readouterr().out)
    assert "running:     epoch 3, 1,234 rows in after 12.5 s\n" in shown
    assert "so far in the running epoch:\n" in shown
    assert f"spark ui:    {pages}\n" in shown
    assert told["spark_ui"] == pages
    assert told["running"]["source_rows"] == told["running_operators"]["numbers"]["rows_out"] == 1234
    assert main(["status", "state"]) == 0
    # The pages end with the driver.
    ended = capsys.readouterr().out
    assert "running:" not in ended
    assert "spark ui:" not in ended


def test_a_killed_driver_is_dead_and_is_not_asked_to_stop(folder, start, capsys):
    path = write(folder, "orders")
    process = start(path)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert states(capsys)["orders"]["state"] == "dead"
    assert main(["status", str(path)]) == 1
    capsys.readouterr()
    assert main(["stop", str(path)]) == 0
    assert f"orders does not run: its driver (pid {process.pid} on " in capsys.readouterr().out
    assert not (folder / "state/orders/generations/1.stop").exists()


@pytest.mark.usefixtures("own_logging")
def test_what_failed_says_why_and_what_finished_says_so(folder, capsys):
    failing = write(folder, "failing", count="count: 100")
    text = failing.read_text().replace("std.blackhole, inputs: [numbers]", "std.blackhole, inputs: [bad]")
    node = "  - {id: bad, operator: std.filter, inputs: [numbers], config: {predicate: '1 / (counter - 5) > 0'}}\n"
    failing.write_text(text.replace("  - {id: out", f"{node}  - {{id: out"))
    assert main(["run", str(failing), "--in-process"]) == 2
    assert main(["run", str(write(folder, "whole", count="count: 100")), "--in-process"]) == 0
    capsys.readouterr()
    found = states(capsys)
    assert {name: job["state"] for name, job in found.items()} == {"failing": "failed", "whole": "finished"}
    assert "divide by zero" in found["failing"]["error"]
    assert main(["status", "failing.yaml"]) == 1
    assert "divide by zero" in capsys.readouterr().out
    assert main(["status", "whole.yaml", "--format", "json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert whole["operators"]["numbers"]["rows_out"] >= 0
    assert list(whole["operators"]) == ["numbers", "out"]
    assert main(["ps"]) == 0
    heading, *rows = capsys.readouterr().out.splitlines()
    assert heading.split()[:2] == ["job", "state"]
    assert [row.split()[:2] for row in rows] == [["failing", "failed"], ["whole", "finished"]]


@pytest.mark.usefixtures("own_logging")
def test_a_driver_that_failed_before_its_first_epoch_says_so_too(folder, capsys):
    path = write(folder, "orders", count="count: 100")
    pipeline = Pipeline.from_yaml(path)
    for _ in range(2):
        with contextlib.suppress(DamagedStateError):
            pipeline.run(executor=LocalExecutor(pipeline.plugins))
        for file in folder.glob("state/orders/checkpoints/*/table-*"):
            file.unlink()
    found = states(capsys)["orders"]
    assert (found["state"], found["generation"]) == ("failed", 2)
    assert "is missing" in found["error"]


def test_a_repair_waits_for_no_driver_that_has_ended_and_refuses_one_that_runs(folder, start, capsys):
    path = write(folder, "orders")
    process = start(path)
    wait_until(lambda: (states(capsys)["orders"]["epoch"] or 0) >= 3)
    process.send_signal(signal.SIGSTOP)
    epochs = folder.glob("state/orders/checkpoints/*/checkpoint.metadata")
    newest = max((file.parent for file in epochs), key=lambda epoch: int(epoch.name))
    next(newest.glob("table-numbers-*")).write_bytes(b"")
    assert main(["checkpoints", "repair", str(path), "--yes"]) == 2
    assert f"job 'orders' runs (pid {process.pid} on " in capsys.readouterr().err
    process.kill()
    process.wait()
    assert main(["checkpoints", "repair", str(path), "--yes"]) == 0
    assert "to go on from there" in capsys.readouterr().out
    repaired = states(capsys)["orders"]
    assert (repaired["state"], repaired["generation"]) == ("stopped", 2)


def test_neither_spark_nor_the_operators_are_needed(folder):
    path = write(folder, "orders")
    program = (
        "import sys; from arroyo_core.cli.main import main; main(['ps']); main(['status', sys.argv[1]]); "
        "print(sorted({'pyspark', 'arroyo_std', 'arroyo_nexmark'} & set(sys.modules)))"
    )
    environment = {**os.environ, "ARROYO_BLOCK_PLUGINS": "arroyo-std,arroyo-nexmark"}
    command = [sys.executable, "-c", program, str(path)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "orders  not started" in done.stdout
    assert "no checkpoint of job 'orders'" in done.stderr


def test_a_place_that_is_nothing_is_a_mistake(folder, capsys):
    assert main(["ps", "nowhere"]) == 2
    assert "there is no folder and no pipeline 'nowhere'" in capsys.readouterr().err
    assert main(["ps"]) == 0
    assert capsys.readouterr().out == "no jobs in .\n"


def status_of(**facts):
    fields = {"host": "elsewhere", "boot_id": "b", "pid": 1, "process_start": 1, "beat_s": 3.0}
    return DriverStatus(job="j", generation=1, started_us=0, written_us=1_000_000, **{**fields, **facts})


@pytest.mark.parametrize(
    ("facts", "now_us", "life"),
    [
        ({}, 2_000_000, Life.RUNNING),
        ({}, 14_000_000, Life.UNKNOWN),
        ({"ending": Ending.FAILED}, 14_000_000, Life.FAILED),
        ({"ending": Ending.STOPPED}, 1_000_000, Life.STOPPED),
    ],
)
def test_of_a_driver_elsewhere_its_last_word_counts(facts, now_us, life):
    assert judge_life(status_of(**facts), now_us=now_us) is life


def test_of_a_driver_here_its_process_counts_and_not_one_with_the_same_number():
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    own = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    here = {"host": os.uname().nodename, "boot_id": boot_id, "pid": os.getpid()}
    assert judge_life(status_of(**here, process_start=own), now_us=10**12) is Life.RUNNING
    assert judge_life(status_of(**here, process_start=own + 1), now_us=1_000_000) is Life.DEAD
