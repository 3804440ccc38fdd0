"""Who may send, and when all has come: counts without threads or sockets, which `flow.py` waits on."""

from __future__ import annotations

from arroyo_core.runtime.frames import FrameKind


class Credit:
    """The bytes that one worker may still send to one wave of another.

    A frame may take more than is left, once: so one that is larger than all credit gets through, and what is under way
    is less than the credit and one frame.
    """

    def __init__(self, size: int) -> None:
        self._free = size

    @property
    def is_spent(self) -> bool:
        return self._free <= 0

    def spend(self, size: int) -> None:
        """Only while it `is_spent` is false."""
        self._free -= size

    def give(self, size: int) -> None:
        self._free += size


class Alignment:
    """Whether each channel of a wave has delivered its barrier of a run; frames of the next run wait until then."""

    def __init__(self, channels: int) -> None:
        self._left = channels

    @property
    def is_complete(self) -> bool:
        return self._left == 0

    def take(self, kind: FrameKind) -> None:
        self._left -= kind is FrameKind.BARRIER
