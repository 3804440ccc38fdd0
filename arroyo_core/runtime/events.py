"""What the epoch controller is told, and what it asks for; both can be written down as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum


class StopMode(StrEnum):
    """How a running job is ended. After any of them the same command goes on where the job was."""

    #: The epoch ends now, and one last barrier says `then_stop`: all that was read is committed.
    CHECKPOINT = "checkpoint"
    #: The same, and sources and operators are told that they stop before that last barrier.
    GRACEFUL = "graceful"
    #: At once: the running epoch is given up, and is run again after a restart.
    IMMEDIATE = "immediate"


class Lane(StrEnum):
    """Each lane does one thing at a time, beside the others."""

    RUN = "run"
    PUBLISH = "publish"
    COLLECT = "collect"


class Outcome(StrEnum):
    """How a job that did not fail ended."""

    #: Every source is at its end.
    FINISHED = "finished"
    #: On request, with more to come.
    STOPPED = "stopped"
    #: At a checkpoint from which it goes on at once, with another parallelism.
    RESCALED = "rescaled"


@dataclass(frozen=True, slots=True)
class Started:
    """The driver is up."""


@dataclass(frozen=True, slots=True)
class Restored:
    """State was resolved, and a commit that was interrupted is complete."""

    next_epoch: int
    #: Every source was at its end already.
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class EpochAccepted:
    """All tasks of an epoch reported, and agree."""

    epoch: int
    rows: int
    duration_ms: int
    is_final: bool


@dataclass(frozen=True, slots=True)
class EpochDiscarded:
    """Senders and receivers disagree: a task ran twice and its first output was read."""

    epoch: int
    reason: str


@dataclass(frozen=True, slots=True)
class EpochSeen:
    """Somebody looked how far the running epoch is, and will look again."""

    epoch: int
    #: Differs from what was seen before if anything moved since.
    progress: str
    #: For people: which tasks run, and where they are.
    status: str


@dataclass(frozen=True, slots=True)
class Published:
    """The checkpoint exists."""

    epoch: int
    needs_commit: bool


@dataclass(frozen=True, slots=True)
class Committed:
    """Sinks have made the epoch visible, and the marker is there."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Collected:
    """Garbage was collected."""


@dataclass(frozen=True, slots=True)
class StopRequested:
    mode: StopMode


@dataclass(frozen=True, slots=True)
class RescaleRequested:
    """The job is to go on with another parallelism, for which there is a plan."""

    parallelism: int


@dataclass(frozen=True, slots=True)
class Failed:
    """What a lane was doing failed."""

    lane: Lane
    reason: str
    is_retriable: bool


@dataclass(frozen=True, slots=True)
class TimerFired:
    number: int


Event = (
    Started
    | Restored
    | EpochAccepted
    | EpochDiscarded
    | EpochSeen
    | Published
    | Committed
    | Collected
    | StopRequested
    | RescaleRequested
    | Failed
    | TimerFired
)


@dataclass(frozen=True, slots=True)
class Restore:
    """Resolve the checkpoint to go on from; complete its commit. Answered by `Restored`."""


@dataclass(frozen=True, slots=True)
class RunEpoch:
    """Answered by `EpochAccepted` or `EpochDiscarded`."""

    epoch: int
    #: How long sources may read.
    source_ms: int
    #: Set for the last epoch before a stop on request.
    stop: StopMode | None = None


@dataclass(frozen=True, slots=True)
class EndEpoch:
    """Tell the sources of the running epoch that its budget is spent."""


@dataclass(frozen=True, slots=True)
class CancelEpoch:
    """Give the running epoch up; its lane still answers, with anything."""

    #: For people, where nothing else says it: why.
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Publish:
    """Answered by `Published`."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Commit:
    """Answered by `Committed`."""

    epoch: int


@dataclass(frozen=True, slots=True)
class CollectGarbage:
    """Answered by `Collected`."""


@dataclass(frozen=True, slots=True)
class StartTimer:
    """Answered by `TimerFired`; a timer with another number takes the place of the one before."""

    number: int
    delay_ms: int
    #: For people: why the job waits.
    reason: str
    #: The job then goes on from its last checkpoint.
    is_restart: bool = False


@dataclass(frozen=True, slots=True)
class Finish:
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Fail:
    reason: str


Instruction = (
    Restore | RunEpoch | EndEpoch | CancelEpoch | Publish | Commit | CollectGarbage | StartTimer | Finish | Fail
)

_EVENTS: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        Started,
        Restored,
        EpochAccepted,
        EpochDiscarded,
        EpochSeen,
        Published,
        Committed,
        Collected,
        StopRequested,
        RescaleRequested,
        Failed,
        TimerFired,
    )
}


def event_line(event: Event, time_ms: int) -> str:
    """An event as one line of a log."""
    return json.dumps({"time_ms": time_ms, "event": type(event).__name__, **asdict(event)})


def read_events(lines: Iterable[str]) -> Iterator[tuple[Event, int]]:
    """The events of a log, with their times; what is not an event of the controller is passed over."""
    for line in lines:
        fields = json.loads(line)
        kind = _EVENTS.get(fields.pop("event", ""))
        if kind is not None:
            time_ms = fields.pop("time_ms")
            for name, enum in (("mode", StopMode), ("lane", Lane)):
                if name in fields:
                    fields[name] = enum(fields[name])
            yield kind(**fields), time_ms
