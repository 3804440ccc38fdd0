"""Types for ids, and the one definition of which subtask owns a key."""

from __future__ import annotations

from dataclasses import dataclass

MAX_KEY_HASH = 2**64 - 1


@dataclass(frozen=True, slots=True)
class KeyRange:
    """An inclusive range of 64-bit key hashes."""

    start: int
    end: int

    def __contains__(self, key_hash: int) -> bool:
        return self.start <= key_hash <= self.end

    def overlaps(self, start: int, end: int) -> bool:
        """Whether any hash of the inclusive range `start..end` is in this range."""
        return self.start <= end and start <= self.end


FULL_KEY_RANGE = KeyRange(0, MAX_KEY_HASH)


def range_size(parallelism: int) -> int:
    """How many hashes each subtask owns; the last one owns what is left."""
    return MAX_KEY_HASH // parallelism + 1


def key_range(task_index: int, parallelism: int) -> KeyRange:
    """The contiguous range of key hashes that subtask `task_index` of `parallelism` owns."""
    if not 0 <= task_index < parallelism:
        raise ValueError(f"subtask {task_index} of {parallelism}")
    size = range_size(parallelism)
    start = task_index * size
    return KeyRange(start, MAX_KEY_HASH if task_index == parallelism - 1 else start + size - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    """Who a subtask is."""

    job_id: str
    operator_id: str
    operator_name: str
    task_index: int
    parallelism: int

    @property
    def key_range(self) -> KeyRange:
        return key_range(self.task_index, self.parallelism)
