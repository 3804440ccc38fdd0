"""What a job takes from one epoch into the next besides tables: the levels of its watermarks, and its ends.

All is kept by operator and subtask, so that a pipeline may change around an operator. What a channel last delivered is
what its sender last sent, and is not kept a second time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arroyo_core.pipeline.plan import Plan, Routing
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.proto.state_pb2 import CheckpointMetadata
from arroyo_core.runtime.watermarks import UNSET, Level, least_level
from arroyo_core.state.envelope import decode_message

#: The property of a checkpoint that holds the job's `CarriedState`.
CARRIED = "carried"


@dataclass(frozen=True, slots=True)
class OperatorLevels:
    """The watermarks of one subtask of an operator; unset for an operator that is new."""

    #: What it was told last; of a source, as `output`.
    input: Level = UNSET
    #: What it sent last.
    output: Level = UNSET
    #: The end has been announced to it already.
    is_closed: bool = False


#: By operator id, one for each subtask.
Carried = Mapping[str, Sequence[OperatorLevels]]

NEW = OperatorLevels()


def levels_of(carried: Carried, operator_id: str, subtask: int) -> OperatorLevels:
    found = carried.get(operator_id)
    return NEW if found is None else found[subtask]


def carried_state(reports: Sequence[pb.ChainReport]) -> pb.CarriedState:
    """What the next epoch takes from these reports, which are those of all subtasks."""
    found: dict[str, list[pb.OperatorLevels]] = {}
    for report in sorted(reports, key=lambda report: report.subtask):
        for item in report.operators:
            found.setdefault(item.operator_id, []).append(item.levels)
    return pb.CarriedState(
        operators=[pb.CarriedOperator(operator_id=name, subtasks=found[name]) for name in sorted(found)]
    )


def carried_of(checkpoint: CheckpointMetadata) -> pb.CarriedState:
    """What a checkpoint keeps; of one that keeps nothing, an empty one."""
    name = f"the property {CARRIED!r} of epoch {checkpoint.epoch}"
    return decode_message(checkpoint.properties.get(CARRIED, b""), pb.CarriedState, name=name)


def restore_carried(plan: Plan, state: pb.CarriedState) -> Carried:
    """The levels of the plan's operators. Where the parallelism changed, every subtask gets the least of all."""
    return {
        message.operator_id: levels_for(
            [_levels(subtask) for subtask in message.subtasks],
            plan.nodes[message.operator_id].parallelism,
            hears_all=all(edge.routing is not Routing.FORWARD for edge in plan.inputs_of(message.operator_id)),
        )
        for message in state.operators
        if message.operator_id in plan.nodes
    }


def levels_for(
    found: Sequence[OperatorLevels], parallelism: int, *, hears_all: bool = True
) -> Sequence[OperatorLevels]:
    """What so many subtasks start with: each its own where their number is the same, else the least of all.

    `hears_all` says that each of them has all subtasks before it as its senders, as behind a shuffle.
    """
    if len(found) == parallelism:
        return found
    told = least_level(item.input for item in found)
    if parallelism > 1 and not hears_all:
        # Its own sender being idle does not mean that all are: it must not run ahead to where others have been.
        told = told.with_furthest(None)
    sent = least_level(item.output for item in found).with_furthest(None)
    return (OperatorLevels(told, sent, all(item.is_closed for item in found)),) * parallelism


def levels_message(levels: OperatorLevels) -> pb.OperatorLevels:
    return pb.OperatorLevels(
        input=_level_message(levels.input), output=_level_message(levels.output), is_closed=levels.is_closed
    )


def _level_message(level: Level) -> pb.Level:
    return pb.Level(event_time_us=level.event_time_us, is_idle=level.is_idle, furthest_us=level.furthest_us)


def _levels(message: pb.OperatorLevels) -> OperatorLevels:
    return OperatorLevels(_level(message.input), _level(message.output), message.is_closed)


def _level(message: pb.Level) -> Level:
    return Level(
        message.event_time_us if message.HasField("event_time_us") else None,
        message.is_idle,
        message.furthest_us if message.HasField("furthest_us") else None,
    )
