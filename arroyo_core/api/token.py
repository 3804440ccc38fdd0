"""`CommitToken`: says to the outside who commits, so that it can refuse a driver that comes too late."""

from __future__ import annotations

from dataclasses import dataclass
from functools import total_ordering


@total_ordering
@dataclass(frozen=True, slots=True)
class CommitToken:
    """Who commits what. Within one incarnation tokens have an order: by generation, then by epoch.

    An epoch is known by `(incarnation, epoch)`: it is published once, and a commit of it that is repeated, by this
    driver or a later one, has the same content. The generation says who commits: a store that keeps the last value of
    a key must refuse a token that is older than the last one it took, since its driver has lost the job meanwhile.

    Raises `ValueError` where tokens of two incarnations are compared: neither is older.
    """

    #: Random, and the same in all runs of a job. Another one where the job's state was removed, in a fork, and in a
    #: job of the same name elsewhere. Empty while an epoch is committed that was run before there were incarnations.
    incarnation: str
    #: Of the driver; each driver of a job has a greater one than those before it.
    generation: int
    #: The epoch that is run or committed.
    epoch: int

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, CommitToken):
            return NotImplemented
        if self.incarnation != other.incarnation:
            raise ValueError(
                f"tokens of the incarnations {self.incarnation!r} and {other.incarnation!r} have no order: neither of "
                "the two jobs has replaced the other"
            )
        return (self.generation, self.epoch) < (other.generation, other.epoch)
