"""The files that a source with `watch` knows of and has not read to their end.

Their state is as large as what is still to be read, however many files were read before. In the table `f`:

- `file-{number}`: a `WatchedFile`, by the number of its first split; numbers are never given again;
- `next`: the number of the next split; it is there from the first epoch on;
- `of`: the format whose positions are kept, and the fingerprint of the files of the first epoch;
- `until`: the time of the first look, where the source ends with that;
- `more`: a look has found more files than the window takes;
- `ended`: no file will come after these;
- `read-{subtask}`: a `Done`, which splits that subtask has finished: so subtask 0 knows which files are read;
- `damaged-{number}`: a split that was not read to its end, because its file is damaged.

The last two are written by the subtask that reads, the others by subtask 0. A `plan`, of versions that kept all files
for ever or of a source that had no `watch`, is taken over: the numbers of its splits stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from arroyo_core.state import IncompatibleCheckpointError
from arroyo_filesystem.listing import File
from arroyo_filesystem.location import Login, without_login
from arroyo_filesystem.progress import Done, Progress, fingerprint, positions_unit
from arroyo_filesystem.splits import MAX_UNREAD, Split, SplitPlan

_FILE, _NEXT, _OF, _READ, _DAMAGED = "file", "next", "of", "read", "damaged"
_UNTIL, _MORE, _ENDED = "until", "more", "ended"


class WatchedFile(msgspec.Struct, frozen=True, array_like=True):
    """A file and how it was cut, by the number of its first split."""

    first: int
    path: str
    size: int
    version: str
    parts: tuple[tuple[int, int], ...]
    #: Of one that grows, where the storage has it.
    inode: str = ""

    @property
    def file(self) -> File:
        return File(self.path, self.size, self.version)

    @property
    def numbers(self) -> range:
        return range(self.first, self.first + len(self.parts))


class _Of(msgspec.Struct, frozen=True, array_like=True):
    format: str
    fingerprint: str


class Window:
    """What one subtask sees of it in one epoch."""

    def __init__(self, progress: Progress, *, format_name: str, login: Login) -> None:
        """Raises `IncompatibleCheckpointError` if positions in the state are of another format."""
        self._progress = progress
        self._view = progress.shared
        self._format_name = format_name
        self._login = login
        self._files: dict[int, WatchedFile] = {}
        self._splits: dict[int, tuple[WatchedFile, tuple[int, int]]] = {}
        for key, value in self._view.get_all().items():
            if key.startswith(f"{_FILE}-"):
                file = msgspec.convert(value, WatchedFile)
                self._put(msgspec.structs.replace(file, path=login.put_into(file.path)))
        self._count: int | None = self._view.get(_NEXT)
        #: As it was when the epoch began: all subtasks see the same.
        self.is_ended = bool(self._view.get(_ENDED))
        self._check_origin()

    @property
    def is_begun(self) -> bool:
        """Whether an earlier epoch has begun it."""
        return self._count is not None

    @property
    def count(self) -> int:
        """How many splits there have ever been."""
        return self._count or 0

    @property
    def files(self) -> Mapping[int, WatchedFile]:
        """Those that are not known to be read, by the numbers of their first splits."""
        return self._files

    @property
    def until_us(self) -> int | None:
        found: int | None = self._view.get(_UNTIL)
        return found

    @property
    def has_room(self) -> bool:
        """Whether there are more files than were admitted, and time to admit them."""
        return bool(self._view.get(_MORE)) and len(self._files) <= MAX_UNREAD // 2

    def find(self, number: int) -> tuple[WatchedFile, tuple[int, int]] | None:
        """File and part of a split; None where its file is known to be read."""
        return self._splits.get(number)

    def begin(self, files: Sequence[File], splits: Sequence[Split]) -> None:
        """Begin with these files; every subtask does, and the next epoch compares what they saw."""
        self._count = 0
        self.add(files, splits)
        seen = fingerprint(msgspec.msgpack.encode(list(self._files.values())))
        self._progress.note_seen(seen)
        if self._progress.is_first:
            self._view.insert(_OF, _Of(self._format_name, seen))

    def take_over(self, plan: SplitPlan, seen: str) -> None:
        """Go on from a plan, whose paths have the login; `seen` is its fingerprint."""
        self._count = 0
        self.add(plan.files, plan.splits)
        if self._progress.is_first:
            self._view.insert(_OF, _Of(plan.format, seen))
            self._progress.drop_plan()

    def add(self, files: Sequence[File], splits: Sequence[Split]) -> list[int]:
        """Admit files, whose splits are in their order; the numbers of their first splits."""
        parts: list[list[tuple[int, int]]] = [[] for _ in files]
        for split in splits:
            parts[split.file].append(split.part)
        numbers = []
        for file, its in zip(files, parts, strict=True):
            watched = WatchedFile(self.count, file.path, file.size, file.version, tuple(its))
            numbers.append(watched.first)
            self._count = self.count + len(its)
            self._put(watched)
            self._store(watched)
        if self._progress.is_first:
            self._view.insert(_NEXT, self.count)
        return numbers

    def add_lines(self, file: File, parts: Sequence[tuple[int, int]], *, inode: str) -> int:
        """Admit lines of a file that grows; the number of its first split."""
        watched = WatchedFile(self.count, file.path, file.size, file.version, tuple(parts), inode)
        self._count = self.count + len(parts)
        self._put(watched)
        self._store(watched)
        self._view.insert(_NEXT, self.count)
        return watched.first

    def rename_inode(self, inode: str, path: str) -> None:
        """A file that grows has another name now; lines of it may not be read yet."""
        for watched in list(self._files.values()):
            if watched.inode == inode:
                moved = msgspec.structs.replace(watched, path=path)
                self._put(moved)
                self._store(moved)

    def rename(self, number: int, file: File) -> None:
        """A file that is not read yet has another name now."""
        found = self._files.get(number)
        if found is not None:
            moved = msgspec.structs.replace(found, path=file.path, version=file.version)
            self._put(moved)
            self._store(moved)

    def set_until(self, until_us: int) -> None:
        self._view.insert(_UNTIL, until_us)

    def set_more(self, *, has_more: bool) -> None:
        if bool(self._view.get(_MORE)) != has_more:
            self._view.insert(_MORE, has_more)

    def end(self) -> None:
        """No file will come; the next epoch knows it."""
        if not self._view.get(_ENDED):
            self._view.insert(_ENDED, True)

    def note_damage(self, number: int) -> None:
        self._view.insert(f"{_DAMAGED}-{number}", True)

    def report(self) -> None:
        """Tell subtask 0 what this one has finished; it knows its own."""
        done = self._progress.done
        key = f"{_READ}-{done.task_index}"
        if self._progress.is_first or not done.ranges:
            return
        stored = self._view.get(key)
        if stored is None or msgspec.convert(stored, Done) != done:
            self._view.insert(key, done)

    def take_read(self) -> Iterator[tuple[WatchedFile, bool]]:
        """By subtask 0: drop the files that are read to their end; each, and whether it was whole."""
        done = self._reported()
        for number, file in list(self._files.items()):
            if not all(any(each.has(split) for each in done) for split in file.numbers):
                continue
            damaged = [key for key in map(_damaged_key, file.numbers) if self._view.get(key)]
            for key in damaged:
                self._view.remove(key)
            self._view.remove(f"{_FILE}-{number}")
            del self._files[number]
            for split in file.numbers:
                del self._splits[split]
            yield file, not damaged

    def _reported(self) -> list[Done]:
        own = self._progress.done
        found = {
            key: msgspec.convert(value, Done)
            for key, value in self._view.get_all().items()
            if key.startswith(f"{_READ}-")
        }
        now = [done for done in found.values() if done.parallelism == own.parallelism]
        if len(now) == own.parallelism - 1:
            # After a change of the parallelism, everyone has told all that former ones had done.
            for key, done in found.items():
                if done.parallelism != own.parallelism:
                    self._view.remove(key)
        return [own, *found.values()]

    def _put(self, file: WatchedFile) -> None:
        self._files[file.first] = file
        for number, part in zip(file.numbers, file.parts, strict=True):
            self._splits[number] = (file, part)

    def _store(self, file: WatchedFile) -> None:
        if self._progress.is_first:
            bare = msgspec.structs.replace(file, path=without_login(file.path))
            self._view.insert(f"{_FILE}-{file.first}", bare)

    def _check_origin(self) -> None:
        stored = self._view.get(_OF)
        if stored is None:
            return
        origin = msgspec.convert(stored, _Of)
        if positions_unit(origin.format) != positions_unit(self._format_name):
            raise IncompatibleCheckpointError(
                f"positions in {origin.format} files say nothing about {self._format_name} files, so the source cannot "
                "go on from them: give its node another id, and it reads from the beginning"
            )
        self._progress.check_seen(origin.fingerprint)


def _damaged_key(number: int) -> str:
    return f"{_DAMAGED}-{number}"
