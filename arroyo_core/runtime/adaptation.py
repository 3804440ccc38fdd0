"""A checkpoint cut to what a pipeline takes over; pure.

Behind a source that starts over, an end that was announced already is taken back. Event time itself is not: it never
goes backwards in a job, and rows that such a source brings again are late where they were late already.
"""

from __future__ import annotations

from collections.abc import Sequence

from arroyo_core.api import END_OF_TIME_US
from arroyo_core.pipeline.plan import Plan
from arroyo_core.proto.exchange_pb2 import CarriedState, OperatorLevels
from arroyo_core.proto.state_pb2 import CheckpointMetadata, OperatorCheckpointMetadata
from arroyo_core.runtime.carried_chains import upgrade_carried
from arroyo_core.runtime.carry import CARRIED, carried_of
from arroyo_core.runtime.former_ids import rename_operators
from arroyo_core.runtime.plan_changes import OperatorChange, recorded_nodes
from arroyo_core.state.table_types import uses_two_phase_commit


def adapt_checkpoint(
    checkpoint: CheckpointMetadata, plan: Plan, changes: Sequence[OperatorChange]
) -> CheckpointMetadata:
    """The checkpoint without the tables that `changes` leave out, so that no task ever sees them.

    A pipeline whose data had ended has more to do if a source of it begins again. Returns the same
    values for an unchanged pipeline.
    """
    former = {change.operator_id: change.former_id for change in changes if change.former_id is not None}
    checkpoint = rename_operators(checkpoint, former)
    adapted = CheckpointMetadata()
    adapted.CopyFrom(checkpoint)
    del adapted.operators[:]
    left_out = {change.operator_id: change.left_out for change in changes}
    for operator in checkpoint.operators:
        kept = _without(operator, left_out.get(operator.operator_metadata.operator_id, frozenset()))
        if kept is not None:
            adapted.operators.append(kept)
    renewed = {change.operator_id for change in changes if change.starts_over}
    sources = {change.operator_id for change in changes if change.is_source and change.starts_over}
    adapted.is_final = checkpoint.is_final and not sources
    if CARRIED in checkpoint.properties:
        carried = carried_of(checkpoint)
        recorded = {name: list(node.inputs) for name, node in recorded_nodes(checkpoint).items()}
        adapted_carried = _adapt_carried(upgrade_carried(plan, carried, recorded), plan, renewed, sources)
        # Equal messages need not have equal bytes: what did not change stays as it was written.
        if adapted_carried != carried:
            adapted.properties[CARRIED] = adapted_carried.SerializeToString()
    return adapted


def _without(operator: OperatorCheckpointMetadata, left_out: frozenset[str]) -> OperatorCheckpointMetadata | None:
    if not left_out:
        return operator
    kept = OperatorCheckpointMetadata()
    kept.CopyFrom(operator)
    for name in left_out:
        kept.table_checkpoint_metadata.pop(name, None)
        kept.table_configs.pop(name, None)
    kept.needs_commit = any(uses_two_phase_commit(config) for config in kept.table_configs.values())
    return kept if kept.table_checkpoint_metadata else None


def _adapt_carried(carried: CarriedState, plan: Plan, renewed: set[str], sources: set[str]) -> CarriedState:
    behind = _reachable(plan, sources)
    adapted = CarriedState()
    for operator in carried.operators:
        if operator.operator_id not in plan.nodes or operator.operator_id in renewed:
            continue
        kept = adapted.operators.add()
        kept.CopyFrom(operator)
        if operator.operator_id in behind:
            for levels in kept.subtasks:
                _take_back_end(levels)
    return adapted


def _take_back_end(levels: OperatorLevels) -> None:
    levels.is_closed = False
    for level in (levels.input, levels.output):
        if level.event_time_us >= END_OF_TIME_US:
            level.Clear()


def _reachable(plan: Plan, sources: set[str]) -> set[str]:
    found = set(sources)
    # Nodes come before their consumers.
    for node in plan.nodes:
        if any(edge.source in found for edge in plan.inputs_of(node)):
            found.add(node)
    return found
