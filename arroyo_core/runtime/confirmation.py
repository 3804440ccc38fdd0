"""An epoch may begin in a worker before the driver asks for it; it ends only after the driver has."""

from __future__ import annotations

import threading

from arroyo_core.runtime.request import EpochRequest


class RunAbandonedError(BaseException):
    """The run is given up; not an Exception, so that no operator catches it by accident."""


class Confirmation:
    """Comes when the driver asks for an epoch that has begun already: the epoch before it counts.

    It brings what was not known before: the checkpoint that the epoch builds on, the watermarks of other subtasks, and
    whether the job stops with it.
    """

    def __init__(self) -> None:
        self._request: EpochRequest | None = None
        self._is_over = threading.Event()

    @property
    def is_here(self) -> bool:
        return self._request is not None

    def give(self, request: EpochRequest) -> None:
        self._request = request
        self._is_over.set()

    def abandon(self) -> None:
        """It will not come."""
        self._is_over.set()

    def wait(self) -> EpochRequest:
        """What the driver asks for; raises `RunAbandonedError` where it never will."""
        self._is_over.wait()
        if self._request is None:
            raise RunAbandonedError
        return self._request
