"""One attempt at a task: it goes on as far as it is told to, and may be given up anywhere."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TypeAlias

from arroyo_core.runtime.frames import Frame

Frames: TypeAlias = Generator[Frame, None, None]


class AttemptLostError(BaseException):
    """The process of an attempt is dead: nobody may catch this and go on."""


class FetchFailedError(BaseException):
    """An output that the attempt was to read is gone; Spark ends the attempt for it."""


@dataclass(slots=True, eq=False)
class Output:
    """What a finished attempt sent, by partition of the next wave, in the order in which it was sent."""

    partition: int
    host: int
    blocks: list[list[Frame]]
    is_lost: bool = False


@dataclass(slots=True, eq=False)
class Attempt:
    """`frames` is the task, which runs while somebody asks for its next frame."""

    wave: int
    partition: int
    host: int
    frames: Frames
    sent: list[Frame] = field(default_factory=list)
    #: Set by whoever kills it inside a call to storage: none of its calls succeeds from then on.
    is_dead: bool = False

    def advance(self, steps: int) -> bool:
        """Make so many frames; whether the task has ended. Raises what the task raises."""
        for _ in range(steps):
            try:
                self.sent.append(next(self.frames))
            except StopIteration:
                return True
        return False

    def throw(self, error: Exception) -> None:
        """Let the task meet an error where it is; it may report the error and go on."""
        self.sent.append(self.frames.throw(error))

    def close(self) -> None:
        """Its process is gone. What it wrote stays, and it writes nothing more."""
        self.is_dead = True
        self.frames.close()
