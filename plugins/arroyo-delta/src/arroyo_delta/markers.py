"""The marker of a sink: how far its commits are, kept in the log of the table, in the entries of the rows themselves.

It is two application transactions, which the protocol has for this: the version of `arroyo/{incarnation}/{node}` is the
last epoch that was committed with rows, that of `arroyo/{incarnation}/{node}/generation` the driver's generation. They
are in the same entry as the rows, or neither is there. A sink that overwrites partitions has one more for each of them:
`arroyo/{incarnation}/{node}/replaced/{hash of the values}`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from arroyo_core.api import CommitToken
from arroyo_core.errors import StateError
from arroyo_core.state import FencedError
from arroyo_delta.partitions import Values

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable


#: Partitions that are known to be replaced, by marker and table: to look for one is to read the end of the log.
_REPLACED: set[tuple[str, str, Values]] = set()


@dataclass(frozen=True, slots=True)
class Marker:
    """The marker that a commit writes, and asks for before."""

    app: str
    token: CommitToken

    @classmethod
    def of(cls, token: CommitToken, operator_id: str, state_id: str) -> Marker:
        # A state from before there were incarnations has the id of the tables for one.
        return cls(f"arroyo/{token.incarnation or state_id}/{operator_id}", token)

    def is_there(self, table: DeltaTable) -> bool:
        """Whether the epoch is committed in this version of the table.

        Raises `FencedError` where a newer driver has committed anything.
        """
        epoch, generation = self._version(table, self.app), self._version(table, self._generation)
        if generation > self.token.generation:
            raise FencedError(
                f"generation {generation} of this job has committed up to epoch {epoch}, and this driver is generation "
                f"{self.token.generation}: this driver must stop"
            )
        return epoch >= self.token.epoch

    def has_replaced(self, table: DeltaTable, values: Values) -> bool:
        """Whether this job has replaced what was in a partition before. It stays so: a process asks once."""
        key = (self.app, str(table.metadata().id), values)
        if key not in _REPLACED and self._version(table, self._partition(values)) >= 0:
            _REPLACED.add(key)
        return key in _REPLACED

    def properties(self, time_ms: int, replaced: Iterable[Values] = ()) -> CommitProperties:
        """How a commit is made: with the marker, and only as the very next version after the one that was looked at.

        `replaced` are the partitions that are replaced by it.
        """
        from deltalake import CommitProperties, Transaction

        transactions = [
            Transaction(self.app, self.token.epoch, time_ms),
            Transaction(self._generation, self.token.generation, time_ms),
            *(Transaction(self._partition(values), self.token.epoch, time_ms) for values in replaced),
        ]
        made_by: dict[str, Any] = {"epoch": self.token.epoch, "generation": self.token.generation}
        return CommitProperties(
            # The library would repeat a commit upon a version whose marker nobody has looked at.
            max_commit_retries=0,
            app_transactions=transactions,
            custom_metadata={"arroyo": made_by},
        )

    @property
    def _generation(self) -> str:
        return f"{self.app}/generation"

    def _partition(self, values: Values) -> str:
        digest = hashlib.blake2b(msgspec.json.encode(values), digest_size=16).hexdigest()
        return f"{self.app}/replaced/{digest}"

    @staticmethod
    def _version(table: DeltaTable, app: str) -> int:
        found = table.transaction_version(app)
        if found is None:
            return -1
        if not isinstance(found, int):
            raise StateError(f"the marker {app!r} in the table's log is no number")
        return found
