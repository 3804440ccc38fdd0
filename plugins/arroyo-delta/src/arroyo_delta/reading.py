"""The rows of one file of a table, from any row on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from arroyo_formats import WHOLE_FILE, DamagedFileError, FileReader, find_format

from arroyo_core.api import with_defaults
from arroyo_core.api.updating import make_updates, row_ids
from arroyo_core.errors import DataError, ExternalError
from arroyo_delta.location import Files, describe, is_of_store
from arroyo_delta.log import Part, Unit
from arroyo_delta.partitions import text_value

#: The column of files of changes that says what a row is.
CHANGE_TYPE = "_change_type"
#: No file has it.
NO_COLUMN = "__arroyo_no_column"
_CHANGE_TYPES = {
    Part.BEFORE: pa.array(["delete", "update_preimage"]),
    Part.AFTER: pa.array(["insert", "update_postimage"]),
}


class UnitReader:
    """Reads files in the columns of `schema`: cast where no value is harmed, null where a file has none."""

    def __init__(
        self,
        files: Files,
        schema: pa.Schema,
        partition_by: Sequence[str],
        *,
        batch_rows: int,
        keys: Sequence[str] | None,
    ) -> None:
        """`keys` make the ids of rows in a stream of changes; None where it is none."""
        self._files = files
        self._schema = schema
        self._partition_by = frozenset(partition_by)
        self._batch_rows = batch_rows
        self._keys = keys

    def read(self, unit: Unit, begin: int) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Batches from a row of the file on, each with the number of the row behind it; raises `DataError`."""
        kinds = _CHANGE_TYPES.get(unit.part)
        try:
            for batch, end in self._reader(unit).read(self._files.path(unit.path), WHOLE_FILE, begin):
                if batch is None:
                    continue
                rows = self._complete(unit, batch)
                yield rows if kinds is None else rows.filter(pc.is_in(batch.column(CHANGE_TYPE), value_set=kinds)), end
        except FileNotFoundError:
            raise self._gone(unit) from None
        except DamagedFileError as error:
            # A store says only when it is read that there is no such file, or that it is away.
            if not self._files.exists(unit.path):
                raise self._gone(unit) from error
            if is_of_store(error):
                raise ExternalError(f"cannot read {unit.path}: {describe(error)}") from error
            raise DataError(str(error)) from error

    def _gone(self, unit: Unit) -> DataError:
        return DataError(
            f"{unit.path}: the file is gone, and it was not read yet: vacuum has removed what versions before the "
            "latest have. Keep it for longer than the job is behind"
        )

    def _reader(self, unit: Unit) -> FileReader:
        """Of Parquet files of others, with the limits that these have."""
        fields = [field for field in self._schema if field.name not in self._partition_by]
        if unit.part in _CHANGE_TYPES:
            fields.append(pa.field(CHANGE_TYPE, pa.string()))
        if not fields:
            # Of which no column is wanted, a file has rows all the same.
            fields.append(pa.field(NO_COLUMN, pa.null()))
        parquet = find_format("parquet")
        assert parquet.files is not None
        return parquet.files.reader(
            with_defaults(parquet.settings_type()),
            self._files.fsspec(),
            schema=pa.schema(fields),
            declared=None,
            batch_rows=self._batch_rows,
            on_bad=_never,
        )

    def _complete(self, unit: Unit, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = []
        for field in self._schema:
            if field.name in self._partition_by:
                if field.name not in unit.partition:
                    raise DataError(f"{unit.path}: the log has no value of the partition column {field.name!r} for it")
                value = text_value(unit.partition[field.name], field.type)
                columns.append(pa.repeat(value, batch.num_rows))
            else:
                columns.append(batch.column(field.name))
        rows = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        if self._keys is None:
            return rows
        return make_updates(rows, is_retract=unit.part.is_retract, ids=row_ids(rows, self._keys))


def _never(*_: object) -> None:
    raise AssertionError("files of Parquet have no lines")
