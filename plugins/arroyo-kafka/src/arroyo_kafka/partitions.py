"""Partitions of topics: which there are, and which subtask reads which."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.state import hash_key


class Partition(NamedTuple):
    """One partition of a topic; the key of positions in state."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.number}]"


def owner_of(partition: Partition, parallelism: int) -> int:
    """The subtask that reads a partition: the partitions of a topic in turn, each topic from a place of its own.

    Depends on nothing else, so that all subtasks give the same answer in every epoch.
    """
    return (hash_key(partition.topic) + partition.number) % parallelism


def partition_owner(parallelism: int) -> Callable[[Partition], int]:
    """The same, for a partitioned table."""
    return lambda partition: owner_of(partition, parallelism)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as the cluster has it now. The id is another one when the topic is deleted and made again."""

    name: str
    id: str
    partitions: tuple[int, ...]

    def each(self) -> Iterator[Partition]:
        return (Partition(self.name, number) for number in self.partitions)


def _matching(pattern: re.Pattern[str], names: Sequence[str]) -> list[bool]:
    """Whether each whole name matches. By RE2, whose time grows with the length of a name and no faster."""
    try:
        matched = pc.match_substring_regex(pa.array(names, pa.string()), rf"\A(?:{pattern.pattern})\z")
    except pa.ArrowInvalid:
        # It looks ahead, or refers back: that only Python can.
        return [pattern.fullmatch(name) is not None for name in names]
    return [bool(each) for each in matched.to_pylist()]


@dataclass(frozen=True, slots=True)
class TopicSelection:
    """What a source reads: some topics by name, or all whose whole name matches the pattern."""

    names: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None

    def choose(self, names: Iterable[str]) -> Sequence[str]:
        """Those of a cluster's topics that the pattern matches, in order."""
        found = sorted(names)
        return [] if self.pattern is None else list(compress(found, _matching(self.pattern, found)))

    def is_selected(self, topic: str) -> bool:
        return topic in self.names or (self.pattern is not None and _matching(self.pattern, [topic])[0])

    def __str__(self) -> str:
        """The same for the same topics, in whatever order."""
        return ", ".join(sorted(self.names)) if self.pattern is None else f"/{self.pattern.pattern}/"
