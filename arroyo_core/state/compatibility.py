"""Whether a table, as an operator declares it now, can take over what a checkpoint holds; pure."""

from __future__ import annotations

from collections.abc import Iterable

from arroyo_core.proto.state_pb2 import StateFile, TableConfig, TableType
from arroyo_core.state.config import decode_expiring_config, decode_schema, is_partitioned
from arroyo_core.state.late_columns import has_columns


def derive_mismatch(written: TableConfig, declared: TableConfig) -> str | None:
    """What of a table's kind or columns changed, as the end of a sentence about the table; None if nothing did.

    Retention and descriptions may change freely. Columns that are not known yet are compared later. A global
    table may become partitioned.
    """
    if declared.table_type != written.table_type:
        return f"is {TableType.Name(written.table_type)} in the checkpoint, and declared as {_kind(declared)}"
    if is_partitioned(written) and not is_partitioned(declared):
        # The other way is open: what all subtasks saw can be dealt out, and was written by one of them each.
        return "is partitioned in the checkpoint, and declared without is_partitioned=True"
    if declared.table_type != TableType.EXPIRING_KEYED_TIME_TABLE or not has_columns(declared):
        return None
    before, now = decode_expiring_config(written), decode_expiring_config(declared)
    old, new = decode_schema(before.schema), decode_schema(now.schema)
    facts = [
        ("columns", [f"{f.name} {f.type}" for f in old.schema], [f"{f.name} {f.type}" for f in new.schema]),
        ("key columns", old.key_columns, new.key_columns),
        ("event-time column", old.timestamp_column, new.timestamp_column),
        ("generational", before.generational, now.generational),
    ]
    for what, found, wanted in facts:
        if found != wanted:
            return f"has {what} {found} in the checkpoint, and is declared with {wanted}"
    return None


def derive_version_mismatch(files: Iterable[StateFile], declared: TableConfig) -> str | None:
    """As `derive_mismatch`, for values of a version that the code does not know yet."""
    written = max((file.state_version for file in files), default=0)
    if written <= declared.state_version:
        return None
    return f"holds state of version {written}, and this code reads up to version {declared.state_version}"


def _kind(config: TableConfig) -> str:
    return TableType.Name(config.table_type)
