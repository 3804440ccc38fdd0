"""What becomes of bad lines: an error, a count, or a line in a file that is committed with the epoch."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version

import msgspec
import pyarrow as pa
from arroyo_formats import BadData, BadRow, DamagedFileError
from arroyo_formats.bad_data import COUNTER, as_text, shown

from arroyo_core.api import SourceContext, dead_letters
from arroyo_core.errors import DataError, naming_path
from arroyo_filesystem.file_names import FileNames
from arroyo_filesystem.source_settings import SourceSettings
from arroyo_filesystem.staging import StagedStream, Staging, encode_files


class BadLines:
    """Applies the policy of a source to its bad lines, for one subtask and one epoch."""

    def __init__(self, settings: SourceSettings, ctx: SourceContext) -> None:
        self._settings = settings
        self._ctx = ctx
        self._stream: StagedStream | None = None
        self._rows = 0
        #: How many parts of files were not read to their end.
        self.damages = 0

    def add(self, bad: BadRow) -> None:
        """Take one bad line; raises `DataError` where the policy is to fail."""
        if self._settings.bad_data is BadData.FAIL:
            raise DataError(f"{bad.place}: {bad.error}: {shown(bad.text)}")
        self._ctx.count(COUNTER)
        self._rows += 1
        if self._settings.bad_data is BadData.DEAD_LETTER:
            self._write(bad)
        elif self._rows == 1:
            # One example an epoch; the counter tells how many.
            self._ctx.warn(f"dropped a bad line: {bad.place}: {bad.error}: {shown(bad.text)}")

    def before_damage(
        self, batches: Iterator[tuple[pa.RecordBatch | None, int]]
    ) -> Iterator[tuple[pa.RecordBatch | None, int]]:
        """The batches of a part of a file; where it is damaged, those before, and the rest is taken for bad.

        Raises `DamagedFileError` where the policy is to fail.
        """
        try:
            yield from batches
        except DamagedFileError as error:
            if self._settings.bad_data is BadData.FAIL:
                raise
            self.damages += 1
            self._ctx.count(COUNTER)
            if self._settings.bad_data is BadData.DEAD_LETTER:
                self._rows += 1
                self._write(BadRow(error.path, error.line, b"", f"the file is damaged: {error.reason}"))
            else:
                # Each of them: there is more behind it than a line.
                self._ctx.warn(f"did not read the rest of a file: {error}")

    def close(self) -> bytes | None:
        """The commit data of this epoch; None where the policy has none."""
        if self._settings.dead_letter is None:
            return None
        files = [self._stream.close(self._rows)] if self._stream else []
        self._stream = None
        return encode_files(files)

    def abort(self) -> None:
        """Give up what was staged."""
        if self._stream is not None:
            self._stream.abort()

    def _write(self, bad: BadRow) -> None:
        if self._stream is None:
            if self._settings.dead_letter is None:
                raise AssertionError("a policy of dead letters has a folder")
            ctx = self._ctx
            state_id = ctx.table_manager.state_id
            staging = Staging(self._settings.dead_letter, ctx.task_info, ctx.epoch, ctx.clock, state_id=state_id)
            self._stream = staging.begin(FileNames(prefix="bad"), extension="jsonl")
        record = {
            "file": bad.file,
            **({} if bad.line is None else {"line": bad.line}),
            "error": bad.error,
            "text": as_text(bad.text),
            **self._provenance(),
        }
        with naming_path(self._stream.path):
            self._stream.stream.write(msgspec.json.encode(record) + b"\n")
        self._ctx.count(dead_letters.COUNTER)

    def _provenance(self) -> dict[str, object]:
        """Where the line was read, in the words of `arroyo_core.api.dead_letters`."""
        task = self._ctx.task_info
        return {
            "pipeline": task.job_id,
            "node": task.operator_id,
            "operator": task.operator_name,
            "plugin": _plugin(),
            "incarnation": self._ctx.token.incarnation,
            "epoch": self._ctx.epoch,
            "subtask": task.task_index,
            "time": datetime.fromtimestamp(self._ctx.clock.now_us() / 1e6, UTC),
        }


@cache
def _plugin() -> str:
    return f"arroyo-filesystem {version('arroyo-filesystem')}"
