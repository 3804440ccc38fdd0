"""What a source need not read, for the `predicate` of its config: folders, and pieces of files."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from arroyo_formats.conditions import ANYTHING, Bounds, Condition, Pieces, columns_of, exactly, may_hold

from arroyo_core.api import SourceContext
from arroyo_core.errors import DataError
from arroyo_filesystem.folder_values import folder_scalars, folder_values
from arroyo_filesystem.source_settings import SourceSettings

FILES, ROW_GROUPS = "skipped_files", "skipped_row_groups"


class Skipping:
    """Decides for one subtask in one epoch. Without a predicate everything is needed."""

    def __init__(self, settings: SourceSettings, schema: pa.Schema, ctx: SourceContext) -> None:
        """`schema` has the rows, perhaps without columns that nobody needs."""
        self._root = settings.location.path
        self._condition = settings.predicate
        self._ctx = ctx
        wanted = [] if settings.predicate is None else columns_of(settings.predicate)
        known = {field.name: field.type for field in settings.schema or ()} | {
            field.name: field.type for field in schema
        }
        self._types: Mapping[str, pa.DataType] = {name: known[name] for name in wanted if name in known}

    def is_needed(self, path: str) -> bool:
        """Whether a file may have a wanted row, as its folders say; it is not opened."""
        if self._condition is None:
            return True
        fixed = self._fixed(path, self._condition)
        return may_hold(self._condition, lambda name: fixed.get(name, ANYTHING))

    def count_file(self) -> None:
        self._ctx.count(FILES)

    def pieces(self, path: str) -> Pieces | None:
        """What a reader of a file is told."""
        condition = self._condition
        if condition is None:
            return None
        return Pieces(condition, self._fixed(path, condition), self._types, lambda: self._ctx.count(ROW_GROUPS))

    def _fixed(self, path: str, condition: Condition) -> dict[str, Bounds]:
        """The columns of a file that its folders have."""
        values = folder_values(path, self._root)
        named = [name for name in columns_of(condition) if name in values]
        # What no schema says is text: see `with_folder_columns`.
        schema = pa.schema([pa.field(name, self._types.get(name, pa.string())) for name in named])
        try:
            scalars = folder_scalars(schema, values, path=path)
        except DataError:
            # Whoever reads the file says so.
            return dict.fromkeys(named, ANYTHING)
        return {name: exactly(scalars[index]) for index, name in enumerate(named)}
