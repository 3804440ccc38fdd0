"""The files of `deploy/`, run or checked as far as a machine can, and what their pages say of exit codes."""

from __future__ import annotations

import configparser
import importlib.util
import json
import logging
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import types
from pathlib import Path

import pytest
import yaml
from arroyo_jobs.prometheus import JobMetrics
from prometheus_client import CollectorRegistry, generate_latest

from arroyo_core.cli import exits
from arroyo_core.cli.main import _parser
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.metric import metrics_of
from arroyo_core.runtime.metrics import OperatorMetrics
from arroyo_core.runtime.results import EpochResult
from arroyo_core.spark.pipeline import Pipeline

from ..document_pages import ROOT
from ..waiting import wait_until

pytestmark = pytest.mark.once

DEPLOY = ROOT / "deploy"
#: Codes after which a restart makes nothing better.
LASTING = {exits.MISTAKE, exits.FENCED, exits.DAMAGED}
ARROYO = Path(sys.executable).with_name("arroyo")

EXPORTING = """\
name: exporting
checkpoint: {url: STATE, rows: 1}
nodes:
  - id: rows
    operator: filesystem.source
    config: {path: ROWS, schema: {at: timestamp, n: int64}, event_time_field: at}
  - {id: timed, operator: std.watermark, inputs: [rows], config: {max_lateness: 0s}}
  - {id: safe, operator: std.project, inputs: [timed], config: {expressions: {r: "6 / n"}, on_error: dead_letter}}
  - {id: counts, operator: std.tumbling_window, inputs: [timed], config: {size: 1s, aggregates: [{function: count}]}}
  - {id: a, operator: std.blackhole, inputs: [safe]}
  - {id: b, operator: std.blackhole, inputs: [safe.errors]}
  - {id: c, operator: std.blackhole, inputs: [counts]}
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """What Prometheus is told by a job with late rows, dead letters and event time."""
    folder = tmp_path_factory.mktemp("exporting")
    times = ["00:00:00", "00:00:10", "00:00:05", "00:00:20", "00:00:30"]
    rows = [f'{{"at": "2026-01-01T{time}Z", "n": {number}}}' for number, time in enumerate(times)]
    (folder / "rows.jsonl").write_text("\n".join(rows))
    path = folder / "p.yaml"
    path.write_text(EXPORTING.replace("STATE", str(folder / "state")).replace("ROWS", str(folder / "rows.jsonl")))
    pipeline = Pipeline.from_yaml(path)
    metrics, registry = JobMetrics(pipeline.plan), CollectorRegistry()
    registry.register(metrics)
    seen = []

    class AtEveryEpoch:
        """The last epoch is at the end of time, and has no watermark."""

        def on_start(self, job):
            metrics.on_start(job)

        def on_epoch(self, result, job):
            metrics.on_epoch(result, job)
            # As live workers report the epoch that runs.
            job.look = lambda: result
            seen.append(generate_latest(registry).decode())

    pipeline.run(executor=LocalExecutor(pipeline.plugins), listener=AtEveryEpoch())
    return "".join(seen)


def queries():
    """Every query of the rules and of the dashboard, by where it is."""
    rules = yaml.safe_load((DEPLOY / "prometheus/alerts.yaml").read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            yield f"alert {rule['alert']}", rule["expr"]
    dashboard = json.loads((DEPLOY / "grafana/dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield f"panel {panel['title']}", target["expr"]
    for variable in dashboard["templating"]["list"]:
        yield f"variable {variable['name']}", variable["query"]


@pytest.mark.parametrize(("place", "query"), [pytest.param(*found, id=found[0]) for found in queries()])
def test_what_is_queried_is_exported(exported, place, query):
    names = set(re.findall(r"\barroyo_\w+", query))
    if place not in ("alert ArroyoDown", "variable datasource"):
        assert names
    assert names <= set(re.findall(r"(?m)^(\w+)\{", exported)), place
    for counter in re.findall(r'counter="(\w+)"', query):
        assert f'counter="{counter}"' in exported, place
    assert query.count("(") == query.count(")")
    assert query.count("{") == query.count("}")


def test_the_dashboard_shows_all_that_live_workers_tell_while_an_epoch_runs():
    shown = " ".join(query for place, query in queries() if place.startswith("panel "))
    told = [metric.running for owner in (EpochResult, OperatorMetrics) for metric in metrics_of(owner).values()]
    assert len([name for name in told if name]) > 5
    for name in [*filter(None, told), "arroyo_parallelism"]:
        assert re.search(rf"\b{name}\{{", shown), name


def test_panels_of_the_dashboard_do_not_cover_each_other():
    panels = json.loads((DEPLOY / "grafana/dashboard.json").read_text())["panels"]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(set(places)) == len(places)
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        assert (panel["gridPos"]["w"], panel["gridPos"]["h"]) == (12, 7)


def test_what_an_operator_must_watch_has_an_alert():
    told = " ".join(query for place, query in queries() if place.startswith("alert "))
    for metric in (
        "arroyo_last_commit_age_seconds",
        "arroyo_restarts_total",
        "arroyo_source_backlog",
        "arroyo_state_bytes",
        "arroyo_worker_cache_bytes",
        'counter="dead_letters"',
        'counter="late_rows"',
    ):
        assert metric in told


def test_rules_have_the_form_of_rules():
    rules = yaml.safe_load((DEPLOY / "prometheus/alerts.yaml").read_text())
    assert set(rules) == {"groups"}
    for group in rules["groups"]:
        assert set(group) == {"name", "rules"}
        for rule in group["rules"]:
            assert (
                {"alert", "expr", "labels", "annotations"}
                <= set(rule)
                <= {
                    *("alert", "expr", "for", "labels", "annotations"),
                }
            )
            assert rule["labels"]["severity"] in ("critical", "warning", "info")
            assert re.fullmatch(r"\d+[smhd]", rule.get("for", "0s"))
            assert {"summary", "description"} == set(rule["annotations"])


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_accepts_the_rules():
    subprocess.run(["promtool", "check", "rules", str(DEPLOY / "prometheus/alerts.yaml")], check=True)


def unit():
    parsed = configparser.ConfigParser(strict=False, interpolation=None)
    parsed.optionxform = str
    parsed.read(DEPLOY / "systemd/arroyo@.service")
    return parsed


def test_a_service_stays_down_after_a_code_that_lasts():
    service = unit()["Service"]
    assert set(map(int, service["RestartPreventExitStatus"].split())) == LASTING
    assert service["Restart"] == "on-failure"
    # Else systemd would end Spark's processes before the epoch is over.
    assert service["KillMode"] == "mixed"


def parse_arroyo(words):
    """The arguments of a command line of ours; fails if `arroyo` would not take them."""
    assert Path(words[0]).name == "arroyo"
    return _parser(words[1:]).parse_args(words[1:])


def test_the_service_starts_a_command_that_there_is():
    command = shlex.split(unit()["Service"]["ExecStart"].replace("%i", "orders").replace("${METRICS_PORT}", "9100"))
    args = parse_arroyo(command)
    assert (args.files, args.metrics_port) == (["/etc/arroyo/orders.yaml"], 9100)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit(tmp_path):
    text = (DEPLOY / "systemd/arroyo@.service").read_text()
    assert "/opt/arroyo/bin/arroyo" in text
    path = tmp_path / "arroyo@.service"
    path.write_text(text.replace("/opt/arroyo/bin/arroyo", str(ARROYO)))
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True, text=True, check=False
    )
    assert (verified.returncode, verified.stderr) == (0, "")
    path.write_text(text.replace("/opt/arroyo/bin/arroyo", str(ARROYO)).replace("KillMode=mixed", "KillMode=some"))
    refused = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True, text=True, check=False
    )
    assert "kill mode" in refused.stderr


DAILY = """\
name: daily_${day}
parameters: {day: {type: string}}
checkpoint: {url: ./state}
nodes:
  - {id: numbers, operator: impulse.source, config: {count: 10}}
  - {id: out, operator: filesystem.sink, inputs: [numbers], config: {path: "./out/${day}"}}
"""


def cron_command(folder):
    """The command of the line as cron gives it to its shell, in another folder and without Spark."""
    (line,) = [
        line for line in (DEPLOY / "cron/arroyo.cron").read_text().splitlines() if re.match(r" *[\d*]+ +[\d*]+ ", line)
    ]
    *times, user, command = line.split(maxsplit=6)
    assert (len(times), user) == (5, "arroyo")
    for before, after in (
        ("/var/lib/arroyo", str(folder)),
        ("/etc/arroyo", str(folder)),
        ("arroyo run", "arroyo run --in-process"),
        (r"\%", "%"),
    ):
        assert before in command
        command = command.replace(before, after)
    return command


def test_cron_runs_its_line_without_a_terminal(tmp_path):
    (tmp_path / "daily.yaml").write_text(DAILY)
    environment = {"PATH": f"{ARROYO.parent}:/usr/bin:/bin", "HOME": str(tmp_path), "SHELL": "/bin/sh"}

    def run():
        return subprocess.run(
            ["/bin/sh", "-c", cron_command(tmp_path)],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            start_new_session=True,
            check=False,
            cwd="/",
        )

    done = run()
    log = (tmp_path / "daily.log").read_text()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), log
    assert re.search(r"(?m)^\S+Z epoch", log)
    (folder,) = (tmp_path / "out").iterdir()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", folder.name)
    (tmp_path / "daily.yaml").write_text(DAILY.replace("impulse.source", "impulse.sauce"))
    failed = run()
    assert failed.stdout.startswith("daily.yaml: exit code 2, see ")


@pytest.fixture
def dag(monkeypatch):
    """The DAG's file, imported with stand-ins for what it needs of Airflow."""

    class AirflowError(Exception):
        pass

    class AirflowFailError(AirflowError):
        pass

    made = []

    class BaseOperator:
        def __init__(self, *, task_id):
            self.task_id = task_id
            self.log = logging.getLogger("airflow.task")
            made.append(self)

    class Dag:
        def __init__(self, **options):
            self.options = options

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

    modules = {
        "airflow": types.ModuleType("airflow"),
        "airflow.exceptions": types.SimpleNamespace(
            AirflowException=AirflowError, AirflowFailException=AirflowFailError
        ),
        "airflow.sdk": types.SimpleNamespace(DAG=Dag, BaseOperator=BaseOperator),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    spec = importlib.util.spec_from_file_location("arroyo_dag", DEPLOY / "airflow/arroyo_dag.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    loaded.made = tuple(made)
    return loaded


def operator(dag, tmp_path, program):
    """The operator, with a shell script in place of `arroyo`."""
    script = tmp_path / "arroyo"
    script.write_text(f"#!/bin/sh\n{program}\n")
    script.chmod(0o755)
    return dag.ArroyoRunOperator(task_id="t", pipeline="p.yaml", arguments=["--set", "a=1"], command=str(script))


def test_a_task_of_airflow_is_what_arroyo_takes(dag):
    (task,) = dag.made
    args = parse_arroyo(["arroyo", "run", task.pipeline, *task.arguments])
    assert args.parameters == [("day", "{{ ds }}")]


@pytest.mark.parametrize("code", [0, 1, 2, 3, 4, 5, 130])
def test_airflow_tries_again_only_where_that_helps(dag, tmp_path, code, caplog):
    task = operator(dag, tmp_path, f"echo $@; exit {code}")
    with caplog.at_level(logging.INFO):
        if code == 0:
            task.execute({})
        else:
            with pytest.raises(dag.AirflowException) as raised:
                task.execute({})
            assert isinstance(raised.value, dag.AirflowFailException) == (code in LASTING)
    assert "run p.yaml --set a=1" in caplog.text


def test_a_task_that_is_ended_sends_sigterm_and_waits(dag, tmp_path):
    task = operator(dag, tmp_path, "exit 0")
    program = (
        "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\nprint('up', flush=True)\n"
    )
    task._process = subprocess.Popen(
        [sys.executable, "-c", f"{program}signal.pause()"], stdout=subprocess.PIPE, text=True
    )
    assert task._process.stdout.readline() == "up\n"
    task.on_kill()
    assert task._process.returncode == 0
    task._process.stdout.close()
    task.on_kill()


def kubernetes():
    return {item["kind"]: item for item in yaml.safe_load_all((DEPLOY / "kubernetes/job.yaml").read_text())}


def test_kubernetes_starts_a_command_that_there_is_and_asks_where_it_listens():
    job = kubernetes()["Job"]
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    args = parse_arroyo([*container["command"], *container["args"]])
    (port,) = container["ports"]
    assert (args.metrics_port, args.metrics_bind) == (port["containerPort"], "0.0.0.0")
    probes = {name: container[name]["httpGet"] for name in ("livenessProbe", "readinessProbe")}
    assert probes == {
        "livenessProbe": {"path": "/live", "port": port["name"]},
        "readinessProbe": {"path": "/ready", "port": port["name"]},
    }
    annotations = job["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == str(port["containerPort"])
    (mount, _) = container["volumeMounts"]
    (file,) = args.files
    assert Path(file).parent == Path(mount["mountPath"])
    assert Path(file).name in kubernetes()["ConfigMap"]["data"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert volumes[mount["name"]]["configMap"]["name"] == kubernetes()["ConfigMap"]["metadata"]["name"]


def test_kubernetes_leaves_a_driver_down_after_a_code_that_lasts():
    spec = kubernetes()["Job"]["spec"]
    # What a policy of failures asks for.
    assert spec["template"]["spec"]["restartPolicy"] == "Never"
    assert (spec["parallelism"], spec["completions"]) == (1, 1)
    first, _ = spec["podFailurePolicy"]["rules"]
    assert (first["action"], set(first["onExitCodes"]["values"])) == ("FailJob", LASTING)
    assert first["onExitCodes"]["containerName"] == spec["template"]["spec"]["containers"][0]["name"]
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] >= 60


def test_the_pipeline_in_the_config_map_is_valid(tmp_path, monkeypatch):
    path = tmp_path / "orders.yaml"
    path.write_text(kubernetes()["ConfigMap"]["data"]["orders.yaml"].replace("s3://acme", str(tmp_path)))
    assert Pipeline.from_yaml(path).plan.job_id == "orders"


def test_the_page_has_every_exit_code():
    page = (ROOT / "docs/running.md").read_text(encoding="utf-8")
    table = re.search(r"(?ms)^## Exit codes$.*?^\| Code .*?\n\n", page)[0]
    documented = {int(code) for code in re.findall(r"(?m)^\| (\d+) \|", table)}
    assert documented == {value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)}
    for code in LASTING:
        assert re.search(rf"(?m)^\| {code} \|.*\| no", table)


def test_the_page_of_services_names_every_file():
    page = (ROOT / "docs/services.md").read_text(encoding="utf-8")
    files = [path.relative_to(ROOT).as_posix() for path in DEPLOY.rglob("*.*") if path.suffix != ".pyc"]
    assert len(files) >= 6
    for name in files:
        assert f"(../{name})" in page, name


def test_sigterm_ends_the_epoch_and_the_code_is_0(tmp_path):
    """What systemd, Kubernetes and Airflow rest on."""
    path = tmp_path / "endless.yaml"
    path.write_text(
        f"name: endless\ncheckpoint: {{url: {tmp_path}/state, interval: 200ms}}\nnodes:\n"
        "  - {id: numbers, operator: impulse.source, config: {rate: 100}}\n"
        f"  - {{id: out, operator: filesystem.sink, inputs: [numbers], config: {{path: {tmp_path}/out}}}}\n"
    )
    process = subprocess.Popen(
        [str(ARROYO), "run", str(path), "--in-process"], stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    try:
        wait_until(lambda: bool(list(tmp_path.glob("out/part-*"))) or process.poll() is not None)
        process.send_signal(signal.SIGTERM)
        _, shown = process.communicate()
    finally:
        process.kill()
    assert process.returncode == 0, shown
    assert "endless stopped: " in shown
