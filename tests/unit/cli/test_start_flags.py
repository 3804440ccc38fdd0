"""The flags of `arroyo run` that say how a job starts, and `arroyo plan --against`."""

import json
import re
import sys
import types
from pathlib import Path

import pytest
from arroyo_testing.lanes import InlineLanes

from arroyo_core.cli.main import main
from arroyo_core.cli.run_options import start_options
from arroyo_core.pipeline import plan_pipeline
from arroyo_core.plugin import installed_plugins
from arroyo_core.runtime.job import Job
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.start import StartOptions
from arroyo_core.state.fork import ForkSource

PIPELINE = """\
name: counted
checkpoint: {{url: "{url}", rows: 100}}
nodes:
  - {{id: numbers, operator: impulse.source, config: {{count: 300}}}}
  - {{id: few, operator: std.filter, inputs: [numbers], config: {{predicate: "counter < 10"}}}}
  - {{id: nothing, operator: std.blackhole, inputs: [few]}}
"""


@pytest.fixture
def given(monkeypatch):
    """What `arroyo run` is given, without running anything."""
    found = []

    def run(args):
        found.append((start_options(args), args))
        return 0

    monkeypatch.setitem(sys.modules, "arroyo_core.cli.run", types.SimpleNamespace(run=run))
    return found


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ([], StartOptions()),
        (["--from-epoch", "7"], StartOptions(from_epoch=7)),
        (["--from-epoch", "7", "--allow-drop"], StartOptions(from_epoch=7, allow_drop=True)),
        (["--allow-change", "a", "--allow-change", "b"], StartOptions(allow_changes=frozenset({"a", "b"}))),
        (["--fresh"], StartOptions(is_fresh=True)),
        (["--fresh", "--force"], StartOptions(is_fresh=True, is_forced=True)),
        (["--fork-from", "s3://b/x"], StartOptions(fork_from=ForkSource(url="s3://b/x"))),
        (["--fork-from", "./s#j"], StartOptions(fork_from=ForkSource(url="./s", job_id="j"))),
        (["--fork-from", "./s#j.1@12"], StartOptions(fork_from=ForkSource(url="./s", job_id="j.1", epoch=12))),
    ],
)
def test_flags_become_options(given, flags, expected):
    assert main(["run", "p.yaml", *flags]) == 0
    assert given[0][0] == expected


def test_every_flag_in_the_documentation_exists(capsys):
    text = (Path(__file__).parents[3] / "docs/pipelines.md").read_text()
    named = set(re.findall(r"--[a-z]+(?:-[a-z]+)*", text))
    known = set()
    for command in ("run", "plan", "fmt", "lint"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        known |= set(re.findall(r"--[a-z]+(?:-[a-z]+)*", capsys.readouterr().out))
    expected = {"--from-epoch", "--fresh", "--force", "--fork-from", "--allow-drop", "--allow-change", "--against"}
    assert expected <= named <= known


def test_restarts_and_metrics_have_defaults(given):
    main(["run", "p.yaml"])
    main(["run", "p.yaml", "--max-restarts", "0", "--metrics-port", "9100"])
    assert [(args.max_restarts, args.metrics_port) for _, args in given] == [(20, None), (0, 9100)]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--from-epoch", "0"], "'0' is not a whole number between 1 and"),
        (["--from-epoch", "latest"], "'latest' is not a whole number"),
        (["--from-epoch", "9" * 5000], "is not a whole number"),
        (["--from-epoch", "1", "--fresh"], "not allowed with argument"),
        (["--fresh", "--fork-from", "/x"], "not allowed with argument"),
        (["--from-epoch", "1", "--fork-from", "/x"], "not allowed with argument"),
        (["--fork-from", "/x#a b"], "names no checkpoint: write URL, URL#JOB or URL#JOB@EPOCH"),
        (["--max-restarts", "-1"], "'-1' is not a whole number between 0 and"),
        (["--max-restarts", "many"], "'many' is not a whole number between 0 and"),
        (["--metrics-port", "70000"], "'70000' is not a whole number between 1 and 65535"),
    ],
)
def test_wrong_flags_are_refused_with_what_is_allowed(given, capsys, flags, message):
    with pytest.raises(SystemExit) as caught:
        main(["run", "p.yaml", *flags])
    assert caught.value.code == 2
    assert message in capsys.readouterr().err
    assert given == []


def test_force_goes_with_fresh_only(given, capsys):
    assert main(["run", "p.yaml", "--force"]) == 2
    assert capsys.readouterr().err == "arroyo: --force only goes with --fresh\n"


@pytest.fixture
def ran(tmp_path):
    """A pipeline that has run, and whose file can be changed."""
    url = str(tmp_path / "state")
    path = tmp_path / "p.yaml"

    def write(text=PIPELINE):
        path.write_text(text.format(url=url))
        return str(path)

    plugins = installed_plugins()
    plan = plan_pipeline(write(), plugins=plugins, environment={})
    Job(plan, LocalExecutor(plugins), plugins=plugins, storage_url=url, lanes=InlineLanes()).run()
    return write, url


def test_a_finished_job_needs_no_spark_and_claims_nothing(ran, capsys, monkeypatch):
    monkeypatch.setattr("arroyo_core.cli.run.start_spark", None)
    write, url = ran
    claims = sorted(Path(url).glob("counted/generations/*"))
    assert main(["run", write()]) == 0
    shown = capsys.readouterr().err
    assert "counted finished in an earlier run, at epoch 3" in shown
    assert "starting Spark" not in shown
    assert main(["run", write(), "--format", "json"]) == 0
    end = json.loads(capsys.readouterr().out)
    assert (end["event"], end["outcome"], end["epochs"], end["resumed_from"]) == ("end", "finished", 0, 3)
    assert sorted(Path(url).glob("counted/generations/*")) == claims


def test_an_unchanged_pipeline_can_start_from_its_checkpoint(ran, capsys):
    write, url = ran
    assert main(["plan", write(), "--against", url]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Pipeline    counted\n")
    lines = shown[shown.index("\nAgainst ") + 1 :].splitlines()
    assert lines[0].startswith("Against epoch ")
    assert lines[0].endswith(f" of job 'counted' below {url}")
    rows = [line.split() for line in lines[2:6]]
    assert rows[0] == ["node", "operator", "verdict", "state", "reason"]
    assert rows[1][:3] == ["numbers", "impulse.source", "reused"]
    assert rows[2] == ["few", "std.filter", "reused", "-", "no", "state"]
    assert rows[3] == ["nothing", "std.blackhole", "reused", "-", "no", "state"]
    assert lines[-1] == "The pipeline can start from it."


RENAMED = PIPELINE.replace("id: numbers", "id: counters").replace("[numbers]", "[counters]")


def test_a_pipeline_that_would_lose_state_says_so_and_exits_with_2(ran, capsys):
    write, url = ran
    assert main(["plan", write(RENAMED), "--against", f"{url}#counted"]) == 2
    shown = capsys.readouterr().out
    assert "counters  impulse.source  new" in shown
    assert "reads from its beginning" in shown
    assert "was it renamed to 'counters'? Then write 'was: numbers' in that node" in shown
    assert shown.endswith("State would be lost (numbers): the pipeline starts from it only with --allow-drop.\n")


RETIMED = PIPELINE.replace("count: 300", "count: 300, event_time_interval: 2s")


def test_a_pipeline_that_would_misread_state_says_so_and_exits_with_2(ran, capsys):
    write, url = ran
    assert main(["plan", write(RETIMED), "--against", url]) == 2
    shown = capsys.readouterr().out
    assert re.search(r"numbers +impulse.source +changed +s \(.*\) +event_time_interval none -> 2s\n", shown)
    assert shown.endswith(
        "State would be misread (numbers changed: event_time_interval none -> 2s): the pipeline starts from it only "
        "with --allow-change numbers.\n"
    )
    assert main(["plan", write(RETIMED), "--against", url, "--format", "json"]) == 2
    comparison = json.loads(capsys.readouterr().out)["comparison"]
    assert (comparison["needs_allow_drop"], comparison["needs_allow_change"]) == (False, ["numbers"])
    numbers = comparison["nodes"][0]
    assert (numbers["verdict"], numbers["needs_allow_change"]) == ("changed", True)
    assert numbers["changed_settings"] == [{"label": "event_time_interval", "before": "none", "after": "2s"}]


def test_a_start_that_would_misread_state_is_refused_before_spark(ran, capsys, monkeypatch):
    monkeypatch.setattr("arroyo_core.cli.run.start_spark", None)
    write, _ = ran
    assert main(["run", write(RETIMED)]) == 2
    shown = capsys.readouterr().err
    assert "numbers (impulse.source), changed: event_time_interval none -> 2s" in shown
    assert "--allow-change numbers" in shown
    assert main(["run", write(RETIMED), "--allow-change", "numbers"]) == 0
    assert "counted finished in an earlier run" in capsys.readouterr().err


def test_the_comparison_is_part_of_the_json(ran, capsys):
    write, url = ran
    assert main(["plan", write(RENAMED), "--against", f"{url}#counted@1", "--format", "json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["name"] == "counted"
    comparison = found["comparison"]
    assert comparison["against"] == {"url": url, "job": "counted", "epoch": 1}
    assert comparison["needs_allow_drop"] is True
    nodes = {node["id"]: node for node in comparison["nodes"]}
    assert nodes["counters"]["reads_from_its_beginning"] is True
    assert nodes["numbers"]["verdict"] == "removed"
    (table,) = nodes["numbers"]["tables"]
    assert table["is_dropped"] is True
    assert table["bytes"] > 0


def test_a_checkpoint_that_is_not_there_is_a_mistake(ran, capsys):
    write, url = ran
    assert main(["plan", write(), "--against", f"{url}#other"]) == 2
    assert f"job 'other' has no checkpoint below {url} (jobs there: counted)" in capsys.readouterr().err


def test_pictures_have_no_comparison(ran, capsys):
    write, url = ran
    assert main(["plan", write(), "--against", url, "--format", "dot"]) == 2
    assert "--against has no --format dot: choose text or json" in capsys.readouterr().err


def test_a_shown_checkpoint_says_where_its_job_was_forked_from(ran, capsys):
    write, url = ran
    plugins = installed_plugins()
    plan = plan_pipeline(write(PIPELINE.replace("name: counted", "name: copy")), plugins=plugins, environment={})
    options = StartOptions(fork_from=ForkSource(url=url, job_id="counted", epoch=1))
    Job(plan, LocalExecutor(plugins), plugins=plugins, storage_url=url, lanes=InlineLanes(), start=options).run()
    capsys.readouterr()
    assert main(["checkpoints", "show", url, "--job", "copy"]) == 0
    assert f"forked_from:  epoch 1 of job 'counted' below {url}\n" in capsys.readouterr().out
