"""What a source remembers between epochs: the split plan, and how far each split is read.

The table `f` is read by all subtasks, and written by subtask 0:

- `plan`: the `SplitPlan` of the first epoch;
- `looked`: when it was last looked for new files, in microseconds;
- of a source with `watch`, what `arroyo_filesystem.window` says, and no plan.

Of the table `s` a subtask reads and writes its own keys only:

- `seen-{subtask}`: the fingerprint of the plan that this subtask made in the first epoch;
- `done-{subtask}`: which of the subtask's splits are finished, as ranges of places among them;
- `{number}`: the position in a split that is begun;
- `missed-{number}`: since when the file of a split is gone, where a watch may find it under another name.

When the parallelism changes, the splits are dealt again, and each subtask looks through what all former ones had done.
Checkpoints of versions that had but one table keep everything in `f`: `done` as ranges of numbers of splits, and
`FINISHED` as the position in one that is finished. It is taken over in the first epoch, and goes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
from arroyo_formats import file_formats

from arroyo_core.api import GlobalKeyedState, StateTables, TaskInfo
from arroyo_core.state import IncompatibleCheckpointError
from arroyo_filesystem.location import Login, without_login
from arroyo_filesystem.splits import SplitPlan, deal, merge_ranges

TABLE = "f"
SPLITS_TABLE = "s"
#: As a position: the split is read to its end.
FINISHED = -1

_LOGIN = re.compile(rb"://[^/]*@")
_PLAN, _LOOKED, _DONE, _SEEN, _MISSED = "plan", "looked", "done", "seen", "missed"


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

    def has(self, number: int) -> bool:
        place, rest = divmod(number - self.task_index, self.parallelism)
        return rest == 0 and any(start <= place < stop for start, stop in self.ranges)


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
        if plan.is_recorded and positions_unit(plan.format) != positions_unit(kind):
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
        seen = plan.first or fingerprint(encoded)
        self.check_seen(seen)
        if _LOGIN.search(encoded):
            # Former versions kept it.
            plan = msgspec.structs.replace(plan, first=seen)
            if self.is_first:
                self._plan.insert(_PLAN, _encode(plan))
        return _with_paths(plan, self._login.put_into) if self._login.user else plan

    def check_seen(self, first: str) -> None:
        """Raise `IncompatibleCheckpointError` if a subtask began with others than the files of this fingerprint."""
        for key, seen in {**self._plan.get_all(), **self._splits.get_restored()}.items():
            name, _, subtask = key.partition("-")
            if name == _SEEN and seen != first:
                raise IncompatibleCheckpointError(
                    f"the files of operator {self._task.operator_id!r} changed while the job started: subtasks 0 and "
                    f"{subtask} saw different ones; start the job afresh"
                )

    def note_seen(self, first: str) -> None:
        """The fingerprint of the files that this subtask began with."""
        self._splits.insert(f"{_SEEN}-{self._task.task_index}", first)

    def store_plan(self, plan: SplitPlan) -> None:
        """Keep the plan of the first epoch."""
        encoded = _encode(plan)
        self.note_seen(fingerprint(encoded))
        if self.is_first:
            self._plan.insert(_PLAN, encoded)

    def plan_fingerprint(self, plan: SplitPlan) -> str:
        """What subtasks keep of a stored plan that they began with."""
        return plan.first or fingerprint(self._plan.get(_PLAN) or b"")

    def drop_plan(self) -> None:
        """The plan is kept otherwise from now on."""
        self._plan.remove(_PLAN)

    @property
    def shared(self) -> GlobalKeyedState[str, Any]:
        """The table that all subtasks read."""
        return self._plan

    @property
    def is_first(self) -> bool:
        """Whether this is the subtask that plans for all."""
        return self._task.task_index == 0

    @property
    def done(self) -> Done:
        """What this subtask has finished."""
        return Done(self._task.task_index, self._parallelism, tuple(self._done))

    def looked_us(self) -> int | None:
        """When it was last looked for new files."""
        found: int | None = self._plan.get(_LOOKED)
        return found

    def set_looked_us(self, now_us: int) -> None:
        self._plan.insert(_LOOKED, now_us)

    def open_splits(self, plan: SplitPlan) -> Iterator[tuple[int, int]]:
        """Number and position of each split that this subtask still has to read, in order."""
        yield from self.open_numbers(len(plan.splits))

    def open_numbers(self, count: int) -> Iterator[tuple[int, int]]:
        """The same, of splits with numbers below `count`."""
        count = count if self._task.task_index < self._parallelism else 0
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

    def missed_us(self, number: int) -> int | None:
        """Since when the file of a split is gone."""
        found: int | None = self._splits.get(f"{_MISSED}-{number}")
        return found

    def set_missed(self, number: int, since_us: int) -> None:
        self._splits.insert(f"{_MISSED}-{number}", since_us)

    def forget_missed(self, number: int) -> None:
        """The file of a split is there."""
        if self.missed_us(number) is not None:
            self._splits.remove(f"{_MISSED}-{number}")

    def _owner(self, key: str) -> int:
        """The subtask whose key this is; subtasks that are no more have none."""
        name, _, number = key.partition("-")
        return int(number) if number and name != _MISSED else int(number or name) % self._parallelism

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
            for key in stored:
                if key.isdecimal() or key == _DONE or key.startswith(f"{_SEEN}-"):
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


def positions_unit(kind: str) -> str:
    """What positions count: lines of text are found by bytes, whatever is in them."""
    files = file_formats().get(kind)
    return files.positions if files is not None else kind


def fingerprint(encoded: bytes) -> str:
    """Tells the files that one subtask has seen from those of another."""
    return hashlib.blake2b(encoded, digest_size=8).hexdigest()
