"""Rows of tables that are asked by key: the answers that a process keeps, each until it is too old or not asked for.

Answers are kept by a 128-bit hash of the key, also those of keys that have no rows. Their rows lie in segments: one for
each time that a table was asked, joined into one where there are many. What was used least recently goes first.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from arroyo_core.api import KeyedLookupTable
from arroyo_core.api.updating import row_ids
from arroyo_core.errors import DataError
from arroyo_core.state import take_in_parts
from arroyo_std.joins.layout import Rows
from arroyo_std.large_rows import batches_of

#: Tables of which one process keeps answers; the one that was asked first goes.
CACHED_TABLES = 16
#: About what an answer takes beside its rows.
ENTRY_BYTES = 320
#: More segments are joined into one.
MAX_SEGMENTS = 64

#: The segment, the first row and the number of rows of a key, and when they were asked for.
Entry: TypeAlias = tuple[int, int, int, int]


@dataclass(slots=True)
class Segment:
    """Rows that were found at once."""

    rows: pa.Table
    row_bytes: float

    @classmethod
    def of(cls, rows: pa.Table) -> Segment:
        return cls(rows, rows.nbytes / max(1, rows.num_rows))


@dataclass(slots=True)
class Answers:
    """What is known of one table."""

    schema: pa.Schema
    max_bytes: int
    lock: threading.Lock = field(default_factory=threading.Lock)
    _entries: OrderedDict[bytes, Entry] = field(default_factory=OrderedDict)
    _segments: dict[int, Segment] = field(default_factory=dict)
    _next: int = 0

    @property
    def size_bytes(self) -> int:
        held: int = sum(part.rows.nbytes for part in self._segments.values())
        return held + ENTRY_BYTES * len(self._entries)

    @property
    def keys(self) -> int:
        return len(self._entries)

    def take(self, ids: Sequence[bytes], *, now_us: int, ttl_us: int) -> tuple[pa.Table, Rows]:
        """The rows of the keys that are known, and the places in `ids` of those that are not, or no longer."""
        found: list[Entry] = []
        missing: list[int] = []
        entries = self._entries
        for place, each in enumerate(ids):
            entry = entries.get(each)
            if entry is None or not 0 <= now_us - entry[3] < ttl_us:
                missing.append(place)
                continue
            entries.move_to_end(each)
            if entry[2]:
                found.append(entry)
        return self._rows(found), np.array(missing, dtype=np.int64)

    def put(self, ids: Sequence[bytes], rows: pa.Table, counts: Rows, *, now_us: int) -> None:
        """Keep the rows of keys, which are in the order of `ids`: so many of each."""
        number, self._next = self._next, self._next + 1
        if rows.num_rows:
            self._segments[number] = Segment.of(rows)
        firsts = np.cumsum(counts) - counts
        for each, first, count in zip(ids, firsts.tolist(), counts.tolist(), strict=True):
            self._entries[each] = (number, first, count, now_us)
            self._entries.move_to_end(each)
        is_full = self.size_bytes > self.max_bytes
        if is_full:
            self._drop_oldest()
        if is_full or len(self._segments) > MAX_SEGMENTS:
            self._join()

    def _drop_oldest(self) -> None:
        # Half of it, so that the rest is not copied again soon.
        size, wanted = sum(self._bytes_of(entry) for entry in self._entries.values()), self.max_bytes / 2
        while size > wanted and self._entries:
            _, entry = self._entries.popitem(last=False)
            size -= self._bytes_of(entry)

    def _bytes_of(self, entry: Entry) -> float:
        return ENTRY_BYTES + (entry[2] * self._segments[entry[0]].row_bytes if entry[2] else 0)

    def _join(self) -> None:
        """All rows that are still wanted, in one segment."""
        rows = self._rows([entry for entry in self._entries.values() if entry[2]])
        number, self._next = self._next, self._next + 1
        self._segments = {number: Segment.of(rows)} if rows.num_rows else {}
        first = 0
        for each, (_, _, count, loaded_us) in self._entries.items():
            self._entries[each] = (number, first, count, loaded_us)
            first += count

    def _rows(self, entries: Sequence[Entry]) -> pa.Table:
        """The rows of these entries, in their order."""
        if not entries:
            return self.schema.empty_table()
        places = np.array(entries, dtype=np.int64)
        used, which = np.unique(places[:, 0], return_inverse=True)
        segments = [self._segments[number].rows for number in used.tolist()]
        sizes = np.array([part.num_rows for part in segments], dtype=np.int64)
        firsts = places[:, 1] + (np.cumsum(sizes) - sizes)[which]
        return take_in_parts(pa.concat_tables(segments), ranges(firsts, places[:, 2]))


class KeyCache:
    """The answers of the tables of one process, shared by its subtasks and epochs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables: dict[Hashable, Answers] = {}

    def find(
        self,
        source: KeyedLookupTable,
        keys: pa.RecordBatch,
        schema: pa.Schema,
        *,
        now_us: int,
        ttl_us: int,
        max_bytes: int,
    ) -> pa.Table:
        """The rows of these keys, which are distinct and not NULL, as they were not more than `ttl_us` ago."""
        answers = self._answers(
            (source.cache_key(), tuple(keys.schema.names), schema.to_string(), max_bytes), schema, max_bytes
        )
        ids: list[bytes] = row_ids(keys, keys.schema.names).to_pylist()
        with answers.lock:
            known, missing = answers.take(ids, now_us=now_us, ttl_us=ttl_us)
        if not len(missing):
            return known
        # Without the lock: others find what is known meanwhile, and may ask for the same.
        asked = pa.Table.from_batches([keys.take(pa.array(missing))])
        asked_ids = [ids[place] for place in missing.tolist()]
        found, counts = in_order(_ask(source, asked, schema), asked_ids, keys.schema.names)
        with answers.lock:
            answers.put(asked_ids, found, counts, now_us=now_us)
        return pa.concat_tables([known, found])

    def _answers(self, key: Hashable, schema: pa.Schema, max_bytes: int) -> Answers:
        with self._lock:
            found = self._tables.get(key)
            if found is None:
                found = self._tables[key] = Answers(schema, max_bytes)
                while len(self._tables) > CACHED_TABLES:
                    del self._tables[next(iter(self._tables))]
            return found


#: What operators use: an operator lives for one epoch, the process for many.
PROCESS_KEYS = KeyCache()


def in_order(rows: pa.Table, ids: Sequence[bytes], keys: Sequence[str]) -> tuple[pa.Table, Rows]:
    """The rows in the order of the keys that they were asked for by, and how many each key has; others are left out."""
    place_of = {each: place for place, each in enumerate(ids)}
    places = np.array(
        [
            place_of.get(each, -1)
            for part in batches_of(rows)
            if part.num_rows
            for each in row_ids(part, keys).to_pylist()
        ],
        dtype=np.int64,
    )
    order = np.argsort(places, kind="stable")
    order = order[np.searchsorted(places[order], 0) :]
    return take_in_parts(rows, order), np.bincount(places[places >= 0], minlength=len(ids)).astype(np.int64)


def ranges(firsts: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> Rows:
    """The numbers of so many rows from each first one on, one range after the other."""
    ends = np.cumsum(counts)
    within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)
    numbers: Rows = np.repeat(firsts, counts) + within
    return numbers


def _ask(source: KeyedLookupTable, keys: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows in the types of `schema`, whatever a lookup has them in."""
    found = source.find(keys, schema)
    try:
        return found if found.schema.equals(schema) else found.select(schema.names).cast(schema)
    except (KeyError, ValueError) as error:
        raise DataError(
            f"the rows of the table {source.name()!r} are not what the pipeline was planned with: {error}"
        ) from error
