"""A node that says what it was takes over the state of that one, and its place in time."""

from __future__ import annotations

import pytest

from arroyo_core.proto.exchange_pb2 import CarriedChain, CarriedOperator, CarriedState
from arroyo_core.proto.state_pb2 import CheckpointMetadata, RecordedNodes
from arroyo_core.runtime.carry import CARRIED
from arroyo_core.runtime.declarations import declare_operators
from arroyo_core.runtime.events import Committed, Published
from arroyo_core.runtime.former_ids import NODES, rename_operators
from arroyo_core.runtime.plan_changes import ChangeKind, compare_plan
from arroyo_core.state.failures import IncompatibleCheckpointError


def renamed(nodes, *names, says_so=True):
    """Nodes under other ids: all, or those that are named."""
    chosen = {node["id"] for node in nodes} if not names else set(names)
    now = {name: f"new_{name}" for name in chosen}
    return [
        {
            **node,
            "id": now.get(node["id"], node["id"]),
            **({"was": node["id"]} if says_so and node["id"] in chosen else {}),
            **({"inputs": [now.get(name, name) for name in node["inputs"]]} if "inputs" in node else {}),
        }
        for node in nodes
    ]


def compare(runs, nodes, epoch, **facts):
    plan = runs.plan(nodes)
    found = compare_plan(declare_operators(plan, runs.lab.plugins), runs.checkpoint(epoch), **facts)
    return {change.operator_id: change for change in found}


@pytest.mark.parametrize("names", [(), ("rows",), ("totals",), ("sums", "copies")], ids=str)
def test_nodes_go_on_under_their_new_ids(runs, names):
    nodes = renamed(runs.nodes, *names)
    output = runs.kill(Committed, 2)
    output += runs.kill(Committed, 3, nodes=nodes)
    assert (output + runs.run(nodes=nodes)).is_exact


@pytest.mark.parametrize("says_so", [True, False], ids=["stays", "goes"])
def test_after_a_checkpoint_under_the_new_id_it_may_stay_or_go(runs, says_so):
    output = runs.kill(Committed, 2)
    output += runs.kill(Committed, 3, nodes=renamed(runs.nodes))
    nodes = renamed(runs.nodes, says_so=says_so)
    assert runs.check(nodes=nodes).warnings == ()
    assert (output + runs.run(nodes=nodes)).is_exact


def test_the_plan_and_the_start_say_so(runs):
    runs.kill(Committed, 2)
    nodes = renamed(runs.nodes)
    changes = compare(runs, nodes, 2)
    assert {change.kind for change in changes.values()} == {ChangeKind.REUSED}
    assert changes["new_totals"].reason == "it was 'totals'"
    assert "state is taken over: new_totals (test.totals): it was 'totals'" in runs.check(nodes=nodes).warnings


def test_what_a_renamed_sink_has_staged_is_committed_by_the_old_pipeline(runs):
    output = runs.kill(Published, 2)
    nodes = renamed(runs.nodes, "copies")
    with pytest.raises(IncompatibleCheckpointError) as caught:
        runs.check(nodes=nodes)
    assert "new_copies (test.sink), incompatible: table 'staged' was staged as 'copies'; it has staged output" in str(
        caught.value
    )
    assert "run the pipeline as it was once more to commit it" in str(caught.value)
    output += runs.kill(Committed, 3)
    assert (output + runs.run(nodes=nodes)).is_exact


def test_what_other_sinks_have_staged_is_committed(runs):
    output = runs.kill(Published, 2)
    nodes = renamed(runs.nodes, "rows", "totals")
    assert (output + runs.run(nodes=nodes)).is_exact


def test_an_id_that_the_checkpoint_knows_is_not_replaced(runs, node_of):
    """State of two nodes is not mixed: the old one is removed, and that is refused."""
    runs.kill(Committed, 2)
    more = [*runs.nodes, node_of("again", "totals", "rows"), node_of("more", "sink", "again")]
    runs.kill(Committed, 3, nodes=more)
    nodes = [{**node, "was": "totals"} if node["id"] == "again" else node for node in more if node["id"] != "totals"]
    nodes = [{**node, "inputs": ["again"]} if node["id"] == "sums" else node for node in nodes]
    with pytest.raises(IncompatibleCheckpointError, match=r"totals \(test\.totals\), removed"):
        runs.check(nodes=nodes)


def test_another_operator_takes_over_nothing(runs, node_of):
    runs.kill(Committed, 2)
    nodes = [
        {**node_of("other", "passing", "rows"), "was": "totals"} if node["id"] == "totals" else node
        for node in runs.nodes
    ]
    nodes = [{**node, "inputs": ["other"]} if node["id"] == "sums" else node for node in nodes]
    with pytest.raises(IncompatibleCheckpointError, match=r"it was test\.totals in the checkpoint"):
        runs.check(nodes=nodes)


def test_a_former_id_that_nobody_knows_is_none(runs):
    nodes = [{**node, "was": "never"} if node["id"] == "totals" else node for node in runs.nodes]
    output = runs.kill(Committed, 2)
    assert runs.check(nodes=nodes).warnings == ()
    assert (output + runs.run(nodes=nodes)).is_exact


def test_the_hint_for_a_renamed_node_is_what_to_write(runs):
    runs.kill(Committed, 2)
    with pytest.raises(
        IncompatibleCheckpointError, match=r"was it renamed to 'new_totals'[?] Then write 'was: totals'"
    ):
        runs.check(nodes=renamed(runs.nodes, "totals", says_so=False))


def test_ids_are_renamed_wherever_a_checkpoint_has_them():
    carried = CarriedState(
        operators=[CarriedOperator(operator_id="a"), CarriedOperator(operator_id="a:partial")],
        chains=[CarriedChain(head="a", operators={"a": 1, "b": 2})],
    )
    nodes = RecordedNodes()
    nodes.nodes.add(operator_id="a")
    nodes.nodes.add(operator_id="b", inputs=["a", "c"])
    checkpoint = CheckpointMetadata(
        properties={CARRIED: carried.SerializeToString(), NODES: nodes.SerializeToString(), "other": b"a"}
    )
    checkpoint.operators.add().operator_metadata.operator_id = "a"
    found = rename_operators(checkpoint, {"z": "a"})
    assert [operator.operator_metadata.operator_id for operator in found.operators] == ["z"]
    levels = CarriedState.FromString(found.properties[CARRIED])
    assert [operator.operator_id for operator in levels.operators] == ["z", "z:partial"]
    assert [(chain.head, dict(chain.operators)) for chain in levels.chains] == [("z", {"z": 1, "b": 2})]
    recorded = RecordedNodes.FromString(found.properties[NODES])
    assert [(node.operator_id, list(node.inputs)) for node in recorded.nodes] == [("z", []), ("b", ["z", "c"])]
    assert found.properties["other"] == b"a"
    assert rename_operators(checkpoint, {}) is checkpoint
