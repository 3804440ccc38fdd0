"""Operators that live on from epoch to epoch, in a worker that does."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from arroyo_core.api import CommitToken, ConstructedOperator, SourceCollector, Watermark
from arroyo_core.runtime.context import RuntimeContext
from arroyo_core.runtime.request import EpochRequest
from arroyo_core.runtime.tables import OperatorTables
from arroyo_core.runtime.watermarks import Channel, Level

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Resident:
    """An operator that has been started, with its tables and its context."""

    constructed: ConstructedOperator
    tables: OperatorTables
    ctx: RuntimeContext

    def close(self) -> None:
        """Its life ends; what it raises then does no harm any more."""
        try:
            if self.constructed.source is not None:
                self.constructed.source.on_close(self.ctx)  # type: ignore[arg-type]
            elif self.constructed.operator is not None:
                self.constructed.operator.on_close(None, self.ctx, _NOBODY)
        except Exception:
            logger.warning("closing %r", self.ctx.task_info.operator_id, exc_info=True)


class Residents:
    """The operators of one subtask of one wave that have come to the end of an epoch."""

    def __init__(self) -> None:
        self._residents: dict[str, Resident] = {}
        #: What the channels of each chain had come to, by its id.
        self.channels: Mapping[int, Mapping[Channel, Level]] = {}
        self._last: CommitToken | None = None

    def take(self, request: EpochRequest) -> Mapping[str, Resident]:
        """Those that can serve this epoch, by node: none, unless it follows the one that they have come to.

        They come back with `keep`. Those of an epoch that fails are dropped without a word, as operators always are.
        """
        if self._last is None or not request.follows(self._last):
            self.close()
        found, self._residents, self._last = self._residents, {}, None
        return found

    def keep(
        self,
        residents: Mapping[str, Resident],
        token: CommitToken,
        channels: Mapping[int, Mapping[Channel, Level]],
    ) -> None:
        """They have come to the end of the epoch of `token`."""
        self._residents, self._last, self.channels = dict(residents), token, channels

    def close(self) -> None:
        """End the lives of those that are here."""
        found, self._residents, self._last = self._residents, {}, None
        for resident in found.values():
            resident.close()


class _Nobody(SourceCollector):
    """Takes what an operator must not emit."""

    def collect(self, batch: pa.RecordBatch) -> None:
        return

    def collect_side(self, output: str, batch: pa.RecordBatch) -> None:
        return

    def broadcast_watermark(self, watermark: Watermark) -> None:
        return


_NOBODY = _Nobody()
