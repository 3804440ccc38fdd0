import json
import re

import pytest
from arroyo_devtools.drawing.dot import render_dot
from arroyo_devtools.drawing.mermaid import render_mermaid

from arroyo_core.pipeline import plan_file
from arroyo_core.pipeline.views import render_json, render_text

PIPELINE = """\
name: views
parallelism: 2
checkpoint: {url: "s3://${BUCKET}/x", interval: 90s, rows: 5000}
nodes:
  - {id: events, operator: t.source}
  - {id: named, operator: t.map, inputs: [events], config: {column: name, password: "${SECRET}", note: "a \\"b\\" <c>"}}
  - {id: keyed, operator: t.key_by, inputs: [named], config: {keys: [k]}}
  - {id: end, operator: t.sink, inputs: [keyed]}
  - {id: all, operator: t.key_by, inputs: [named], config: {keys: []}}
  - {id: one, operator: t.sink, inputs: [all], parallelism: 1}
"""
TEXT = """\
Pipeline    views
            6 nodes, 4 chains, 3 waves, 3 exchanges
Checkpoint  s3://${BUCKET}/x, every 90s or 5,000 rows, whichever is first, the last 10 kept
Epochs      each as a Spark job, which is the default
Guarantee   no guarantee, end to end
            because of events, no guarantee: it keeps no position: after a failure rows may come again, or never
            because of end, at least once: it takes no part in commits: rows of an epoch that is run again come twice
            because of one, at least once: it takes no part in commits: rows of an epoch that is run again come twice

Nodes

  events: t.source, 2 subtasks (t-plugin 1.0)
      output     k     int64
                 name  string
                 at    timestamp[us, tz=UTC]  (event time)
                 tags  list<item: string>
      guarantee  no guarantee: it keeps no position: after a failure rows may come again, or never

  named: t.map, 2 subtasks (t-plugin 1.0)
      reads     events (forward)
      column    name
      note      a "b" <c>
      password  ${SECRET}
      output    the columns of events

  keyed: t.key_by, 2 subtasks (t-plugin 1.0)
      reads     named (shuffle by k)
      keys      ['k']
      output    the columns of named
      keyed by  k

  end: t.sink, 2 subtasks (t-plugin 1.0)
      reads      keyed (forward)
      guarantee  at least once: it takes no part in commits: rows of an epoch that is run again come twice

  all: t.key_by, 2 subtasks (t-plugin 1.0)
      reads     named (all rows to subtask 0)
      keys      []
      output    the columns of named
      keyed by  nothing: one global group

  one: t.sink, 1 subtask (t-plugin 1.0)
      reads      all (all rows to subtask 0)
      guarantee  at least once: it takes no part in commits: rows of an epoch that is run again come twice

Execution

  wave 0, 2 subtasks
    chain 0: events -> named
      ==> shuffle by k ==> chain 1 (keyed)
      ==> all rows to subtask 0 ==> chain 2 (all)

  wave 1, 2 subtasks
    chain 1: keyed -> end
    chain 2: all
      ==> all rows to subtask 0 ==> chain 3 (one)

  wave 2, 1 subtask
    chain 3: one
"""
SECRETS = {"BUCKET": "acme-bucket", "SECRET": "hunter2 swordfish"}


@pytest.fixture
def pipeline(plugins, tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(PIPELINE)
    return plan_file(path, plugins=plugins, environment=SECRETS)


@pytest.mark.parametrize(
    ("execution", "shown"),
    [
        ("jobs", "Epochs      each as a Spark job, as its file says\nGuarantee"),
        (
            "live",
            "Epochs      in live workers, which need 2 slots of Spark for as long as the job runs\n"
            "            refused with fewer slots, on Spark Connect, with spark.dynamicAllocation.enabled\n"
            "            beside other pipelines in one 'arroyo run' each as a Spark job\n"
            "            made again from their tables in each epoch, as they do not live on: events (t.source), named ("
            "t.map), keyed (t.key_by), end (t.sink), all (t.key_by), one (t.sink)\n"
            "Guarantee",
        ),
        (
            "auto",
            "Epochs      in live workers, where Spark runs on one machine and has 2 slots for them\n"
            "            else each as a Spark job: on a cluster, with fewer slots, on Spark Connect, with spark."
            "dynamicAllocation.enabled\n"
            "            beside other pipelines in one 'arroyo run' each as a Spark job\n"
            "            made again",
        ),
    ],
)
def test_text_tells_where_epochs_run_and_why(plugins, tmp_path, execution, shown):
    pipeline = plan_of(plugins, tmp_path, execution)
    assert shown in render_text(pipeline)
    document = json.loads(render_json(pipeline))
    assert document["execution"] == execution
    assert document["live_workers"] == {
        "slots": 2,
        "made_again_in_each_epoch": ["events", "named", "keyed", "end", "all", "one"],
        "given_dataframes": [],
    }


def plan_of(plugins, tmp_path, execution):
    path = tmp_path / "p.yaml"
    path.write_text(f"execution: {execution}\n{PIPELINE}")
    return plan_file(path, plugins=plugins, environment=SECRETS)


@pytest.fixture
def source(plugins, tmp_path, monkeypatch):
    """Operators that live on, but for one; gives the class of the source."""
    classes = {
        name: type(found.constructed.inner) for name, found in plan_of(plugins, tmp_path, "jobs").operators.items()
    }
    for name in ("events", "keyed", "end"):
        monkeypatch.setattr(classes[name], "lives_on", lambda self: True)
    return classes["events"]


def test_text_tells_which_operators_live_workers_make_again(plugins, tmp_path, source):
    shown = render_text(plan_of(plugins, tmp_path, "live"))
    assert "as they do not live on: named (t.map)\n" in shown


@pytest.mark.parametrize(
    ("execution", "shown"),
    [
        ("auto", "each as a Spark job: the rows of DataFrames come through Spark jobs (events)\n"),
        ("live", "nowhere: the rows of DataFrames come through Spark jobs (events), and not to live workers\n"),
    ],
)
def test_text_tells_that_dataframes_are_in_the_way(plugins, tmp_path, source, monkeypatch, execution, shown):
    monkeypatch.setattr(source, "given_table", lambda self: "given")
    assert f"Epochs      {shown}" in render_text(plan_of(plugins, tmp_path, execution))


@pytest.mark.parametrize("view", [render_text, render_json, render_mermaid, render_dot])
def test_no_view_shows_a_value_of_the_environment(pipeline, view):
    shown = view(pipeline)
    assert "${SECRET}" in shown
    for part in ("hunter2", "swordfish", "acme"):
        assert part not in shown


def test_the_text_shows_nodes_then_waves_and_exchanges(pipeline):
    assert render_text(pipeline) == TEXT


def test_mermaid_uses_no_reserved_names_and_escapes_labels(pipeline):
    shown = render_mermaid(pipeline)
    assert shown.startswith("flowchart LR\n")
    assert 'n3["end<br/>t.sink"]' in shown
    assert "note: a #34;b#34; #60;c#62;" in shown
    assert 'n1 == "shuffle by k" ==> n2' in shown
    assert "n2 --> n3" in shown
    assert shown.count("subgraph") == len(re.findall(r"^ +end$", shown, re.MULTILINE))


def test_dot_is_balanced_and_escapes_labels(pipeline):
    shown = render_dot(pipeline)
    assert shown.startswith('digraph "views" {')
    assert 'note: a \\"b\\" <c>' in shown
    assert '"named" -> "keyed" [label="shuffle by k", penwidth=2];' in shown
    outside = re.sub(r'"(\\.|[^"\\])*"', "", shown)
    assert outside.count("{") == outside.count("}")


def test_json_holds_the_whole_plan(pipeline):
    found = json.loads(render_json(pipeline))
    assert found["checkpoint"] == {
        "url": "s3://${BUCKET}/x",
        "interval_ms": 90_000,
        "rows": 5000,
        "bytes": None,
        "keep": 10,
        "timeout_ms": 600_000,
    }
    assert found["execution"] == "jobs"
    assert found["guarantee"] == {"end_to_end": "none", "survives_restart": True}
    assert found["nodes"][3]["guarantee"]["level"] == "at_least_once"
    assert [node["id"] for node in found["nodes"]] == ["events", "named", "keyed", "end", "all", "one"]
    assert found["nodes"][0]["output"]["event_time"] == "at"
    assert found["nodes"][2]["output"]["keys"] == ["k"]
    assert found["edges"][1] == {
        "source": "named",
        "output": None,
        "target": "keyed",
        "input": 0,
        "routing": "shuffle",
        "keys": ["k"],
    }
    assert found["waves"][1] == {"wave": 1, "parallelism": 2, "chains": [1, 2]}
