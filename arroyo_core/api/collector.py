"""Where operators and sources put what they emit."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pyarrow as pa

from arroyo_core.api.signals import Watermark


class ArrowCollector(ABC):
    """Takes an operator's output; everything collected reaches the next operator in order."""

    @abstractmethod
    def collect(self, batch: pa.RecordBatch) -> None:
        """Emit rows. The batch must have the operator's declared output schema; empty batches are dropped."""

    def collect_side(self, output: str, batch: pa.RecordBatch) -> None:
        """Emit rows of a side output, with the schema that `side_outputs` declares for it."""
        raise NotImplementedError("only operators have side outputs")

    @abstractmethod
    def broadcast_watermark(self, watermark: Watermark) -> None:
        """Send a watermark to every downstream subtask, after all rows collected so far.

        Operators usually return a watermark from `handle_watermark_int` instead; only
        those that make watermarks call this.
        """


class SourceCollector(ArrowCollector):
    """Takes a source's output. Called from the source's own thread, and blocks while downstream is busy."""
