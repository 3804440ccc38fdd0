"""Markers: how far the commits of a sink are, kept by the table itself, in the commit of the rows.

A marker is a property of the table, which stays when snapshots expire. The snapshot's summary has the same: a table
whose properties were replaced as a whole still has it there, until the snapshot expires.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from arroyo_core.api import CommitToken, TaskInfo
from arroyo_core.errors import Domain, RetryHint, StateError
from arroyo_core.state import FencedError

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata

PREFIX = "arroyo."


class LostMarkerError(StateError):
    """A table has no marker, and should have one; no retry helps."""

    domain = Domain.EXTERNAL
    retry = RetryHint.NO_RETRY


class Marker(msgspec.Struct, frozen=True):
    """The last commit of a sink."""

    generation: int
    epoch: int
    #: The last sequence number of the table before the first commit of the sink.
    base: int


class MarkerName:
    """What the marker of one sink is called: of its job's incarnation and its node."""

    def __init__(self, token: CommitToken, task_info: TaskInfo) -> None:
        self._incarnation = token.incarnation or "none"
        self._node = task_info.operator_id
        self._job = task_info.job_id
        self.property = f"{PREFIX}{self._incarnation}.{self._node}"

    def properties(self, marker: Marker) -> dict[str, str]:
        """Of the table."""
        return {self.property: msgspec.json.encode(marker).decode()}

    def summary(self, marker: Marker) -> dict[str, str]:
        """Of the snapshot."""
        return {
            f"{PREFIX}job": self._job,
            f"{PREFIX}sink": f"{self._incarnation}.{self._node}",
            f"{PREFIX}marker": msgspec.json.encode(marker).decode(),
        }

    def read(self, metadata: TableMetadata) -> Marker | None:
        """The marker of a table; None where the sink has committed nothing."""
        found = []
        if (value := metadata.properties.get(self.property)) is not None:
            found.append(_decode(value, self.property))
        for snapshot in metadata.snapshots:
            summary = snapshot.summary
            if summary is not None and summary.get(f"{PREFIX}sink") == f"{self._incarnation}.{self._node}":
                found.append(_decode(summary.get(f"{PREFIX}marker") or "", f"snapshot {snapshot.snapshot_id}"))
        return max(found, key=lambda marker: (marker.epoch, marker.generation), default=None)


def is_committed(marker: Marker | None, token: CommitToken, *, place: str) -> bool:
    """Whether the epoch of a token is in the table already; raises `FencedError` where a newer driver has written."""
    if marker is None:
        return False
    if marker.generation > token.generation:
        raise FencedError(
            f"{place} has epoch {marker.epoch} of driver generation {marker.generation}, and this is generation "
            f"{token.generation} with epoch {token.epoch}: this driver must stop"
        )
    return marker.epoch >= token.epoch


def _decode(value: str, place: str) -> Marker:
    try:
        return msgspec.json.decode(value, type=Marker)
    except msgspec.MsgspecError as error:
        raise LostMarkerError(f"{place} is not a marker of iceberg.sink: {value!r}: {error}") from error
