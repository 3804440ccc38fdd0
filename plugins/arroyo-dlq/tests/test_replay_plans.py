"""Which part of a pipeline a replay runs, and what is refused."""

from __future__ import annotations

import pytest
from arroyo_dlq.claims import ReplayError, to_ranges
from arroyo_dlq.rewriting import Route, plan_replay

from arroyo_core.pipeline import plan_text
from arroyo_core.plugin import installed_plugins

PIPELINE = """\
name: p
parallelism: 2
nodes:
  - {id: numbers, operator: impulse.source, config: {count: 10}}
  - {id: others, operator: impulse.source, config: {count: 10}}
  - {id: inverse, operator: std.filter, inputs: [numbers], config: {predicate: "1/counter > 0", on_error: dead_letter}}
  - {id: both, operator: std.union, inputs: [others, inverse]}
  - {id: keyed, operator: std.key_by, inputs: [both], config: {keys: [counter]}}
  - {id: out, operator: std.stdout, inputs: [keyed]}
  - {id: bad, operator: std.blackhole, inputs: [inverse.errors]}
  - {id: timed, operator: std.watermark, inputs: [numbers], config: {column: timestamp}}
  - id: counts
    operator: std.updating_aggregate
    inputs: [timed]
    config: {keys: [subtask_index], aggregates: [{function: count, as: rows}]}
  - {id: some, operator: std.filter, inputs: [counts], config: {predicate: "1 / rows > 0", on_error: dead_letter}}
  - {id: changes, operator: std.stdout, inputs: [some]}
  - id: pairs
    operator: std.interval_join
    inputs: [timed, late]
    config: {on: [{left: counter, right: counter}], lower: -5s, upper: 10s}
  - {id: late, operator: std.watermark, inputs: [others], config: {column: timestamp}}
  - {id: paired, operator: std.blackhole, inputs: [pairs]}
"""


@pytest.fixture(scope="module")
def plan():
    return plan_text(PIPELINE, plugins=installed_plugins(), environment={})


def replay(plan, into: str, **route: str):
    return plan_replay(plan, installed_plugins(), Route(into=into, **route))


def test_the_node_and_what_follows_it_run(plan):
    found = replay(plan, "inverse")
    assert [node.id for node in found.nodes] == ["inverse", "both", "keyed", "out", "bad"]
    assert found.stream == plan.nodes["inverse"].input_schemas[0]
    assert {edge.source for edge in found.edges if edge.target == "inverse"} == {"dlq.rows"}


def test_an_input_that_is_not_replayed_is_empty_and_keeps_its_place(plan):
    found = replay(plan, "inverse")
    assert list(found.empty) == ["empty-1"]
    assert {(edge.source, edge.input) for edge in found.edges if edge.target == "both"} == {
        ("dlq.empty-1", 0),
        ("inverse", 1),
    }


def test_a_replay_up_to_a_node_keeps_the_sinks_of_letters_of_the_way(plan, tmp_path):
    found = replay(plan, "inverse", until="both", sink=str(tmp_path / "out"))
    assert [node.id for node in found.nodes] == ["inverse", "both", "bad", "dlq.out"]
    assert not (tmp_path / "out").exists()


def test_a_sink_elsewhere_takes_the_place_of_each_sink_but_those_of_letters(plan, tmp_path):
    found = {node.id: node.operator for node in replay(plan, "inverse", sink=str(tmp_path)).nodes}
    assert found == {
        "inverse": "std.filter",
        "both": "std.union",
        "keyed": "std.key_by",
        "out": "filesystem.sink",
        "bad": "std.blackhole",
    }


@pytest.mark.parametrize(
    ("into", "route", "message"),
    [
        ("invers", {}, "no node 'invers'; did you mean 'inverse'?"),
        ("numbers", {}, "'numbers' (impulse.source) is a source"),
        ("both", {}, "'both' (std.union) has 2 inputs"),
        ("some", {}, "the input of 'some' is updating"),
        ("counts", {}, "would pass 'counts' (std.updating_aggregate)"),
        ("timed", {}, "would pass 'counts' (std.updating_aggregate), 'pairs' (std.interval_join)"),
        ("timed", {}, "--until timed --sink URL"),
        ("counts", {}, "arroyo run --from-epoch N"),
        ("inverse", {"until": "out", "sink": "x"}, "'out' has no output"),
        ("inverse", {"until": "timed", "sink": "x"}, "no row of 'inverse' comes to 'timed'"),
        ("inverse", {"until": "both"}, "--until needs --sink URL"),
    ],
)
def test_what_cannot_be_right_is_refused(plan, into, route, message):
    with pytest.raises(ReplayError) as caught:
        replay(plan, into, **route)
    assert message in str(caught.value)


def test_a_sink_that_is_not_exactly_once_is_warned_of(plan):
    (warning,) = replay(plan, "inverse").warnings
    assert "'out' (std.stdout)" in warning


def test_places_become_ranges():
    assert to_ranges([]) == []
    assert to_ranges([0, 1, 2, 5, 7, 8]) == [(0, 3), (5, 6), (7, 9)]
