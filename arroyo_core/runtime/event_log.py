"""What a driver went through, as JSON lines beside the checkpoints; the controller can replay it."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from arroyo_core.errors import StateError
from arroyo_core.proto.state_pb2 import CheckpointMetadata
from arroyo_core.runtime.events import Event, event_line
from arroyo_core.runtime.results import EpochResult
from arroyo_core.state import StorageProvider, paths
from arroyo_core.state.failures import MissingFileError, OversizedFileError
from arroyo_core.state.limits import TOLD_FILE_BYTES

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class EventLog:
    """Lines are kept until the epoch they led to is committed, and written then, one file an epoch.

    A file lives as long as its epoch's checkpoint. A log that cannot be written is a warning.
    """

    storage: StorageProvider
    job_id: str
    _lines: list[str] = field(default_factory=list)
    #: The last epoch that was written, and its lines: what comes after it is added there at the end.
    _last: tuple[int, list[str]] | None = None

    def add(self, event: Event, time_ms: int) -> None:
        self._lines.append(event_line(event, time_ms))

    def add_note(self, kind: str, fields: Mapping[str, object]) -> None:
        """Something for people and tools, which the controller is not told about."""
        self._lines.append(json.dumps({"event": kind, **fields}))

    def add_epoch(self, result: EpochResult) -> None:
        """What an epoch came to, for people and tools."""
        summary = result.summary()
        # It is not committed yet.
        del summary["commit_s"]
        line = {"event": "Epoch", **summary, "operators": result.operator_summaries()}
        self._lines.append(json.dumps(line))

    def take(self, epoch: int) -> list[str]:
        """The lines that led to `epoch`, to be written by `write`."""
        lines, self._lines = self._lines, []
        self._last = (epoch, lines)
        return lines

    def write(self, epoch: int, generation: int, lines: list[str]) -> None:
        data = "".join(f"{line}\n" for line in lines).encode()
        try:
            self.storage.write(paths.event_log(self.job_id, epoch, generation), data, is_durable=False)
        except StateError as error:
            logger.warning("the event log of epoch %d could not be written: %s", epoch, error)

    def write_rest(self, generation: int) -> None:
        """At the end: what came after the last epoch is added to its file."""
        if self._last is not None and self._lines:
            epoch, lines = self._last
            self.write(epoch, generation, lines + self._lines)


def read_epoch(storage: StorageProvider, checkpoint: CheckpointMetadata) -> dict[str, Any] | None:
    """What the log of a checkpoint says its epoch came to; None where there is no whole log."""
    try:
        data = storage.read(
            paths.event_log(checkpoint.job_id, checkpoint.epoch, checkpoint.generation), max_bytes=TOLD_FILE_BYTES
        )
        lines = [json.loads(line) for line in data.splitlines()]
    except (MissingFileError, OversizedFileError, ValueError, RecursionError):
        # Logs are written without waiting for the disk: one may be torn after a crash.
        return None
    epochs = (line for line in lines if isinstance(line, dict) and line.get("event") == "Epoch")
    return next((line for line in epochs if line.get("epoch") == checkpoint.epoch), None)
