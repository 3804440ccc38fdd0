"""Files that appear after a job has begun: looked for by subtask 0, read by all from the next epoch on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from arroyo_core.api import SourceContext
from arroyo_core.errors import ConfigError
from arroyo_filesystem.listing import File, list_files
from arroyo_filesystem.location import Location
from arroyo_filesystem.progress import Progress
from arroyo_filesystem.splits import Split, SplitPlan

#: How many names a warning has.
SHOWN_FILES = 3

Cut = Callable[[Sequence[File]], Sequence[Split]]


class FolderWatch:
    """Looks for new files every so often, over epochs and restarts."""

    def __init__(self, location: Location, format_name: str, *, interval_us: int, cut: Cut) -> None:
        """`cut` makes splits of files, whose numbers are those among the files it is given."""
        self._location = location
        self._format_name = format_name
        self._interval_us = interval_us
        self._cut = cut

    @property
    def interval_s(self) -> float:
        return self._interval_us / 1e6

    def look(self, progress: Progress, plan: SplitPlan, ctx: SourceContext) -> SplitPlan:
        """The plan with the files that are new, if it is time to look; it is stored, for the next epoch."""
        now_us = ctx.clock.now_us()
        looked_us = progress.looked_us()
        if ctx.task_info.task_index != 0 or (looked_us is not None and now_us - looked_us < self._interval_us):
            return plan
        progress.set_looked_us(now_us)
        found = unplanned(plan, self._list())
        if not found:
            return plan
        extended = extend(plan, found, self._cut(found))
        progress.extend_plan(extended)
        ctx.count("new_files", len(found))
        return extended

    def _list(self) -> Sequence[File]:
        # A listing that a file system remembers would hide what is new.
        self._location.fs.invalidate_cache()
        try:
            return list_files(self._location, self._format_name)
        except ConfigError:
            # All files are gone, which may be what is done with those that are read.
            return ()


def extend(plan: SplitPlan, files: Sequence[File], splits: Sequence[Split]) -> SplitPlan:
    """The plan with more files; what was planned before keeps its numbers."""
    first = len(plan.files)
    moved = [Split(first + split.file, split.start, split.stop) for split in splits]
    return msgspec.structs.replace(plan, files=(*plan.files, *files), splits=(*plan.splits, *moved))


def unplanned(plan: SplitPlan, files: Sequence[File]) -> list[File]:
    """The files that the plan does not have, by their paths."""
    planned = {file.path for file in plan.files}
    return [file for file in files if file.path not in planned]


def warn_of_unread(plan: SplitPlan, files: Sequence[File], ctx: SourceContext) -> None:
    """Say which of the files that are there now are not read, where nobody watches the folder."""
    found = unplanned(plan, files)
    if not found or ctx.task_info.task_index != 0:
        return
    shown = ", ".join(file.path for file in found[:SHOWN_FILES])
    more = f" and {len(found) - SHOWN_FILES} more" if len(found) > SHOWN_FILES else ""
    ctx.warn(
        f"files appeared after the job began, and are not read: {shown}{more}; "
        "set 'watch', such as watch: 10s, to read new files",
        topic="unread files",
    )
