"""What a look does with files that grow."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from arroyo_formats.files import MEBIBYTE
from arroyo_formats.text.compressed import compression_of

from arroyo_core.api import SourceContext
from arroyo_core.errors import DataError
from arroyo_filesystem.grown_files import Appended, find_appended, has_head, inode_of
from arroyo_filesystem.listing import File
from arroyo_filesystem.location import Location, without_login
from arroyo_filesystem.seen_files import SKIPPED, Seen, SeenFiles
from arroyo_filesystem.window import Window

#: Lines of a file that are more are read by several subtasks.
PART_BYTES = 32 * MEBIBYTE


class Growth:
    """Finds what was appended, and which file a name is, for subtask 0 in one epoch."""

    def __init__(self, location: Location, window: Window, seen: SeenFiles, ctx: SourceContext) -> None:
        self._location = location
        self._window = window
        self._seen = seen
        self._ctx = ctx

    def skip(self, file: File, now_us: int) -> None:
        """What is in a file now is not read; what will be appended is."""
        try:
            found = find_appended(self._location.fs, file, start=0, head="")
        except FileNotFoundError:
            return
        self._remember(found, SKIPPED, now_us)

    def admit(self, files: Sequence[File], now_us: int) -> None:
        """Admit the lines that files have and had not when they were seen last, also under other names."""
        # Before any is changed: of two files that change their names, each is to be found.
        known = dict(self._seen.files)
        by_inode = {inode_of(seen.identity): seen for seen in known.values() if inode_of(seen.identity)}
        listed = {inode_of(file.identity) for file in files}
        # Their names are those of other files now, as when logs are rotated.
        gone_on = {path for path, seen in known.items() if inode_of(seen.identity) in listed}
        for file in files:
            if compression_of(file.path):
                raise DataError(f"{file.path}: the file is compressed, and cannot grow: leave out grow, or the file")
            former = self._former(file, known, by_inode)
            try:
                self._admit(file, former, now_us, is_other=without_login(file.path) in known.keys() - gone_on)
            except FileNotFoundError:
                # The next look finds it under another name, or not at all.
                continue

    def _former(self, file: File, known: dict[str, Seen], by_inode: dict[str, Seen]) -> Seen | None:
        """What is known of the file, under this name or another."""
        path, inode = without_login(file.path), inode_of(file.identity)
        if not inode:
            return known.get(path)
        former = by_inode.get(inode)
        # Inodes are given again.
        is_it = former is not None and (former.path == path or has_head(self._location.fs, file.path, former.head))
        return former if is_it else None

    def _admit(self, file: File, former: Seen | None, now_us: int, *, is_other: bool) -> None:
        path = without_login(file.path)
        start, head, number = (0, "", SKIPPED) if former is None else (former.stop, former.head, former.number)
        if former is not None and former.path != path:
            self._ctx.count("renamed_files")
            self._window.rename_inode(inode_of(file.identity), file.path)
        elif former is None and is_other:
            self._tell(file, "replaced")
        elif former is None:
            self._ctx.count("new_files")
        if former is not None and file.size < start:
            self._tell(file, "truncated")
            start, head = 0, ""
        try:
            found = find_appended(self._location.fs, file, start=start, head=head)
        except ValueError:
            self._tell(file, "replaced")
            found = find_appended(self._location.fs, file, start=0, head="")
        if found.stop > found.start:
            parts = _cut(found.start, found.stop)
            number = self._window.add_lines(file, parts, inode=inode_of(file.identity))
        self._remember(found, number, now_us)
        if former is not None and former.path != path:
            self._seen.forget_name(former.path, identity=inode_of(file.identity))

    def _remember(self, found: Appended, number: int, now_us: int) -> None:
        self._seen.remember(found.file, number=number, now_us=now_us, stop=found.stop, head=found.head)

    def _tell(self, file: File, what: str) -> None:
        self._ctx.count(f"{what}_files")
        self._ctx.warn(f"{file.path}: the file was {what}, and is read from its beginning", topic=f"{what} files")


def _cut(start: int, stop: int) -> list[tuple[int, int]]:
    places = [*range(start, stop, PART_BYTES), stop]
    return list(pairwise(places))
