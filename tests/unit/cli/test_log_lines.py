"""The log of `arroyo run`: times, how many lines, JSON, and readers that go away."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from arroyo_core.cli.log_lines import LogFormat, LogFormatter, LogLines
from arroyo_core.cli.main import main
from arroyo_core.cli.progress import BRIEF_S, BriefProgress
from arroyo_core.runtime.metrics import OperatorMetrics
from arroyo_core.runtime.results import EpochResult, JobResult

PIPELINE = """\
name: logged
checkpoint: {url: STATE, interval: 1h, rows: 20}
nodes:
  - {id: numbers, operator: impulse.source, config: {count: COUNT}}
  - {id: out, operator: std.stdout, inputs: [numbers], config: {format: json}}
"""


@pytest.fixture
def pipeline(tmp_path):
    def write(count=200):
        path = tmp_path / "p.yaml"
        path.write_text(PIPELINE.replace("STATE", str(tmp_path / "state")).replace("COUNT", str(count)))
        return str(path)

    return write


def epoch(number, *, rows=10, warning=None, is_final=False):
    metrics = OperatorMetrics()
    if warning is not None:
        metrics.warn(warning)
    return EpochResult(
        epoch=number,
        duration_s=0.5,
        operators={"in": metrics},
        subtasks={},
        source_rows=rows,
        watermark_us=None,
        is_final=is_final,
        checkpoint_bytes=1024,
    )


def show(progress, clock, epochs):
    job = JobResult(job_id="j")
    with progress:
        for at_s, result in epochs:
            clock[0] = at_s
            progress.on_epoch(result, job)
    return progress.out.getvalue().splitlines()


def brief(kind=LogFormat.TEXT):
    clock = [0.0]
    lines = LogLines(kind, now=lambda: datetime(2026, 11, 17, 23, 5, 1, 250_000, tzinfo=UTC))
    return BriefProgress(io.StringIO(), monotonic=lambda: clock[0], lines=lines), clock


def test_the_first_epoch_then_sums_and_the_rest_at_the_end():
    progress, clock = brief()
    times = [step * BRIEF_S / 4 for step in range(11)]
    shown = show(progress, clock, [(at_s, epoch(number + 1)) for number, at_s in enumerate(times)])
    assert all(line.startswith("2026-11-17T23:05:01.250Z epoch") for line in shown)
    which = [re.sub(r"\s+", " ", line.partition("Z ")[2].partition(" rows in")[0]) for line in shown]
    assert which == ["epoch 1 10", "epochs 2 to 5 40", "epochs 6 to 9 40", "epochs 10 to 11 20"]


def test_warnings_and_the_last_epoch_do_not_wait():
    progress, clock = brief()
    shown = show(progress, clock, [(0, epoch(1)), (1, epoch(2, warning="late")), (2, epoch(3, is_final=True))])
    assert [re.sub(r"\s+", " ", line.partition("Z ")[2])[:14] for line in shown] == [
        "epoch 1 10 row",
        "warning: in: l",
        "epochs 2 to 3 ",
    ]


def test_json_lines_have_the_numbers():
    progress, clock = brief(LogFormat.JSON)
    shown = show(progress, clock, [(0, epoch(1)), (1, epoch(2, warning="late")), (2, epoch(3))])
    first, warning, rest = map(json.loads, shown)
    assert (first["event"], first["first_epoch"], first["epoch"], first["job"]) == ("epochs", 1, 1, "j")
    assert (warning["level"], warning["node"], warning["message"]) == ("warning", "in", "in: late")
    assert (rest["first_epoch"], rest["epoch"], rest["source_rows"], rest["checkpoint_bytes"]) == (2, 3, 20, 2048)
    assert rest["time"] == "2026-11-17T23:05:01.250Z"


def test_what_is_logged_has_a_time_and_a_level():
    record = logging.LogRecord("arroyo_core.x", logging.WARNING, __file__, 1, "no %s", ("room",), None)
    assert LogFormatter(brief()[0].lines).format(record) == "2026-11-17T23:05:01.250Z warning: no room"
    told = json.loads(LogFormatter(brief(LogFormat.JSON)[0].lines).format(record))
    assert (told["level"], told["message"], told["logger"]) == ("warning", "no room", "arroyo_core.x")


@pytest.mark.usefixtures("own_logging")
def test_off_a_terminal_there_are_fewer_lines_than_epochs(pipeline, capfd):
    assert main(["run", pipeline(), "--in-process"]) == 0
    shown = capfd.readouterr().err
    epochs = int(re.search(r"logged finished: (\d+) epochs", shown)[1])
    assert epochs >= 10
    lines = re.findall(r"(?m)^20\d\d-\S+Z epochs? +(\d+)(?: to (\d+))?  ", shown)
    assert lines[0] == ("1", "")
    assert lines[-1][1] == str(epochs)
    assert len(lines) < epochs


@pytest.mark.usefixtures("own_logging")
def test_all_of_stderr_is_json_if_it_is_asked_for(pipeline, capfd):
    assert main(["run", pipeline(), "--in-process", "--log-format", "json"]) == 0
    *_, end = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert (end["event"], end["outcome"], end["source_rows"]) == ("end", "finished", 200)
    assert main(["run", "nowhere.yaml", "--in-process", "--log-format", "json"]) == 2
    (mistake,) = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert (mistake["level"], mistake["exit_code"]) == ("error", 2)
    assert "nowhere.yaml" in mistake["message"]


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_reader_that_goes_away_does_not_end_the_job(pipeline, tmp_path, name):
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "arroyo_core", "run", pipeline(400), "--in-process", "--progress", "plain"]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, name: writing}
    done = subprocess.run(command, **streams, text=True, check=False, cwd=tmp_path)
    os.close(writing)
    assert done.returncode == 0, done.stderr
    markers = list((tmp_path / "state/logged/checkpoints").glob("*/committed.marker"))
    assert markers
    if name == "stdout":
        assert "nobody reads stdout any more" in done.stderr
        assert "logged finished: " in done.stderr
        assert "Traceback" not in done.stderr
    else:
        assert len(done.stdout.splitlines()) == 400
