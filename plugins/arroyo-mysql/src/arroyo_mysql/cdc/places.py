"""Where a reader is in a binlog: by the GTIDs of the transactions that it has, or by a file and an offset. Pure.

MariaDB writes `0-1-100,1-2-5`: of each domain the last server and number. MySQL writes sets of each server's numbers,
`3e11fa47-71ca-11e1-9e33-c80aa9429562:1-23:27`.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass
from typing import Protocol

import msgspec


class Place(msgspec.Struct, frozen=True):
    """Behind a transaction. `gtid` is None where the server has no GTIDs, and file and offset count."""

    file: str
    offset: int
    gtid: str | None = None

    def display(self) -> str:
        where = f"{self.file}:{self.offset}"
        return where if self.gtid is None else f"{where} (GTID {self.gtid or 'none'})"


class Begun(msgspec.Struct, frozen=True):
    """A transaction that was read in part: the rows of the table up to a number."""

    rows: int
    gtid: str | None
    #: Which server had it, and where its first event ends there.
    server_id: int
    file: str
    end: int

    def is_same(self, gtid: str | None, server_id: int, file: str, end: int) -> bool:
        """A server that has lost a transaction gives its GTID again; other servers have it at other places."""
        is_there = (file, end) == (self.file, self.end)
        return gtid == self.gtid and (is_there if server_id == self.server_id or gtid is None else True)


@dataclass(frozen=True, slots=True)
class Transaction:
    """One that the binlog has: where it begins, and its GTID where there are any."""

    file: str
    offset: int
    gtid: str | None = None


class Gtids(Protocol):
    """The transactions that somebody has."""

    def add(self, gtid: str) -> None: ...

    def has(self, gtid: str) -> bool: ...

    def contains(self, other: Gtids) -> bool: ...

    def text(self) -> str: ...


class MariadbGtids:
    """Of each domain the last one: all before it are there too."""

    def __init__(self, text: str = "") -> None:
        self._last: dict[int, tuple[int, int]] = {}
        for each in _parts(text):
            self.add(each)

    def add(self, gtid: str) -> None:
        domain, server, number = (int(part) for part in gtid.split("-"))
        self._last[domain] = (server, number)

    def has(self, gtid: str) -> bool:
        domain, _, number = (int(part) for part in gtid.split("-"))
        return self._last.get(domain, (0, -1))[1] >= number

    def contains(self, other: Gtids) -> bool:
        assert isinstance(other, MariadbGtids)
        none = (0, -1)
        return all(self._last.get(domain, none)[1] >= number for domain, (_, number) in other._last.items())

    def text(self) -> str:
        return ",".join(f"{domain}-{server}-{number}" for domain, (server, number) in sorted(self._last.items()))


class MysqlGtids:
    """Of each server ranges of numbers, both ends in them."""

    def __init__(self, text: str = "") -> None:
        self.ranges: dict[str, list[tuple[int, int]]] = {}
        for each in _parts(text):
            server, *ranges = each.split(":")
            for written in ranges:
                first, _, last = written.partition("-")
                self._add(server.lower(), int(first), int(last or first))

    def add(self, gtid: str) -> None:
        server, number = gtid.split(":")
        self._add(server.lower(), int(number), int(number))

    def has(self, gtid: str) -> bool:
        server, number = gtid.split(":")
        return self._has(server.lower(), int(number), int(number))

    def contains(self, other: Gtids) -> bool:
        assert isinstance(other, MysqlGtids)
        return all(self._has(server, *each) for server, ranges in other.ranges.items() for each in ranges)

    def text(self) -> str:
        written = []
        for server, ranges in sorted(self.ranges.items()):
            parts = [f"{first}-{last}" if last > first else str(first) for first, last in ranges]
            written.append(":".join([server, *parts]))
        return ",".join(written)

    def _has(self, server: str, first: int, last: int) -> bool:
        ranges = self.ranges.get(server, [])
        place = bisect.bisect_right(ranges, (first, 1 << 63)) - 1
        return place >= 0 and ranges[place][0] <= first and last <= ranges[place][1]

    def _add(self, server: str, first: int, last: int) -> None:
        ranges = self.ranges.setdefault(server, [])
        if ranges and ranges[-1][1] + 1 == first:  # the usual case
            ranges[-1] = (ranges[-1][0], last)
            return
        joined: list[tuple[int, int]] = []
        for begin, end in sorted([*ranges, (first, last)]):
            if joined and begin <= joined[-1][1] + 1:
                joined[-1] = (joined[-1][0], max(joined[-1][1], end))
            else:
                joined.append((begin, end))
        self.ranges[server] = joined


def read_gtids(text: str, *, is_mariadb: bool) -> Gtids:
    return MariadbGtids(text) if is_mariadb else MysqlGtids(text)


class Sight:
    """What a place has behind it."""

    def __init__(self, place: Place, *, is_mariadb: bool) -> None:
        self._order = file_order(place.file), place.offset
        self._gtids = read_gtids(place.gtid, is_mariadb=is_mariadb) if place.gtid is not None else None

    def sees(self, transaction: Transaction) -> bool:
        if self._gtids is not None and transaction.gtid is not None:
            return self._gtids.has(transaction.gtid)
        # Places are between transactions: one that begins before has ended, too.
        return (file_order(transaction.file), transaction.offset) < self._order

    def has_reached(self, other: Sight) -> bool:
        if self._gtids is not None and other._gtids is not None:
            return self._gtids.contains(other._gtids)
        return self._order >= other._order


def file_order(file: str) -> int:
    """The number of a file: after 999999 it has more digits."""
    found = re.search(r"\.(\d+)$", file)
    return int(found[1]) if found else 0


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
