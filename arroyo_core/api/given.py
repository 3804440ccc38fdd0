"""Rows that come with the run of a pipeline, and not from a place that its file names: the rows of a DataFrame."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class GivenPosition:
    """Which rows a source has been given."""

    #: The stream that they are a batch of; empty where they were all that there is.
    stream: str = ""
    #: Of the batch in its stream.
    number: int = 0


@dataclass(frozen=True, slots=True)
class GivenRows:
    """What one subtask of a source is given in one epoch."""

    #: Read once, to the end; close it where it is not.
    batches: Generator[pa.RecordBatch, None, None]
    position: GivenPosition = GivenPosition()
