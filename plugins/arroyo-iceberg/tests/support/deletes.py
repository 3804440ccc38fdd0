"""Snapshots that pyiceberg does not make, as other engines do: with delete files, and of files that are only joined."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestWriter,
    ManifestWriterV2,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update.snapshot import _FastAppendFiles, _OverwriteFiles
from pyiceberg.typedef import EMPTY_DICT, Record


def add_position_deletes(table: Table, places: Sequence[int]) -> None:
    """Delete rows of the first data file, by their numbers; the file stays. Nothing in a table without files."""
    paths = sorted(task.file.file_path for task in table.scan().plan_files())
    if paths:
        rows = pa.table({"file_path": [paths[0]] * len(places), "pos": pa.array(places, pa.int64())})
        _add(table, rows, DataFileContent.POSITION_DELETES)


def add_equality_deletes(table: Table) -> None:
    """Delete the rows whose first column is 0."""
    first = table.schema().fields[0]
    rows = pa.table({first.name: pa.array([0], pa.int64())})
    _add(table, rows, DataFileContent.EQUALITY_DELETES, equality_ids=[first.field_id])


def join_files(table: Table) -> None:
    """All files as one, as compaction does."""
    rows, files = table.scan().to_arrow(), [task.file for task in table.scan().plan_files()]
    with table.transaction() as transaction:
        replace = _JoinFiles(Operation.OVERWRITE, transaction, table.io)
        for file in files:
            replace.delete_data_file(file)
        for made in _dataframe_to_data_files(table.metadata, rows, table.io):
            replace.append_data_file(made)
        replace.commit()


def _add(table: Table, rows: pa.Table, content: DataFileContent, **fields: Any) -> None:
    path = f"{table.location()}/data/deletes-{uuid.uuid4().hex}.parquet"
    with table.io.new_output(path).create() as stream:
        pq.write_table(rows, stream)
    made = DataFile.from_args(
        content=content,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=rows.num_rows,
        file_size_in_bytes=len(table.io.new_input(path)),
        **fields,
    )
    made.spec_id = table.metadata.default_spec_id
    with table.transaction() as transaction:
        _AddDeletes(Operation.DELETE, transaction, table.io).append_data_file(made).commit()


class _JoinFiles(_OverwriteFiles):
    """pyiceberg makes no summaries of replacements."""

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        return super()._summary(snapshot_properties).model_copy(update={"operation": Operation.REPLACE})


class _AddDeletes(_FastAppendFiles):
    def new_manifest_writer(self, spec: PartitionSpec) -> ManifestWriter:
        return _DeleteManifestWriter(
            spec, self.schema(), self.new_manifest_output(), self._snapshot_id, self._compression
        )


class _DeleteManifestWriter(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}
