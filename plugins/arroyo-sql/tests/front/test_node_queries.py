"""Nodes of YAML files with a query."""

import json

import pytest
from arroyo_testing import run_in_process

from arroyo_core.errors import InvalidPipelineError
from arroyo_core.pipeline import plan_file
from arroyo_core.plugin import installed_plugins

PIPELINE = """
name: counts
parameters: {step: {default: 4}, word: {default: x}}
nodes:
  - {id: all, query: SELECT * FROM counted}
  - id: counted
    query: |
      SELECT counter % ${step} AS k,
        count(*) AS n
      FROM evens
      GROUP BY counter % ${step}, tumble(INTERVAL '100 seconds')
  - {id: ticks, operator: impulse.source, config: {count: 10, event_time_interval: 1s}}
  - {id: watched, operator: std.watermark, inputs: [ticks], config: {max_lateness: 0s}}
  - {id: evens, query: "SELECT counter, timestamp FROM watched WHERE counter % 2 = 0 AND '${word}' <> ''"}
  - {id: out, operator: filesystem.sink, inputs: [all], config: {path: ./out, format: json}}
"""


@pytest.fixture
def plan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def plan(text, **planning):
        (tmp_path / "p.yaml").write_text(text)
        return plan_file("p.yaml", plugins=installed_plugins(), environment={}, **planning)

    return plan


def mistakes(plan, text, **planning):
    with pytest.raises(InvalidPipelineError) as raised:
        plan(text, **planning)
    return [f"{error.at.line}:{error.at.column} {error.message}" for error in raised.value.errors]


def test_other_nodes_are_tables_in_whatever_order_they_stand(plan, tmp_path):
    planned = plan(PIPELINE)
    assert {"all", "counted", "evens"} <= set(planned.plan.nodes)
    assert [name for name, node in planned.plan.nodes.items() if node.operator == "std.watermark"] == ["watched"]
    run_in_process(tmp_path / "p.yaml")
    lines = [line for file in (tmp_path / "out").glob("*.jsonl") for line in file.read_text().splitlines()]
    assert sorted((int(row["k"]), row["n"]) for row in map(json.loads, lines)) == [(0, 3), (2, 2)]


def test_given_values_stay_values(plan):
    plan(PIPELINE, parameters={"word": "it's"})
    found = mistakes(plan, PIPELINE.replace("${step} AS", "${word} AS"), parameters={"word": "1 OR 1"})
    assert "the value given for parameter 'word' is neither a number nor a plain name" in found[0]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("count(*)", "countt(*)", "9:9 there is no function 'countt'"),
        ("FROM watched", "FROM watchd", "14:56 there is no table 'watchd'"),
        ("FROM watched", "FROM counted", "5:5 the nodes all, counted, evens read one another"),
        ("count: 10", "cont: 10", "12:52 the config of impulse.source has no field 'cont'"),
        (
            "id: all, query",
            "id: all, parallelism: 2, query",
            "5:15 a node with 'query' has no key 'parallelism'",
        ),
        ("query: SELECT * FROM counted", "query: [1]", "5:22 'query' must be a text, not a list"),
    ],
)
def test_a_mistake_is_reported_once_with_its_place(plan, old, new, expected):
    (found,) = mistakes(plan, PIPELINE.replace(old, new))
    assert found.startswith(expected)


@pytest.mark.parametrize(
    "written",
    [
        "SELECT counter,\n        nope FROM t",
        '"SELECT counter,\\n nope FROM t"',
        '"SELECT \\"counter\\", \\x63ounter AS c,\n      nope FROM t"',
        "'SELECT ''x'' AS x, nope FROM t'",
        ">\n      SELECT counter,\n      counter AS b, nope\n      FROM t",
        ">-\n\n      SELECT counter,\n\n      counter AS b,\n        nope\n      FROM t",
        "|\n      SELECT counter,\n        counter AS b, nope\n      FROM t",
        "SELECT ${long} AS x, ${long} + counter AS y, nope FROM t",
        "|2-\n      SELECT\n        ${long} AS x, nope FROM t",
        "SELECT 1 AS x FROM t WHERE counter = ${long} AND nope",
    ],
)
def test_a_mistake_is_where_the_file_has_it_however_the_query_is_written(plan, written):
    text = (
        "name: p\nparameters: {long: {default: 1}}\nnodes:\n"
        "  - {id: t, operator: impulse.source, config: {count: 1}}\n"
        f"  - id: q\n    query: {written}\n"
        "  - {id: out, operator: std.blackhole, inputs: [q]}\n"
    )
    before = text[: text.index("nope")].split("\n")
    assert f"{len(before)}:{len(before[-1]) + 1} there is no column 'nope'" in mistakes(plan, text)


def test_a_table_that_there_is_not_gets_the_nodes_of_the_file(plan):
    with pytest.raises(InvalidPipelineError) as raised:
        plan(PIPELINE.replace("FROM evens", "FROM watchd"))
    (error,) = raised.value.errors
    assert error.suggestion == "watched"
    assert set(error.allowed) == {"all", "evens", "out", "ticks", "watched"}


def test_names_of_the_planner_do_not_get_into_the_way_of_those_of_the_file(plan):
    text = (
        "name: p\nnodes:\n"
        "  - {id: bids, operator: nexmark.source, config: {table: bid, events: 1000}}\n"
        "  - {id: bids_in_time, operator: std.watermark, inputs: [bids], config: {max_lateness: 1s}}\n"
        "  - id: busy\n    query: >\n"
        "      SELECT channel, bids, window.end AS ended FROM\n"
        "      (SELECT channel, count(*) AS bids, tumble(INTERVAL '1 second') AS window FROM bids_in_time\n"
        "      GROUP BY channel, window)\n"
        "  - {id: out, operator: std.blackhole, inputs: [busy]}\n"
    )
    found = plan(text).plan
    assert [edge.target for edge in found.edges if edge.source == "bids"] == ["bids_in_time"]
    assert [name for name, node in found.nodes.items() if node.operator == "std.watermark"] == ["bids_in_time"]
