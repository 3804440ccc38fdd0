"""Watermarks in checkpoints from before they were kept by operator: the least of each input of each chain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from arroyo_core.pipeline.plan import Plan
from arroyo_core.proto import exchange_pb2 as pb


def upgrade_carried(
    plan: Plan, state: pb.CarriedState, recorded_inputs: Mapping[str, Sequence[str]]
) -> pb.CarriedState:
    """The same by operator; a state that is kept so already comes back as it is.

    `recorded_inputs` are the inputs that each node had when the checkpoint was written. What an operator sent is known
    only from who received it: within a chain exactly, else as the least of all subtasks.
    """
    if state.operators or not state.chains:
        return state
    chains: dict[str, list[pb.CarriedChain]] = {}
    for chain in sorted(state.chains, key=lambda chain: chain.subtask):
        chains.setdefault(chain.head, []).append(chain)
    upgraded: dict[str, list[pb.OperatorLevels]] = {
        operator_id: [
            pb.OperatorLevels(input=_input(chain, operator_id), is_closed=chain.is_closed) for chain in subtasks
        ]
        for head, subtasks in chains.items()
        for operator_id in dict.fromkeys((head, *(name for chain in subtasks for name in sorted(chain.operators))))
    }
    for operator_id, subtasks in upgraded.items():
        if operator_id in plan.nodes:
            _set_outputs(plan, operator_id, subtasks, upgraded, chains, recorded_inputs)
    return pb.CarriedState(
        operators=[pb.CarriedOperator(operator_id=name, subtasks=upgraded[name]) for name in sorted(upgraded)]
    )


def _input(chain: pb.CarriedChain, operator_id: str) -> pb.Level:
    return pb.Level(event_time_us=chain.operators.get(operator_id))


def _set_outputs(
    plan: Plan,
    operator_id: str,
    subtasks: Sequence[pb.OperatorLevels],
    upgraded: Mapping[str, Sequence[pb.OperatorLevels]],
    chains: Mapping[str, Sequence[pb.CarriedChain]],
    recorded_inputs: Mapping[str, Sequence[str]],
) -> None:
    for edge in plan.outputs_of(operator_id):
        if edge.target in chains:
            same_inputs = list(recorded_inputs.get(edge.target, ())) == list(plan.written_inputs(edge.target))
            level = _least(chain.inputs[edge.input] for chain in chains[edge.target] if edge.input < len(chain.inputs))
            sent = [level] * len(subtasks) if same_inputs and level is not None else []
        else:
            sent = [levels.input for levels in upgraded.get(edge.target, ())]
        if len(sent) == len(subtasks):
            for levels, level in zip(subtasks, sent, strict=True):
                levels.output.CopyFrom(level)
            return


def _least(inputs: Iterable[pb.InputWatermark]) -> pb.Level | None:
    found = list(inputs)
    if not found or not all(each.is_present for each in found):
        return None
    times = [each.event_time_us for each in found if not each.is_idle]
    return pb.Level(event_time_us=min(times, default=None), is_idle=not times)
