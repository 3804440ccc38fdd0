"""What flows beside the data: watermarks, barriers and the end."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

#: The watermark of a stream that has ended: 9999-12-31T23:59:59.999999Z.
#: Far beyond any event, and still a valid timestamp in every format.
END_OF_TIME_US = 253_402_300_799_999_999


@dataclass(frozen=True, slots=True)
class Watermark:
    """A promise that no row with an earlier event time follows, or that the input is idle.

    `event_time_us` is in microseconds since 1970 UTC; None means idle.
    """

    event_time_us: int | None

    @classmethod
    def event_time(cls, event_time_us: int) -> Watermark:
        return cls(event_time_us)

    @classmethod
    def idle(cls) -> Watermark:
        return cls(None)

    @property
    def is_idle(self) -> bool:
        return self.event_time_us is None


class SourceFinishType(StrEnum):
    """How `SourceOperator.run` ended."""

    #: The end of the data: windows flush, and the job ends when every source is final.
    FINAL = "final"
    #: Stopped on request after its state was saved; nothing flushes.
    GRACEFUL = "graceful"
    #: Stopped on request without a message downstream.
    IMMEDIATE = "immediate"
    #: The epoch ended with more to come.
    CHECKPOINTED = "checkpointed"


class SignalMessage(StrEnum):
    """The last message of an input; watermarks and barriers have handlers of their own."""

    STOP = "stop"
    END_OF_DATA = "end_of_data"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointBarrier:
    """The cut between two epochs. Every row before it belongs to `epoch`."""

    epoch: int
    min_epoch: int
    timestamp_us: int
    then_stop: bool = False

    @property
    def finish_type(self) -> SourceFinishType:
        """What a source returns from `run` after it was handed this message."""
        return SourceFinishType.CHECKPOINTED


@dataclass(frozen=True, slots=True)
class StopRequest:
    """Asks a source to stop: gracefully (after saving its state) or at once."""

    is_graceful: bool

    @property
    def finish_type(self) -> SourceFinishType:
        """What a source returns from `run` after it was handed this message."""
        return SourceFinishType.GRACEFUL if self.is_graceful else SourceFinishType.IMMEDIATE


ControlMessage = CheckpointBarrier | StopRequest
