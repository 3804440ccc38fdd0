"""What a source remembers between epochs: the split plan, and how far each split is read.

Keys of the table `f`:

- `plan`: the `SplitPlan`, written once by subtask 0;
- `seen-{subtask}`: the fingerprint of the plan that this subtask made in the first epoch;
- `done`: ranges of numbers of finished splits, kept by subtask 0;
- `{number}`: the position in a split that is begun, or `FINISHED`.

Every subtask sees all keys, so nothing depends on which subtask read what: the parallelism may
change at any restart. In each epoch subtask 0 folds single finished splits into `done`, which
keeps the table as small as the number of splits in progress.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from arroyo_core.state import IncompatibleCheckpointError
from arroyo_filesystem.formats.format import Format
from arroyo_filesystem.splits import SplitPlan, deal, merge_ranges

TABLE = "f"
#: As a position: the split is read to its end.
FINISHED = -1

_PLAN, _DONE, _SEEN = "plan", "done", "seen-"


class Progress:
    """The state of one subtask's source in one epoch. `view` is a global keyed view of string keys."""

    def __init__(self, view: Any, *, task_index: int, parallelism: int) -> None:
        self._view = view
        self._task_index = task_index
        self._parallelism = parallelism

    def stored_plan(self, *, url: str, kind: str) -> SplitPlan | None:
        """The plan of an earlier epoch.

        Raises `IncompatibleCheckpointError` if it is not of this source, or not the one of all subtasks. A person may
        have allowed another path, or another format whose positions mean the same.
        """
        encoded = self._view.get(_PLAN)
        if encoded is None:
            return None
        plan = msgspec.msgpack.decode(encoded, type=SplitPlan)
        if plan.is_recorded and _unit(plan.format) != _unit(kind):
            raise IncompatibleCheckpointError(
                f"positions in {plan.format} files say nothing about {kind} files, so the source cannot go on from "
                "them: give its node another id, and it reads from the beginning"
            )
        if not plan.is_recorded and (plan.url, plan.format) != (url, kind):
            raise IncompatibleCheckpointError(
                f"the state is of a source that reads {plan.format} from {plan.url!r}, not {kind} from {url!r}: "
                "give the job another name to start afresh"
            )
        fingerprint = _fingerprint(encoded)
        for key, seen in self._view.get_all().items():
            if key.startswith(_SEEN) and seen != fingerprint:
                raise IncompatibleCheckpointError(
                    f"the files of {url!r} changed while the job started: subtasks 0 and {key.removeprefix(_SEEN)} "
                    "saw different ones; start the job afresh"
                )
        return plan

    def store_plan(self, plan: SplitPlan) -> None:
        """Keep the plan of the first epoch."""
        encoded = msgspec.msgpack.encode(plan)
        self._view.insert(f"{_SEEN}{self._task_index}", _fingerprint(encoded))
        if self._task_index == 0:
            self._view.insert(_PLAN, encoded)

    def fold(self) -> None:
        """Replace single finished splits by ranges; only subtask 0 does, before it reads."""
        if self._task_index != 0:
            return
        finished = [key for key, position in self._view.get_all().items() if key.isdecimal() and position == FINISHED]
        if not finished:
            return
        self._view.insert(_DONE, merge_ranges(self._done(), map(int, finished)))
        for key in finished:
            self._view.remove(key)

    def open_splits(self, plan: SplitPlan, *, is_ordered: bool = False) -> Iterator[tuple[int, int]]:
        """Number and position of each split that this subtask still has to read, in order.

        With `is_ordered`, subtask 0 reads them all, one after the other.
        """
        done = self._done()
        count = 0 if is_ordered and self._task_index else len(plan.splits)
        for number in deal(count, task_index=self._task_index, parallelism=1 if is_ordered else self._parallelism):
            if any(start <= number < stop for start, stop in done):
                continue
            position = self._view.get(str(number)) or 0
            if position != FINISHED:
                yield number, position

    def save(self, number: int, position: int) -> None:
        """Remember how far a split is read."""
        self._view.insert(str(number), position)

    def _done(self) -> list[tuple[int, int]]:
        return [(start, stop) for start, stop in self._view.get(_DONE) or ()]


def _unit(kind: str) -> str:
    """What positions count: lines of text are found by bytes, whatever is in them."""
    return "bytes" if Format(kind).is_text else kind


def _fingerprint(encoded: bytes) -> str:
    return hashlib.blake2b(encoded, digest_size=8).hexdigest()
