"""Nodes that had another id when a checkpoint was written (`was`); pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from arroyo_core.pipeline.partials import partial_id
from arroyo_core.proto.exchange_pb2 import CarriedState
from arroyo_core.proto.state_pb2 import CheckpointMetadata, RecordedNodes
from arroyo_core.runtime.carry import CARRIED, carried_of
from arroyo_core.runtime.declarations import DeclaredOperator
from arroyo_core.state.envelope import decode_message

#: The property of a checkpoint that holds the pipeline's `RecordedNodes`.
NODES = "nodes"


def nodes_of(checkpoint: CheckpointMetadata) -> RecordedNodes:
    """What a checkpoint has recorded; of one of before that, nothing."""
    name = f"the property {NODES!r} of epoch {checkpoint.epoch}"
    return decode_message(checkpoint.properties.get(NODES, b""), RecordedNodes, name=name)


def derive_former_ids(operators: Iterable[DeclaredOperator], known: Set[str]) -> dict[str, str]:
    """By id, the former id of each node that a checkpoint, which knows these ids, has under that one only."""
    return {
        operator.id: operator.was
        for operator in operators
        if operator.was is not None and operator.was in known and operator.id not in known
    }


def rename_operators(checkpoint: CheckpointMetadata, former: Mapping[str, str]) -> CheckpointMetadata:
    """The checkpoint as if these nodes had always had their ids; files stay where they are.

    Returns the same checkpoint where no node is renamed.
    """
    if not former:
        return checkpoint
    now = {old: new for new, old in former.items()}
    now |= {partial_id(old): partial_id(new) for old, new in now.items()}
    renamed = CheckpointMetadata()
    renamed.CopyFrom(checkpoint)
    for operator in renamed.operators:
        identity = operator.operator_metadata
        identity.operator_id = now.get(identity.operator_id, identity.operator_id)
    if NODES in checkpoint.properties:
        nodes = nodes_of(checkpoint)
        for node in nodes.nodes:
            node.operator_id = now.get(node.operator_id, node.operator_id)
            node.inputs[:] = [now.get(name, name) for name in node.inputs]
        renamed.properties[NODES] = nodes.SerializeToString()
    if CARRIED in checkpoint.properties:
        carried = carried_of(checkpoint)
        _rename_carried(carried, now)
        renamed.properties[CARRIED] = carried.SerializeToString()
    return renamed


def _rename_carried(carried: CarriedState, now: Mapping[str, str]) -> None:
    for operator in carried.operators:
        operator.operator_id = now.get(operator.operator_id, operator.operator_id)
    for chain in carried.chains:
        chain.head = now.get(chain.head, chain.head)
        times = {now.get(name, name): time_us for name, time_us in chain.operators.items()}
        chain.operators.clear()
        chain.operators.update(times)
