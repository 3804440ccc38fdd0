"""Columns that are in the names of folders: `country=NL/day=2026-01-01/part-1.parquet`.

Only folders below the path of the source count: who names one of them as the path has chosen it.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote

import pyarrow as pa
from arroyo_formats.text.timestamps import to_timestamp

from arroyo_core.errors import DataError
from arroyo_filesystem.listing import fixed_folder
from arroyo_filesystem.partitions import NULL_FOLDER

FolderValues = Mapping[str, str | None]


def folder_values(path: str, root: str) -> FolderValues:
    """The columns and values of the folders between the source's path and a file."""
    if path == root:
        return {}
    folders = path.removeprefix(fixed_folder(root)).split("/")[:-1]
    pairs = (folder.partition("=") for folder in folders)
    return {
        unquote(name): None if value == NULL_FOLDER else unquote(value)
        for name, is_pair, value in pairs
        if name and is_pair
    }


def with_folder_columns(schema: pa.Schema, values: FolderValues) -> pa.Schema:
    """The schema of a file, and after it the columns of its folders, as strings."""
    added = [pa.field(name, pa.string()) for name in values if name not in schema.names]
    return pa.schema([*schema, *added])


def folder_scalars(schema: pa.Schema, values: FolderValues, *, path: str) -> dict[int, pa.Scalar]:
    """The value of each column of the schema that the folders have, by its index; raises `DataError`."""
    scalars = {}
    for index, field in enumerate(schema):
        if field.name not in values:
            continue
        text = pa.array([values[field.name]], pa.string())
        try:
            typed = to_timestamp(text, field.type) if pa.types.is_timestamp(field.type) else text.cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise DataError(
                f"{path}: the folder of column {field.name!r} does not fit {field.type}: {error}"
            ) from error
        scalars[index] = typed[0]
    return scalars


def fill_folder_columns(batch: pa.RecordBatch, scalars: Mapping[int, pa.Scalar]) -> pa.RecordBatch:
    """The batch with the values of its folders."""
    for index, scalar in scalars.items():
        batch = batch.set_column(index, batch.schema.field(index), pa.repeat(scalar, batch.num_rows))
    return batch
