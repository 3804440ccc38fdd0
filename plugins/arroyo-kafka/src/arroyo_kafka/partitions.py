"""Partitions of topics: which there are, and which subtask reads which."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

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


@dataclass(frozen=True, slots=True)
class TopicSelection:
    """What a source reads: some topics by name, or all whose whole name matches the pattern."""

    names: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None

    def choose(self, names: Iterable[str]) -> Sequence[str]:
        """Those of a cluster's topics that the pattern matches, in order."""
        pattern = self.pattern
        return sorted(name for name in names if pattern is not None and pattern.fullmatch(name))

    def is_selected(self, topic: str) -> bool:
        return topic in self.names or (self.pattern is not None and self.pattern.fullmatch(topic) is not None)

    def __str__(self) -> str:
        """The same for the same topics, in whatever order."""
        return ", ".join(sorted(self.names)) if self.pattern is None else f"/{self.pattern.pattern}/"
