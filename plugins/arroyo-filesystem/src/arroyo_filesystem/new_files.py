"""Files that appear after a job has begun: looked for by subtask 0, read by all from the next epoch on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from arroyo_core.api import SourceContext
from arroyo_core.errors import DataError
from arroyo_filesystem.finished_files import FinishedFile, FinishedFiles
from arroyo_filesystem.growth import Growth
from arroyo_filesystem.listing import File, fixed_folder, list_files, replacing_files
from arroyo_filesystem.location import Location
from arroyo_filesystem.progress import Progress
from arroyo_filesystem.seen_files import SKIPPED, Comparison, SeenFiles
from arroyo_filesystem.splits import MAX_UNREAD, Split, SplitPlan
from arroyo_filesystem.watch_settings import WatchSettings
from arroyo_filesystem.window import Window

#: How many names a warning has.
SHOWN_FILES = 3

Cut = Callable[[Sequence[File]], Sequence[Split]]


class FolderWatch:
    """What subtask 0 does in one epoch: looks for new files every so often, over epochs and restarts."""

    def __init__(
        self,
        location: Location,
        format_name: str,
        watch: WatchSettings,
        *,
        progress: Progress,
        window: Window,
        seen: SeenFiles,
        cut: Cut,
        ctx: SourceContext,
    ) -> None:
        """`cut` makes splits of files, whose numbers are those among the files it is given."""
        self._location = location
        self._format_name = format_name
        self._watch = watch
        self._progress = progress
        self._window = window
        self._seen = seen
        self._cut = cut
        self._ctx = ctx
        self._growth = Growth(location, window, seen, ctx)
        #: Files that are read to their end, and to be deleted or moved with this epoch.
        self.finished: list[FinishedFile] = []

    @property
    def interval_s(self) -> float:
        return self._watch.interval_us / 1e6

    def remember_first(self, files: Sequence[File]) -> None:
        """The files of the window are known, also those of a plan that was taken over; once, by who began it."""
        if self._progress.is_first:
            listed = {file.path: file for file in files}
            for number, watched in self._window.files.items():
                file = listed.get(watched.path, watched.file)
                self._seen.remember(file, number=number, now_us=self._ctx.clock.now_us())

    def look(self, *, is_first: bool = False) -> None:
        """Find out what is read and what is new, if it is time to; the next epoch reads it.

        With `is_first`, nothing was ever seen but what the window began with.
        """
        if not self._progress.is_first:
            return
        now_us = self._ctx.clock.now_us()
        looked_us = self._progress.looked_us()
        is_due = looked_us is None or now_us - looked_us >= self._watch.interval_us
        # An end that was added to a job counts from now on.
        is_due = is_due or (self._watch.until is not None and self._window.until_us is None)
        if not (is_due or self._window.has_room) or self._window.is_ended:
            return
        self._progress.set_looked_us(now_us)
        if self._location.is_local and not self._location.fs.isdir(fixed_folder(self._location.path)):
            # Files that are not there now are not gone: a disk may be away for some time.
            self._ctx.warn(f"there is no folder {self._location.url!r}: looking again", topic="no folder")
            return
        if self._watch.until is not None and self._window.until_us is None:
            self._window.set_until(now_us if isinstance(self._watch.until, str) else self._watch.until)
        found = self._seen.compare(self._list(), now_us)
        for former, file in found.renamed:
            self._window.rename(former.number, file)
        self._tell(found)
        new = [file for file in found.new if self._watch.is_before_end(file, self._window.until_us)]
        if is_first and self._watch.is_start_new:
            for file in new:
                if self._watch.grows:
                    self._growth.skip(file, now_us)
                else:
                    self._seen.remember(file, number=SKIPPED, now_us=now_us)
            new = []
        room = max(0, MAX_UNREAD - len(self._window.files))
        if self._watch.grows:
            self._growth.admit(new[:room], now_us)
        else:
            self._admit(new[:room], now_us)
        self._window.set_more(has_more=len(new) > room)
        early = self._seen.forget(now_us, is_unread=self._window.files.__contains__)
        if early and self._watch.lateness_us:
            self._ctx.warn(
                f"more than {self._watch.max_remembered_files} files within the lateness: older ones are forgotten "
                "before its end, and a file that appears that late is not read; raise max_remembered_files",
                topic="forgotten files",
            )
        until_us = self._window.until_us
        if until_us is not None and now_us >= until_us and len(new) <= room:
            self._window.end()

    def take_read(self) -> None:
        """Note which files all subtasks together had read to their ends when the epoch began; before any is read."""
        if self._progress.is_first:
            for watched, is_whole in self._window.take_read():
                if self._watch.after_commit and is_whole:
                    self._finish(FinishedFile.of(self._location, watched))

    def _finish(self, file: FinishedFile) -> None:
        problem = FinishedFiles(self._location, self._watch, self._format_name).problem(file)
        if problem is None:
            self.finished.append(file)
        else:
            # The path was another one when it was found.
            self._ctx.count("left_files")
            self._ctx.warn(f"a file that was read stays where it is: {problem}", topic="files of another path")

    def _admit(self, files: Sequence[File], now_us: int) -> None:
        if not files:
            return
        numbers = self._window.add(files, self._cut(files))
        for number, file in zip(numbers, files, strict=True):
            self._seen.remember(file, number=number, now_us=now_us)
        self._ctx.count("new_files", len(files))

    def _list(self) -> Sequence[File]:
        # A listing that a file system remembers would hide what is new.
        self._location.fs.invalidate_cache()
        # All files may be gone: that may be what is done with those that are read.
        files = list_files(self._location, self._format_name, may_be_empty=True)
        if compacted := replacing_files(self._location, files):
            raise DataError(
                f"{compacted[0].path!r} replaces files whose rows were read: a folder that `arroyo files compact` "
                "works on cannot be watched; read it without 'watch'"
            )
        self._watch.check_times(files)
        self._ctx.count("listings")
        return files

    def _tell(self, found: Comparison) -> None:
        ctx = self._ctx
        if found.renamed:
            ctx.count("renamed_files", len(found.renamed))
        if found.replaced:
            ctx.count("replaced_files", len(found.replaced))
            ctx.warn(
                "files were changed or replaced after they were found, and are not read again: "
                f"{shown(found.replaced)}; write each under a name of its own",
                topic="replaced files",
            )
        if found.late_count:
            ctx.count("late_files", found.late_count)
            which = f", {found.late.path}" if found.late else ""
            ctx.warn(
                f"{found.late_count} file(s) appeared too late, and are not read{which}: they come before files that "
                f"were forgotten, in order of {self._watch.order}; raise lateness",
                topic="late files",
            )


def shown(files: Sequence[File]) -> str:
    """Some of the names."""
    more = f" and {len(files) - SHOWN_FILES} more" if len(files) > SHOWN_FILES else ""
    return ", ".join(file.path for file in files[:SHOWN_FILES]) + more


def unplanned(plan: SplitPlan, files: Sequence[File]) -> list[File]:
    """The files that the plan does not have, by their paths."""
    planned = {file.path for file in plan.files}
    return [file for file in files if file.path not in planned]


def warn_of_unread(plan: SplitPlan, files: Sequence[File], ctx: SourceContext) -> None:
    """Say which of the files that are there now are not read, where nobody watches the folder."""
    found = unplanned(plan, files)
    if not found or ctx.task_info.task_index != 0:
        return
    ctx.warn(
        f"files appeared after the job began, and are not read: {shown(found)}; "
        "set 'watch', such as watch: 10s, to read new files",
        topic="unread files",
    )
