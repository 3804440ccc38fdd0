"""What a source remembers between epochs: the split plan, and how far each split is read.

The table `f` is read by all subtasks, and written by subtask 0:

- `plan`: the `SplitPlan` of the first epoch, with the files that were found since;
- `looked`: when it was last looked for new files, in microseconds.

Of the table `s` a subtask reads and writes its own keys only:

- `seen-{subtask}`: the fingerprint of the plan that this subtask made in the first epoch;
- `done-{subtask}`: which of the subtask's splits are finished, as ranges of places among them;
- `{number}`: the position in a split that is begun.

When the parallelism changes, the splits are dealt again, and each subtask looks through what all former ones had done.
Checkpoints of versions that had but one table keep everything in `f`: `done` as ranges of numbers of splits, and
`FINISHED` as the position in one that is finished. It is taken over in the first epoch, and goes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator

import msgspec
from arroyo_formats import file_formats

from arroyo_core.api import StateTables, TaskInfo
from arroyo_core.state import IncompatibleCheckpointError
from arroyo_filesystem.location import Login, without_login
from arroyo_filesystem.splits import SplitPlan, deal, merge_ranges

TABLE = "f"
SPLITS_TABLE = "s"
#: As a position: the split is read to its end.
FINISHED = -1

_LOGIN = re.compile(rb"://[^/]*@")
_PLAN, _LOOKED, _DONE, _SEEN = "plan", "looked", "done", "seen"


class Done(msgspec.Struct, frozen=True, array_like=True):
    """The finished splits of one subtask of `parallelism`: half-open ranges of places in what was dealt to it."""

    task_index: int
    parallelism: int
    ranges: tuple[tuple[int, int], ...]

    def numbers(self) -> Iterator[range]:
        """The numbers of the splits."""
        for start, stop in self.ranges:
            step = self.parallelism
            yield range(self.task_index + start * step, self.task_index + stop * step, step)


class Progress:
    """The state of one subtask's source in one epoch.

    With `is_ordered`, subtask 0 reads all splits, one after the other.
    """

    def __init__(
        self, tables: StateTables, task: TaskInfo, *, is_ordered: bool = False, login: Login | None = None
    ) -> None:
        """Plans are kept without the `login` of the source's URL, and have it in their paths."""
        self._task = task
        self._login = login or Login()
        #: Among how many subtasks the splits are dealt.
        self._parallelism = 1 if is_ordered else task.parallelism
        self._plan = tables.get_global_keyed_state(TABLE)
        self._splits = tables.get_partitioned_keyed_state(SPLITS_TABLE, self._owner, key_type=str)
        #: The finished splits of this subtask, as places among those that are dealt to it.
        self._done: list[tuple[int, int]] = []
        self._restore()

    def stored_plan(self, *, url: str, kind: str) -> SplitPlan | None:
        """The plan of an earlier epoch.

        Raises `IncompatibleCheckpointError` if it is not of this source, or not the one of all subtasks. A person may
        have allowed another path, or another format whose positions mean the same.
        """
        encoded = self._plan.get(_PLAN)
        if encoded is None:
            return None
        plan = msgspec.msgpack.decode(encoded, type=SplitPlan)
        if plan.is_recorded and _unit(plan.format) != _unit(kind):
            raise IncompatibleCheckpointError(
                f"positions in {plan.format} files say nothing about {kind} files, so the source cannot go on from "
                "them: give its node another id, and it reads from the beginning"
            )
        if not plan.is_recorded and (without_login(plan.url), plan.format) != (without_login(url), kind):
            raise IncompatibleCheckpointError(
                f"the state is of a source that reads {plan.format} from {without_login(plan.url)!r}, not {kind} from "
                f"{without_login(url)!r}: "
                "give the job another name to start afresh"
            )
        fingerprint = plan.first or _fingerprint(encoded)
        for key, seen in {**self._plan.get_all(), **self._splits.get_restored()}.items():
            name, _, subtask = key.partition("-")
            if name == _SEEN and seen != fingerprint:
                raise IncompatibleCheckpointError(
                    f"the files of {without_login(url)!r} changed while the job started: subtasks 0 and {subtask} "
                    "saw different ones; start the job afresh"
                )
        if _LOGIN.search(encoded):
            # Former versions kept it.
            plan = msgspec.structs.replace(plan, first=fingerprint)
            self.extend_plan(plan)
        return _with_paths(plan, self._login.put_into) if self._login.user else plan

    def store_plan(self, plan: SplitPlan) -> None:
        """Keep the plan of the first epoch."""
        encoded = _encode(plan)
        self._splits.insert(f"{_SEEN}-{self._task.task_index}", _fingerprint(encoded))
        if self._task.task_index == 0:
            self._plan.insert(_PLAN, encoded)

    def extend_plan(self, plan: SplitPlan) -> None:
        """Keep a stored plan with more files in it, for all subtasks of the next epoch."""
        encoded = self._plan.get(_PLAN)
        assert encoded is not None, "a plan is stored before it grows"
        first = plan.first or _fingerprint(encoded)
        if self._task.task_index == 0:
            self._plan.insert(_PLAN, _encode(msgspec.structs.replace(plan, first=first)))

    def looked_us(self) -> int | None:
        """When it was last looked for new files."""
        found: int | None = self._plan.get(_LOOKED)
        return found

    def set_looked_us(self, now_us: int) -> None:
        self._plan.insert(_LOOKED, now_us)

    def open_splits(self, plan: SplitPlan) -> Iterator[tuple[int, int]]:
        """Number and position of each split that this subtask still has to read, in order."""
        count = len(plan.splits) if self._task.task_index < self._parallelism else 0
        dealt = deal(count, task_index=self._task.task_index, parallelism=self._parallelism)
        place = 0
        for start, stop in [*self._done, (len(dealt), len(dealt))]:
            for number in dealt[place:start]:
                yield number, self._splits.get(str(number)) or 0
            place = stop

    def save(self, number: int, position: int) -> None:
        """Remember how far a split is read."""
        if position != FINISHED:
            self._splits.insert(str(number), position)
            return
        self._splits.remove(str(number))
        self._finish([number])

    def _owner(self, key: str) -> int:
        """The subtask whose key this is; subtasks that are no more have none."""
        name, _, subtask = key.partition("-")
        return int(subtask) if subtask else int(name) % self._parallelism

    def _restore(self) -> None:
        restored = self._splits.get_restored()
        former = [msgspec.convert(value, Done) for key, value in restored.items() if key.startswith(f"{_DONE}-")]
        own = (self._task.task_index, self._parallelism)
        legacy = self._take_legacy()
        if not legacy and [(done.task_index, done.parallelism) for done in former] == [own]:
            self._done = list(former[0].ranges)
            return
        numbers = [number for done in former for numbers in done.numbers() for number in numbers]
        self._finish([number for number in [*numbers, *legacy] if self._owner(str(number)) == self._task.task_index])

    def _take_legacy(self) -> list[int]:
        """The splits that are finished according to the one table of former versions; moves the positions in others."""
        stored = self._plan.get_all()
        positions = {int(key): position for key, position in stored.items() if key.isdecimal()}
        finished = [number for number, position in positions.items() if position == FINISHED]
        finished += [number for start, stop in stored.get(_DONE, ()) for number in range(start, stop)]
        for number, position in positions.items():
            if position != FINISHED and self._owner(str(number)) == self._task.task_index:
                self._splits.insert(str(number), position)
        if self._task.task_index == 0:
            for key in stored.keys() - {_PLAN, _LOOKED}:
                self._plan.remove(key)
        return finished

    def _finish(self, numbers: Iterable[int]) -> None:
        places = [(number - self._task.task_index) // self._parallelism for number in numbers]
        if places:
            self._done = merge_ranges(self._done, places)
            index = self._task.task_index
            self._splits.insert(f"{_DONE}-{index}", Done(index, self._parallelism, tuple(self._done)))


def _encode(plan: SplitPlan) -> bytes:
    """The plan as it is kept, without user and password: others may read the checkpoint."""
    plan = msgspec.structs.replace(plan, url=without_login(plan.url))
    encoded = msgspec.msgpack.encode(plan)
    # Of very many files, the most have none.
    return msgspec.msgpack.encode(_with_paths(plan, without_login)) if _LOGIN.search(encoded) else encoded


def _with_paths(plan: SplitPlan, change: Callable[[str], str]) -> SplitPlan:
    files = (msgspec.structs.replace(file, path=change(file.path)) for file in plan.files)
    return msgspec.structs.replace(plan, files=tuple(files))


def _unit(kind: str) -> str:
    """What positions count: lines of text are found by bytes, whatever is in them."""
    files = file_formats().get(kind)
    return files.positions if files is not None else kind


def _fingerprint(encoded: bytes) -> str:
    return hashlib.blake2b(encoded, digest_size=8).hexdigest()
