"""What a chain's subtask takes from one epoch into the next besides its tables: watermarks and its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from arroyo_core.api import Watermark
from arroyo_core.graph.plan import Chain, Plan
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.runtime.watermarks import least_watermark

#: The property of a checkpoint that holds the job's `CarriedState`.
CARRIED = "carried"


@dataclass(frozen=True, slots=True)
class Carried:
    #: The watermark of each input.
    inputs: tuple[Watermark | None, ...] = ()
    #: The last event-time watermark of each operator.
    operators: Mapping[str, int] = field(default_factory=dict)
    #: The end has been announced to the operators already.
    is_closed: bool = False


def carried_state(plan: Plan, reports: Sequence[pb.ChainReport]) -> pb.CarriedState:
    """What the next epoch takes from these reports."""
    heads = {chain.id: chain.head for chain in plan.chains}
    state = pb.CarriedState()
    for report in sorted(reports, key=lambda report: (report.chain, report.subtask)):
        state.chains.add(
            head=heads[report.chain],
            subtask=report.subtask,
            inputs=report.inputs,
            operators={
                item.operator_id: item.watermark_us for item in report.operators if item.HasField("watermark_us")
            },
            is_closed=report.is_closed,
        )
    return state


def restore_carried(plan: Plan, state: pb.CarriedState) -> dict[tuple[int, int], Carried]:
    """By chain and subtask. Where the parallelism changed, every subtask gets the least of all."""
    by_head: dict[str, dict[int, Carried]] = {}
    for message in state.chains:
        by_head.setdefault(message.head, {})[message.subtask] = _carried(message)
    return {
        (chain.id, subtask): carried
        for chain in plan.chains
        if chain.head in by_head
        for subtask, carried in _for_parallelism(chain, by_head[chain.head]).items()
    }


def _for_parallelism(chain: Chain, found: Mapping[int, Carried]) -> Mapping[int, Carried]:
    if set(found) == set(range(chain.parallelism)):
        return found
    merged = _least(list(found.values()))
    return dict.fromkeys(range(chain.parallelism), merged)


def _least(subtasks: Sequence[Carried]) -> Carried:
    names = set.intersection(*(set(item.operators) for item in subtasks))
    width = min(len(item.inputs) for item in subtasks)
    return Carried(
        tuple(least_watermark(item.inputs[index] for item in subtasks) for index in range(width)),
        {name: min(item.operators[name] for item in subtasks) for name in names},
        all(item.is_closed for item in subtasks),
    )


def _carried(message: pb.CarriedChain) -> Carried:
    return Carried(tuple(_watermark(item) for item in message.inputs), dict(message.operators), message.is_closed)


def watermark_message(watermark: Watermark | None) -> pb.InputWatermark:
    if watermark is None:
        return pb.InputWatermark()
    return pb.InputWatermark(is_present=True, is_idle=watermark.is_idle, event_time_us=watermark.event_time_us or 0)


def _watermark(message: pb.InputWatermark) -> Watermark | None:
    if not message.is_present:
        return None
    return Watermark.idle() if message.is_idle else Watermark.event_time(message.event_time_us)
