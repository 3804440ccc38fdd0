"""`ChangeLog`: a table and the log of its changes, which is all that a source of changes needs of a database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from arroyo_connectors.cdc.state import CdcChunk, CdcPosition

#: Takes rows of a chunk, a batch at a time.
Emit: TypeAlias = Callable[[pa.RecordBatch], None]
#: Whether a query has seen a transaction.
Sees: TypeAlias = Callable[[Any], bool]


class InterruptedByControlError(Exception):
    """The epoch is over while something was waited for."""


class Block(Protocol):
    """Rows that came together: as they are added, or as they are taken back."""

    @property
    def is_retract(self) -> npt.NDArray[np.bool_]: ...

    @property
    def transactions(self) -> Sequence[Hashable]:
        """That of each row."""

    def take(self, rows: npt.NDArray[np.int64], /) -> Self: ...


B = TypeVar("B", bound=Block)
C = TypeVar("C", bound=CdcChunk)
P = TypeVar("P", bound=CdcPosition)


class ChangeReader(Protocol[B]):
    """Reads an open stream from a place on, which moves with what it gives. Outlives the epoch that has opened it."""

    #: Whether the last look gave nothing at all.
    is_quiet: bool
    #: Updates and deletes that were left out, since somebody looked.
    ignored: int

    @property
    def is_done(self) -> bool:
        """Whether all is read that is to be read."""

    @property
    def resumes_at(self) -> Hashable:
        """Where another reader would go on."""

    def set_warn(self, warn: Callable[[str], None], /) -> None:
        """Who is told, from now on."""

    def leave_out(self, is_in_snapshot: Sees | None, /) -> None:
        """Do not look at transactions that the whole snapshot has seen, nor at what the table was like then."""

    def read(self, limit: int, seconds: float, /) -> B | None:
        """About so many rows; None where there was nothing about the table. Waits at most so long."""

    def batch(self, block: B, /) -> pa.RecordBatch:
        """The rows of a block."""

    def close(self) -> None: ...


R = TypeVar("R", bound=ChangeReader[Any])


@dataclass(frozen=True, slots=True)
class ReadChunk(Generic[C]):
    """A chunk, and how many rows it had."""

    chunk: C
    rows: int


class ChangeLog(ABC, Generic[P, C, R, B]):
    """Made for one epoch. It has a connection for queries, which it makes when it first needs one.

    Its methods may raise what the client library raises, which `translating` makes ours, `ArroyoError`, and
    `InterruptedByControlError` where they wait.
    """

    @abstractmethod
    def translating(self) -> AbstractContextManager[None]:
        """Errors of the client library as ours."""

    @abstractmethod
    def begin(self) -> P:
        """The first epoch: where the log is, and where to end."""

    @abstractmethod
    def read_chunk(self, after: C | None, limit: int, emit: Emit) -> ReadChunk[C]:
        """The rows behind a chunk, at most so many; all that are left where the table has no key."""

    @abstractmethod
    def complete(self, position: P, chunk: C) -> P:
        """The last chunk was read: remember where the log is, behind which no chunk has seen anything."""

    @abstractmethod
    def has_changes(self, position: P) -> bool:
        """Whether there are changes to read behind the snapshot."""

    @abstractmethod
    def open(self, position: P) -> R:
        """The changes from a position on; raises `ConfigError` where the server does not have them any more."""

    def use(self, reader: R) -> None:
        """Called with the stream of this epoch, whether it is new or of an epoch before."""
        return

    @abstractmethod
    def stream_key(self) -> Hashable:
        """All that a reader depends on: who opens a stream with the same key may have one of an epoch before."""

    @abstractmethod
    def resumes_at(self, position: P) -> Hashable:
        """Where a reader has to be to go on from a position."""

    @abstractmethod
    def moved(self, position: P, reader: R) -> P:
        """The position behind what a reader has given."""

    @abstractmethod
    def sights(self, chunks: Sequence[C]) -> Sequence[Sees]:
        """What each chunk has seen."""

    @abstractmethod
    def is_beyond(self, position: P) -> bool:
        """Whether the stream has come to where the last chunk was read."""

    @abstractmethod
    def find_behind(self, reader: R, block: B, bounds: Sequence[tuple[str, ...]]) -> Sequence[bool]:
        """Which rows of a block have keys behind these, in the order of the database: only it knows that."""

    @abstractmethod
    def bytes_read(self, position: P) -> int:
        """About how much of the log was read since the epoch began."""

    @abstractmethod
    def bytes_behind(self, position: P) -> int:
        """How much of the log is not read yet."""

    def is_within(self, position: P) -> bool:
        """Whether a transaction was read in part."""
        return False

    def check_lag(self, position: P, lag: int) -> None:
        """Warn where so much that is not read is too much. Called at the end of an epoch that has read changes."""
        return

    @abstractmethod
    def disconnect(self) -> None:
        """Close the connection for queries, if there is one; another one is made where it is needed."""
