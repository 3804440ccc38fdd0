"""Checks who feeds whom: unknown inputs, cycles, ends that lead nowhere, wrong numbers of inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from arroyo_core.pipeline.mistakes import Mistakes, nearest
from arroyo_core.pipeline.operators import PlannedOperator
from arroyo_core.pipeline.spec import NodeSpec
from arroyo_core.pipeline.topology import consumers, find_cycles

#: The code of a node whose output goes nowhere.
UNUSED_NODE = "unused-node"


def unique_nodes(nodes: Sequence[NodeSpec], mistakes: Mistakes) -> dict[str, NodeSpec]:
    """Nodes by id; the second of one id is a mistake, and left out."""
    unique: dict[str, NodeSpec] = {}
    for node in nodes:
        first = unique.setdefault(node.id, node)
        if first is not node:
            place = _place(first, node)
            mistakes.add(f"a node {node.id!r} is already in {place}: ids must be unique", at=node.at, value=node.id)
    return unique


def check_former_ids(nodes: Mapping[str, NodeSpec], mistakes: Mistakes) -> None:
    """Check that each `was` is the id of a node that is gone, which no other node claims."""
    claimed: dict[str, NodeSpec] = {}
    for node in nodes.values():
        if node.was is None:
            continue
        if node.was == node.id:
            mistakes.add(f"'was' of node {node.id!r} is its own id: leave it out", at=node.was_at, value=node.was)
        elif node.was in nodes:
            mistakes.add(
                f"node {node.id!r} cannot have been {node.was!r}, which is in {_place(nodes[node.was], node)}: that "
                "node keeps the state",
                at=node.was_at,
                value=node.was,
            )
        elif claimed.setdefault(node.was, node) is not node:
            mistakes.add(
                f"node {claimed[node.was].id!r} in {_place(claimed[node.was], node)} was {node.was!r} already: state "
                "goes to one node only",
                at=node.was_at,
                value=node.was,
            )


def _place(node: NodeSpec, beside: NodeSpec) -> str:
    """Where a node is, for a message about another one."""
    return f"line {node.at.line}" if node.at.file == beside.at.file else str(node.at)


def resolve_inputs(nodes: Mapping[str, NodeSpec], mistakes: Mistakes) -> dict[str, list[str]]:
    """The inputs of each node that exist; unknown ones and cycles are recorded."""
    named = [node.id for node in nodes.values() if node.is_named]
    for node in nodes.values():
        for source in node.inputs:
            if source.id not in nodes:
                others = [name for name in named if name != node.id]
                mistakes.add_unknown(f"there is no node {source.id!r}", at=source.at, name=source.id, choices=others)
    inputs = {node.id: [source.id for source in node.inputs if source.id in nodes] for node in nodes.values()}
    for cycle in find_cycles(inputs):
        _add_cycle(cycle, nodes, mistakes)
    return inputs


def check_connections(
    nodes: Mapping[str, NodeSpec],
    inputs: Mapping[str, Sequence[str]],
    operators: Mapping[str, PlannedOperator],
    mistakes: Mistakes,
    *,
    installed: Iterable[str],
) -> None:
    """Check the number of inputs and of consumers of every node whose operator is known.

    `installed` are all operators that there are: a sink among them may be what is missing.
    """
    readers = consumers(inputs)
    meant = _meant_inputs(nodes)
    mains = {source.id for node in nodes.values() for source in node.inputs if source.output is None}
    for operator in operators.values():
        _check_input_count(operator, mistakes)
        node, read_by = operator.spec, readers[operator.spec.id]
        if operator.is_sink and read_by:
            names = ", ".join(repr(name) for name in read_by)
            at = next(source.at for source in nodes[read_by[0]].inputs if source.id == node.id)
            mistakes.add(f"{node.id!r} ({node.operator}) is a sink and has no output for {names} to read", at=at)
        if not operator.is_sink and node.id not in mains and node.is_named and node.id not in meant:
            mistakes.add(
                f"nothing reads the output of {node.id!r} ({node.operator}): "
                f"add a sink{_installed_sinks(installed)} or name it in the inputs of another node",
                at=node.at,
                value=node.id,
                code=UNUSED_NODE,
            )


def _installed_sinks(installed: Iterable[str]) -> str:
    names = sorted(name for name in installed if name.endswith(".sink"))
    return f", one of {', '.join(names)}," if len(names) > 1 else f" such as {names[0]}," if names else ","


def _meant_inputs(nodes: Mapping[str, NodeSpec]) -> set[str]:
    """Nodes that a misspelled or unreadable input probably means: no second mistake for them."""
    if any(not node.has_valid_inputs for node in nodes.values()):
        return set(nodes)
    unknown = (source.id for node in nodes.values() for source in node.inputs if source.id not in nodes)
    return {found for name in unknown if (found := nearest(name, nodes)) is not None}


def _check_input_count(operator: PlannedOperator, mistakes: Mistakes) -> None:
    node, count = operator.spec, len(operator.spec.inputs)
    least, most = operator.least_inputs, operator.most_inputs
    if not node.has_valid_inputs or (count >= least and (most is None or count <= most)):
        return
    if operator.is_source:
        mistakes.add(f"{node.operator} is a source: it has no inputs", at=node.inputs_at)
        return
    if most == least:
        wanted = _inputs(least)
    elif most is None:
        wanted = f"at least {_inputs(least)}"
    else:
        wanted = f"{least} to {_inputs(most)}"
    given = f"{count} {'is' if count == 1 else 'are'} given" if count else "none is given"
    mistakes.add(f"{node.operator} needs {wanted}, but {given}", at=node.inputs_at)


def _add_cycle(cycle: list[str], nodes: Mapping[str, NodeSpec], mistakes: Mistakes) -> None:
    first = nodes[cycle[0]]
    at = next(source.at for source in first.inputs if source.id == cycle[-1])
    if len(cycle) == 1:
        mistakes.add(f"{first.id!r} reads its own output", at=at, value=first.id)
        return
    path = " -> ".join([*cycle, cycle[0]])
    mistakes.add(f"the nodes form a cycle: {path}", at=at, value=cycle[-1])


def _inputs(count: int) -> str:
    return f"{count} input" if count == 1 else f"{count} inputs"
