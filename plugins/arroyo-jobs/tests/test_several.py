"""`arroyo run` with several pipelines, in this process."""

import io
import json
import logging
import re
import signal
import subprocess
import sys

import pytest
from arroyo_jobs.job_lines import name_job
from arroyo_jobs.prometheus import JobMetrics, MergedMetrics
from arroyo_jobs.threads import Outcome, SetJob, run_jobs
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from arroyo_core import Pipeline
from arroyo_core.cli.exits import MISTAKE, OK
from arroyo_core.cli.main import main
from arroyo_core.runtime.job_threads import start_job_thread
from tests.waiting import wait_until

PIPELINE = """\
name: {name}
parameters: {{few: {{type: int, default: {count}}}{parameters}}}
checkpoint: {{url: {folder}/state, interval: 1h, rows: 20}}
nodes:
  - {{id: numbers, operator: impulse.source, config: {{count: {count}}}}}
  - {{id: checked, operator: std.project, inputs: [numbers], config: {{expressions: {{n: "{expression}"}}}}}}
  - {{id: some, operator: std.filter, inputs: [checked], config: {{predicate: "n < ${{few}}"}}}}
  - {{id: files, operator: filesystem.sink, inputs: [some], config: {{path: {folder}/{name}, format: json}}}}
"""
NUMBER = "cast(counter as bigint)"
#: Fails in the third epoch.
BROKEN = "cast(case when counter = 50 then 'x' else '1' end as bigint)"


@pytest.fixture
def write(tmp_path):
    def write(name, *, file=None, count=60, expression=NUMBER, parameters="", change=("", "")):
        text = PIPELINE.format(name=name, folder=tmp_path, count=count, expression=expression, parameters=parameters)
        path = tmp_path / "pipelines" / (file or f"{name}.yaml")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.replace(*change))
        return str(path)

    return write


@pytest.fixture
def numbers(tmp_path):
    """What a pipeline has committed."""

    def read(name):
        files = sorted((tmp_path / name).glob("part-*.jsonl"))
        return sorted(json.loads(line)["n"] for file in files for line in file.read_text().splitlines())

    return read


def run(*arguments):
    return main(["run", *arguments, "--in-process"])


def error_of(capsys):
    """What was said, without the times of lines."""
    return re.sub(r"^\d{4}-\S+Z ", "", capsys.readouterr().err, flags=re.MULTILINE)


@pytest.mark.usefixtures("own_logging")
def test_all_pipelines_of_a_folder_run_and_are_told_by_their_names(write, numbers, tmp_path, capsys):
    write("one")
    write("other_one", count=40)
    write("one", file="one_test.yaml", change=("nodes", "no nodes at all"))
    write("one", file="_part.yaml", change=("nodes", "no nodes at all"))
    (tmp_path / "pipelines" / "notes.txt").write_text("no pipeline")
    assert run(str(tmp_path / "pipelines"), "--progress", "plain") == OK
    assert (numbers("one"), numbers("other_one")) == (list(range(60)), list(range(40)))
    lines = error_of(capsys).splitlines()
    assert sum(line.startswith("one:       epoch ") for line in lines) >= 3
    assert sum(line.startswith("other_one: epoch ") for line in lines) >= 2
    assert [line.split()[:4] for line in lines[-2:]] == [
        ["one", "finished", "3", "60"],
        ["other_one", "finished", "2", "40"],
    ]


@pytest.mark.usefixtures("own_logging")
def test_one_that_fails_for_good_is_told_at_once_and_at_the_end_and_the_others_go_on(write, numbers, capsys):
    code = run(write("broken", expression=BROKEN), write("whole", count=400))
    assert code == MISTAKE
    assert numbers("whole") == list(range(400))
    assert numbers("broken") == [1] * 40
    told = error_of(capsys)
    at_once, _, table = told.partition("\njob ")
    table, _, at_the_end = table.partition("\nbroken failed:\n")
    assert "error: broken: failed; 1 other runs on: operator 'checked', subtask 0, epoch 3" in at_once
    assert "broken  failed " in table
    assert "whole   finished " in table
    assert "arroyo: operator 'checked', subtask 0, epoch 3" in at_the_end


@pytest.mark.usefixtures("own_logging")
def test_what_has_finished_before_is_not_run_again(write, numbers, capsys):
    files = write("one"), write("other")
    assert run(*files) == OK
    capsys.readouterr()
    assert run(*files) == OK
    assert numbers("one") == list(range(60))
    rows = error_of(capsys).splitlines()[-2:]
    assert all(row.endswith("in an earlier run, at epoch 3") for row in rows)


@pytest.mark.usefixtures("own_logging")
def test_the_mistakes_of_every_file_are_told_before_anything_runs(write, tmp_path, capsys):
    files = [
        write("one", change=("impulse.source", "impulse.sauce")),
        write("two"),
        write("three", change=("predicate", "predicament")),
        str(tmp_path / "four.yaml"),
    ]
    assert run(*files) == MISTAKE
    told = error_of(capsys)
    assert f"{files[0]}:5:" in told
    assert "did you mean impulse.source?" in told
    assert f"{files[2]}:7:" in told
    assert f"cannot read {files[3]}" in told
    assert f"{files[1]}" not in told
    assert not (tmp_path / "state").exists()


@pytest.mark.usefixtures("own_logging")
def test_two_pipelines_of_one_name_are_a_mistake(write, capsys):
    first, second = write("one"), write("one", file="two.yaml")
    assert run(first, second) == MISTAKE
    assert f"{second}:1:7: {first} has the name 'one' too" in error_of(capsys)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["."], "there are no pipelines in ."),
        (["a.yaml", "b.yaml", "./a.yaml"], "./a.yaml is given twice, also as a.yaml"),
        (["a.yaml", "a.yaml"], "a.yaml is given twice: "),
        (["pipelines", "pipelines/a.yaml"], "pipelines/a.yaml is given twice: "),
    ],
)
def test_files_that_cannot_be_meant_are_refused(tmp_path, monkeypatch, capsys, given, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "a.yaml").touch()
    assert run(*given) == MISTAKE
    assert message in error_of(capsys)


@pytest.mark.parametrize("flags", [["--from-epoch", "1"], ["--fresh"], ["--fork-from", "x#y"], ["--allow-drop"]])
@pytest.mark.usefixtures("own_logging")
def test_flags_about_the_start_go_with_one_pipeline(write, tmp_path, capsys, flags):
    assert run(write("one"), write("two"), *flags) == MISTAKE
    assert "go with one pipeline, and 2 are given" in error_of(capsys)
    assert not (tmp_path / "state").exists()


@pytest.mark.usefixtures("own_logging")
def test_live_workers_are_for_one_pipeline(write, tmp_path, capsys):
    assert run(write("one"), write("two"), "--execution", "live") == MISTAKE
    assert "--execution live goes with one pipeline" in error_of(capsys)
    assert not (tmp_path / "state").exists()


@pytest.mark.usefixtures("own_logging")
def test_a_parameter_is_for_the_pipelines_that_declare_it(write, numbers):
    files = write("one"), write("two", parameters=", more: {default: 1}")
    assert run(*files, "--set", "more=3", "--set", "few=7") == OK
    assert numbers("one") == numbers("two") == list(range(7))


@pytest.mark.usefixtures("own_logging")
def test_a_parameter_that_no_pipeline_declares_is_a_mistake(write, tmp_path, capsys):
    assert run(write("one"), write("two"), "--set", "fews=3") == MISTAKE
    told = error_of(capsys)
    assert "none of the pipelines has a parameter 'fews'" in told
    assert "did you mean few?" in told
    assert not (tmp_path / "state").exists()


@pytest.mark.usefixtures("own_logging")
def test_json_names_the_job_of_every_object_and_has_one_end_for_each(write, capsys):
    assert run(write("whole"), write("broken", expression=BROKEN), "--format", "json") == MISTAKE
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    epochs = [(each["job"], each["epoch"]) for each in found if each["event"] == "epoch"]
    assert sorted(epochs) == [("broken", 1), ("broken", 2), ("whole", 1), ("whole", 2), ("whole", 3)]
    ends = {each["job"]: each for each in found if each["event"] == "end"}
    assert len(found) == len(epochs) + 2
    assert (ends["whole"]["outcome"], ends["whole"]["error"], ends["whole"]["source_rows"]) == ("finished", None, 60)
    assert (ends["broken"]["outcome"], ends["broken"]["epochs"]) == ("failed", 2)
    assert "operator 'checked'" in ends["broken"]["error"]


class Command:
    """`arroyo run` in a process of its own, with endless pipelines."""

    def __init__(self, files, folder):
        self._log = folder / "stderr"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "arroyo_core", "run", *files, "--in-process", "--progress", "plain"],
                stderr=log,
                cwd=folder,
            )

    @property
    def told(self):
        return self._log.read_text()

    def wait_for(self, *texts):
        wait_until(
            lambda: all(text in self.told for text in texts) or self.process.poll() is not None,
            problem=lambda: self.told,
        )
        assert all(text in self.told for text in texts), self.told


@pytest.fixture
def command(tmp_path):
    started = []

    def start(*files):
        started.append(Command(files, tmp_path))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()


def test_a_signal_stops_all_pipelines_after_their_epochs(write, numbers, command):
    endless = ("count: 60}", "rate: 100}")
    running = command(write("one", change=endless), write("two", change=endless))
    running.wait_for("one: epoch    2", "two: epoch    2")
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait() == OK
    running.wait_for("\none  stopped ", "\ntwo  stopped ")
    for name in ("one", "two"):
        found = numbers(name)
        assert len(found) >= 40
        assert found == list(range(len(found)))


def test_what_a_thread_logs_has_the_name_of_its_job():
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    handler.addFilter(name_job)
    logger = logging.Logger("job")
    logger.addHandler(handler)

    def run(job):
        logger.warning("in the thread of the %s", "job")
        start_job_thread(logger.warning, "in another one", name="other").join()
        raise SystemExit

    (ended,) = run_jobs([SetJob("orders", run)])
    logger.warning("in none")
    assert lines.getvalue().splitlines() == ["orders: in the thread of the job", "orders: in another one", "in none"]
    assert ended.outcome is Outcome.FAILED
    assert "the job ended with SystemExit" in str(ended.error)


def test_metrics_of_several_jobs_describe_each_metric_once(write):
    collectors = [JobMetrics(Pipeline.from_yaml(write(name)).plan) for name in ("one", "two")]
    registry = CollectorRegistry()
    registry.register(MergedMetrics(collectors))
    text = generate_latest(registry).decode()
    assert text.count("# TYPE arroyo_epochs_total ") == 1
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert {sample.labels["job_id"] for sample in families["arroyo_epochs"].samples} == {"one", "two"}
