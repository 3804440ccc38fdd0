"""Sends events beside the job: a catalogue that is slow or gone must not hold it up."""

from __future__ import annotations

import logging
import queue
import threading
from typing import Any

from arroyo_openlineage.client import without_secrets

logger = logging.getLogger("arroyo_core.openlineage")

#: Events that wait; beyond that they are dropped, and said so.
MAX_WAITING = 1000
#: How long the end of a command waits for what is left.
GRACE_S = 10.0


class Sender:
    """Emits events in their order, in a thread of its own. What a client raises is logged once, and harms nobody."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._waiting: queue.Queue[Any] = queue.Queue(MAX_WAITING)
        self._has_warned = False
        self._thread = threading.Thread(target=self._run, name="arroyo-openlineage", daemon=True)
        self._thread.start()

    def send(self, event: Any) -> None:
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            self._warn("events come faster than they can be sent, and are dropped")

    def close(self) -> None:
        """Wait for what is left, but not for long."""
        try:
            self._waiting.put(None, timeout=GRACE_S)
        except queue.Full:
            return
        self._thread.join(GRACE_S)
        if self._thread.is_alive():
            self._warn("not all events could be sent before the end")

    def _run(self) -> None:
        while (event := self._waiting.get()) is not None:
            try:
                self._client.emit(event)
            except Exception as error:
                self._warn(f"an event could not be sent: {type(error).__name__}: {without_secrets(str(error))}")

    def _warn(self, text: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            logger.warning("OpenLineage: %s; the job goes on", text)
