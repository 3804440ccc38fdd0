"""One epoch of a source that watches its folder: what it has found is read, and it looks for more."""

from __future__ import annotations

from functools import partial

from arroyo_core.api import SourceCollector, SourceContext, SourceFinishType, Watermark
from arroyo_filesystem.finished_files import FINISHED_TABLE, encode_finished
from arroyo_filesystem.new_files import Cut, FolderWatch
from arroyo_filesystem.progress import Progress
from arroyo_filesystem.reading import MissingFileError, Reading
from arroyo_filesystem.seen_files import SeenFiles
from arroyo_filesystem.source_settings import SourceSettings
from arroyo_filesystem.watch_settings import WatchSettings
from arroyo_filesystem.window import Window

#: For how many looks a file that was found may be missing: a look may find it under another name.
MISSED_LOOKS = 3


class Watching:
    """What one subtask does."""

    def __init__(
        self,
        settings: SourceSettings,
        watch: WatchSettings,
        progress: Progress,
        ctx: SourceContext,
        *,
        cut: Cut,
        is_ordered: bool,
    ) -> None:
        """With `is_ordered`, files are read one after the other and none is passed by."""
        location, name = settings.location, settings.format.name
        self._settings = settings
        self._watch = watch
        self._progress = progress
        self._ctx = ctx
        self._cut = cut
        self._is_ordered = is_ordered
        # A plan is looked for first: it holds what `Window` would begin.
        plan = progress.stored_plan(url=location.url, kind=name)
        self._window = Window(progress, format_name=name, login=location.login)
        seen = SeenFiles(ctx.table_manager, watch, location.login)
        self._folder = FolderWatch(
            location, name, watch, progress=progress, window=self._window, seen=seen, cut=cut, ctx=ctx
        )
        self._is_new = not self._window.is_begun
        if plan is not None:
            self._window.take_over(plan, progress.plan_fingerprint(plan))
            self._folder.remember_first(settings.files)
            self._is_new = False
        elif self._is_new:
            self._begin()

    def run(self, reading: Reading, collector: SourceCollector) -> SourceFinishType:
        # What earlier epochs have read, and no row of this one: their commits come before this one's.
        self._folder.take_read()
        finish = self._read_known(reading, collector)
        self._window.report()
        if self._watch.after_commit:
            self._ctx.table_manager.insert_committing_data(FINISHED_TABLE, encode_finished(self._folder.finished))
        return finish

    def _begin(self) -> None:
        settings = self._settings
        # Where lines end in files that grow, the first look finds out.
        first = () if self._watch.is_start_new or self._watch.grows else settings.files
        self._window.begin(first, self._cut(first))
        self._folder.remember_first(settings.files)

    def _read_known(self, reading: Reading, collector: SourceCollector) -> SourceFinishType:
        ctx, window = self._ctx, self._window
        known = list(self._progress.open_numbers(window.count))
        self._folder.look(is_first=self._is_new)
        for number, begun in known:
            finish = self._read(reading, number, begun)
            if finish is not None:
                return finish
        if self._is_finished(known):
            return SourceFinishType.FINAL
        # Nobody shall wait for the event time of rows that may never come.
        collector.broadcast_watermark(Watermark.idle())
        while (message := ctx.wait(self._folder.interval_s)) is None:
            self._folder.look()
            if self._is_finished(known):
                return SourceFinishType.FINAL
        return message.finish_type

    def _read(self, reading: Reading, number: int, begun: int) -> SourceFinishType | None:
        found = self._window.find(number)
        if found is None:
            return None
        watched, part = found
        damages = reading.damages
        try:
            finish = reading.read(
                watched.file,
                part,
                begun,
                partial(self._progress.save, number),
                inode=watched.inode,
                grows=self._watch.grows,
            )
        except MissingFileError:
            return self._miss(watched.path, number)
        if reading.damages != damages:
            self._window.note_damage(number)
        self._progress.forget_missed(number)
        return finish

    def _miss(self, path: str, number: int) -> SourceFinishType | None:
        """Wait for the look that finds the file under another name; raises `MissingFileError` where none has."""
        ctx, now_us = self._ctx, self._ctx.clock.now_us()
        since_us = self._progress.missed_us(number)
        if since_us is None:
            since_us = now_us
            self._progress.set_missed(number, now_us)
        if now_us - since_us > MISSED_LOOKS * self._watch.interval_us:
            raise MissingFileError(f"{path}: the file was found, and was gone before it could be read")
        ctx.count("missing_files")
        ctx.warn(f"{path}: the file is gone and not read; looking for it under another name", topic="missing files")
        if not self._is_ordered:
            return None
        while (message := ctx.wait(self._folder.interval_s)) is None:
            self._folder.look()
        return message.finish_type

    def _is_finished(self, known: list[tuple[int, int]]) -> bool:
        """Whether all is read, in an epoch that began with the knowledge that nothing will come."""
        if not self._window.is_ended or any(True for _ in self._progress.open_numbers(self._window.count)):
            return False
        # What is read is to be deleted or moved by an epoch that comes after.
        return not (self._watch.after_commit and self._progress.is_first and self._window.files)
