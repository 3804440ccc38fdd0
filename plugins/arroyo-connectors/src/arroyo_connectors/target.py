"""`Target`: what a sink writes to, as one commit sees it: a transaction that has a token beside the rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class TokenKey:
    """Whose token it is: tokens of two incarnations have no order, and two nodes of a pipeline may write here."""

    incarnation: str
    node: str


@dataclass(frozen=True, slots=True)
class Committed:
    """A token: up to which epoch all is there, and the generation of the driver that came last."""

    generation: int
    epoch: int


class Writer(ABC):
    """The inside of a transaction. All its methods may raise what the client library raises."""

    @abstractmethod
    def lock_token(self, key: TokenKey) -> Committed | None:
        """The token as the last transaction left it; None where there is none.

        From here to the end of this transaction nobody else may change it, also where there is none: a second driver
        waits, or fails. This is what makes a commit exact, so it must not be a mere read.
        """

    @abstractmethod
    def write_token(self, key: TokenKey, committed: Committed, *, is_new: bool) -> None:
        """Store the token; `is_new` where there was none."""

    @abstractmethod
    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows. Called once for each batch, in order, of a sink in mode `append`."""

    def replace(self, rows: pa.RecordBatch) -> None:
        """Put each row in the place of the one with its key, or beside the others. No key comes twice in an epoch."""
        raise NotImplementedError(f"{type(self).__name__} cannot replace rows")

    def remove(self, keys: pa.RecordBatch) -> None:
        """Delete the rows of these keys, where there are any: batches of the key columns only."""
        raise NotImplementedError(f"{type(self).__name__} cannot remove rows")


class Target(ABC):
    """A table, or whatever else takes rows in transactions. Made on the driver, for one commit."""

    @abstractmethod
    def name(self) -> str:
        """What messages call it: `table 'orders' of host:5432/shop`. Without secrets."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Writer]:
        """Connect, make what is missing, and begin.

        The end of the block commits, an exception in it rolls back; either closes the connection. Where it cannot be
        known whether a commit has happened, it raises: the epoch is committed again, and its token says so.
        """

    def translate(self, error: Exception) -> Exception | None:
        """What to raise for an exception of the client library: `ExternalError` where a later try may help.

        None lets it through as it is, so that the job fails.
        """
        return None
