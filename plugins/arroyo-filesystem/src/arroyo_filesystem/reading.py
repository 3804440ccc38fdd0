"""Reading parts of files, batch after batch, until an epoch ends."""

from __future__ import annotations

from collections.abc import Callable

from arroyo_formats import FileReader

from arroyo_core.api import SourceCollector, SourceContext, SourceFinishType
from arroyo_core.errors import DataError, ExternalError
from arroyo_filesystem.dead_letters import BadLines
from arroyo_filesystem.folder_values import fill_folder_columns, folder_scalars, folder_values
from arroyo_filesystem.grown_files import inode_of
from arroyo_filesystem.listing import File, file_of_info
from arroyo_filesystem.progress import FINISHED
from arroyo_filesystem.skipping import Skipping
from arroyo_filesystem.source_settings import SourceSettings


class MissingFileError(DataError):
    """A file that is to be read is gone."""


class Reading:
    """Reads for one subtask in one epoch."""

    def __init__(
        self,
        settings: SourceSettings,
        reader: FileReader,
        ctx: SourceContext,
        collector: SourceCollector,
        bad_lines: BadLines,
        skipping: Skipping,
    ) -> None:
        self._settings = settings
        self._reader = reader
        self._ctx = ctx
        self._collector = collector
        self._bad_lines = bad_lines
        self._skipping = skipping

    def read(
        self,
        file: File,
        part: tuple[int, int],
        begun: int,
        save: Callable[[int], None],
        *,
        inode: str = "",
        grows: bool = False,
    ) -> SourceFinishType | None:
        """Read a part of a file from a position on, and save how far; how the epoch ends, where it does meanwhile.

        A file that the predicate does not want is passed by, and not looked at.
        Raises `MissingFileError` before the first row if the file is gone, and `DataError` if it has changed. One that
        `grows` has an `inode` where the storage tells it, and at least its part.
        """
        ctx, settings, chosen = self._ctx, self._settings, self._settings.format
        message = ctx.control()
        if message is not None:
            return message.finish_type
        if not self._skipping.is_needed(file.path):
            if part[0] == begun == 0:
                self._skipping.count_file()
            save(FINISHED)
            return None
        if grows:
            self._check_grown(file, part, inode)
        else:
            self._check_unchanged(file)
        values = folder_values(file.path, settings.location.path)
        scalars = folder_scalars(ctx.output_schema.schema, values, path=file.path)
        self._reader.leave_out(self._skipping.pieces(file.path))
        for batch, position in self._bad_lines.before_damage(self._reader.read(file.path, part, begun)):
            if batch is not None:
                rows = chosen.files.complete(chosen.settings, fill_folder_columns(batch, scalars))
                self._collector.collect(rows)
            message = ctx.control()
            if message is not None:
                self._check_again(file, part, inode, grows=grows)
                save(position)
                return message.finish_type
        self._check_again(file, part, inode, grows=grows)
        save(FINISHED)
        return None

    @property
    def damages(self) -> int:
        """How many parts were not read to their end, because their files are damaged."""
        return self._bad_lines.damages

    def _check_again(self, file: File, part: tuple[int, int], inode: str, *, grows: bool) -> None:
        """Its name may have become that of another file while it was read: then the epoch must not count."""
        try:
            if grows:
                self._check_grown(file, part, inode)
        except MissingFileError as error:
            raise ExternalError(
                f"{error}; it was renamed while it was read: going on from the last checkpoint"
            ) from None

    def _check_grown(self, file: File, part: tuple[int, int], inode: str) -> None:
        try:
            now = file_of_info(self._settings.location.fs.info(file.path))
        except FileNotFoundError:
            raise MissingFileError(f"{file.path}: the file is gone before all its lines were read") from None
        if inode and inode_of(now.identity) != inode:
            raise MissingFileError(f"{file.path}: another file has the name, before all lines of the one were read")
        if now.size < part[1]:
            raise DataError(
                f"{file.path}: the file was truncated before all its lines were read (it had {part[1]} bytes, now "
                f"{now.size}): what was there is lost"
            )

    def _check_unchanged(self, file: File) -> None:
        """A file that is another one than when it was listed would be read partly twice, or partly not at all."""
        try:
            now = file_of_info(self._settings.location.fs.info(file.path))
        except FileNotFoundError:
            raise MissingFileError(f"{file.path}: the file was there when the job began, and is gone") from None
        if file.is_changed(now):
            raise DataError(
                f"{file.path}: the file changed after the job began (it had {file.size} bytes, now {now.size}; "
                f"{file.version or 'no version'}, now {now.version or 'none'})"
            )
