"""Real processes: they are killed, and so is the server."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path

import pytest
from arroyo_console.errors import ConflictError, ReadOnlyError
from arroyo_console.values import Language, State, Wish

from .support.serving import ServerProcess, console_in, kill, started, wait_for, wait_for_state
from .support.texts import bounded, failing, paced

pytestmark = pytest.mark.once


@pytest.fixture
def console(tmp_path):
    with started(console_in(tmp_path / "data")) as console:
        yield console


def _running(console, name="orders"):
    made = console.create_pipeline(paced(name), Language.YAML)
    wait_for(lambda: (console.job(made.job.id).summary.epoch or 0) >= 2)
    return made


def test_a_job_whose_data_ends_is_finished(console, tmp_path):
    made = console.create_pipeline(bounded("short", path=str(tmp_path / "out")), Language.YAML)
    job = wait_for_state(console, made.job.id, State.FINISHED)
    assert [(run.number, run.exit_code) for run in job.runs] == [(1, 0)]
    assert list((tmp_path / "out").glob("*.json*"))


def test_a_job_that_is_killed_is_started_again_and_goes_on(console):
    made = _running(console)
    before = console.job(made.job.id)
    kill(before.summary.pid)
    job = wait_for(lambda: len(found.runs) == 2 and found if (found := console.job(made.job.id)) else None)
    assert job.summary.restarts == 1
    assert job.runs[0].is_restart
    assert (job.runs[1].exit_code, "killed" in job.runs[1].reason) == (None, True)
    assert State.RESTARTING in [change.state for change in job.changes]
    wait_for(lambda: (console.job(made.job.id).summary.epoch or 0) > before.summary.epoch)


def test_a_stop_ends_the_epoch_and_a_start_goes_on(console):
    made = _running(console)
    console.change_pipeline(made.id, wish=Wish.CHECKPOINT)
    job = wait_for_state(console, made.job.id, State.STOPPED)
    assert (job.runs[0].exit_code, job.summary.pid) == (0, None)
    epoch = console.checkpoints(made.job.id)[0].epoch
    with pytest.raises(ConflictError, match="does not run"):
        console.change_pipeline(made.id, wish=Wish.CHECKPOINT)
    console.change_pipeline(made.id, wish=Wish.START)
    wait_for(lambda: (console.job(made.job.id).summary.epoch or 0) > epoch)
    with pytest.raises(ConflictError, match="already"):
        console.change_pipeline(made.id, wish=Wish.START)


def test_a_job_can_be_killed_on_purpose_and_is_not_started_again(console):
    made = _running(console)
    console.change_pipeline(made.id, wish=Wish.KILL)
    job = wait_for_state(console, made.job.id, State.STOPPED)
    assert (len(job.runs), job.runs[0].exit_code) == (1, None)


def test_another_parallelism_counts_while_the_job_runs(console):
    made = _running(console)
    console.change_pipeline(made.id, parallelism=2)
    wait_for(lambda: console.job(made.job.id).summary.parallelism == 2)
    assert len(console.job(made.job.id).runs) == 1
    assert {node.parallelism for node in console.job_graph(made.job.id).nodes} == {2}


def test_a_restart_stops_at_a_checkpoint_and_a_fresh_one_begins_with_nothing(console):
    made = _running(console)
    console.restart_pipeline(made.id)
    job = wait_for(lambda: len(found.runs) == 2 and found if (found := console.job(made.job.id)) else None)
    assert (job.runs[1].exit_code, job.summary.restarts) == (0, 0)
    wait_for_state(console, made.job.id, State.RUNNING)
    console.restart_pipeline(made.id, is_fresh=True, is_forced=True)
    wait_for(lambda: len(console.job(made.job.id).runs) == 3)
    wait_for(lambda: "begin" in "\n".join(console.job_log(made.job.id).lines) or console.checkpoints(made.job.id))
    assert min(each.epoch for each in wait_for(lambda: console.checkpoints(made.job.id))) == 1


def test_a_text_that_fails_when_it_runs_is_shown_with_its_traceback_and_not_tried_again(console):
    made = console.create_pipeline(failing("fails"), Language.YAML)
    job = wait_for_state(console, made.job.id, State.FAILED)
    assert (len(job.runs), job.runs[0].exit_code) == (1, 2)
    (error,) = console.job_errors(made.job.id)
    assert (error.node, error.run) == ("bad", 1)
    assert "divide by zero" in error.message.lower()
    assert "Traceback" in error.traceback


def test_what_a_run_leaves_is_for_this_user_alone_and_has_no_token(console, tmp_path, monkeypatch):
    made = _running(console)
    folder = tmp_path / "data" / "jobs" / made.job.id / "1"
    for path in folder.iterdir():
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path
    assert not stat.S_IMODE((tmp_path / "data" / "console.db").stat().st_mode) & 0o077


def test_the_token_of_the_server_is_not_in_the_environment_of_jobs(tmp_path, monkeypatch):
    monkeypatch.setenv("ARROYO_CONSOLE_TOKEN", "a-token-that-no-pipeline-may-read")
    monkeypatch.setenv("OTHER", "stays")
    with started(console_in(tmp_path / "data")) as console:
        made = _running(console)
        environment = Path(f"/proc/{console.job(made.job.id).summary.pid}/environ").read_bytes()
        names = {line.partition(b"=")[0] for line in environment.split(b"\0")}
    assert b"OTHER" in names
    assert b"ARROYO_CONSOLE_TOKEN" not in names


def test_a_second_server_reads_and_does_not_change_anything(console, tmp_path):
    made = console.create_pipeline(paced("orders"), Language.YAML, start=False)
    other = console_in(tmp_path / "data")
    other.start()
    try:
        assert not other.info().is_supervisor
        assert other.pipeline(made.id).name == "orders"
        with pytest.raises(ReadOnlyError, match="supervises the jobs of this database"):
            other.change_pipeline(made.id, wish=Wish.START)
    finally:
        other.stop()
    assert console.info().is_supervisor


def test_jobs_outlive_a_server_that_is_killed_and_the_next_one_has_them(tmp_path):
    first = ServerProcess(tmp_path / "data")
    made = [
        first.post("/v1/pipelines", {"query": paced(f"p{number}"), "language": "yaml"})["job"]["id"]
        for number in range(2)
    ]
    for job_id in made:
        wait_for(lambda job_id=job_id: (first.get(f"/v1/jobs/{job_id}")["summary"]["epoch"] or 0) >= 2)
    before = {job_id: first.get(f"/v1/jobs/{job_id}") for job_id in made}
    first.kill()
    for job_id in made:
        os.kill(before[job_id]["summary"]["pid"], 0)
    second = ServerProcess(tmp_path / "data")
    try:
        wait_for(lambda: second.get("/v1/info")["is_supervisor"])
        for job_id in made:
            after = second.get(f"/v1/jobs/{job_id}")
            assert after["runs"] == before[job_id]["runs"]
            assert after["changes"] == before[job_id]["changes"]
            assert after["summary"]["epoch"] >= before[job_id]["summary"]["epoch"]
        # One that dies is started again by the server that has not started it; the other one is stopped.
        os.kill(before[made[0]]["summary"]["pid"], signal.SIGKILL)
        wait_for(lambda: len(second.get(f"/v1/jobs/{made[0]}")["runs"]) == 2)
        pipeline_id = before[made[1]]["summary"]["pipeline_id"]
        second.patch(f"/v1/pipelines/{pipeline_id}", {"stop": "checkpoint"})
        stopped = wait_for(lambda: (job := second.get(f"/v1/jobs/{made[1]}"))["summary"]["state"] == "stopped" and job)
        assert stopped["runs"][0]["exit_code"] == 0
    finally:
        for job in second.get("/v1/jobs")["items"]:
            if job["pid"]:
                kill(job["pid"])
        second.close()
