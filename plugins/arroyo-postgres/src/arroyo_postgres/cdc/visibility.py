"""Which transactions a snapshot sees, by what `pg_current_snapshot()` says of it."""

from __future__ import annotations

from dataclasses import dataclass

_WRAP = 1 << 32


@dataclass(frozen=True, slots=True)
class Visibility:
    """Transactions below `least` are seen, those from `next` on are not, and of those between all but `running`."""

    least: int
    next: int
    running: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> Visibility:
        """`10:20:10,14,15`. Raises `ValueError`."""
        least, following, running = text.split(":")
        return cls(int(least), int(following), frozenset(int(each) for each in running.split(",") if each))

    def sees(self, xid: int) -> bool:
        """Whether a committed transaction was seen; `xid` has 32 bits, as the stream has it.

        Its other bits are those with which it is nearest to the snapshot: transactions of the stream are never so far
        away, for the server would not have kept them apart itself.
        """
        whole = self.next + (xid - self.next + _WRAP // 2) % _WRAP - _WRAP // 2
        return whole < self.next and whole not in self.running
