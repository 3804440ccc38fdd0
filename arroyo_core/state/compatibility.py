"""Whether a table, as an operator declares it now, can take over what a checkpoint holds; pure."""

from __future__ import annotations

from collections.abc import Iterable

from arroyo_core.proto.state_pb2 import StateFile, TableConfig
from arroyo_core.state.table_types import table_class, type_name


def derive_mismatch(written: TableConfig, declared: TableConfig) -> str | None:
    """What of a table's kind or columns changed, as the end of a sentence about the table; None if nothing did."""
    if declared.table_type != written.table_type:
        return f"is {type_name(written.table_type)} in the checkpoint, and declared as {type_name(declared.table_type)}"
    return table_class(declared.table_type).derive_mismatch(written, declared)


def derive_version_mismatch(files: Iterable[StateFile], declared: TableConfig) -> str | None:
    """As `derive_mismatch`, for values of a version that the code does not know yet."""
    written = max((file.state_version for file in files), default=0)
    if written <= declared.state_version:
        return None
    return f"holds state of version {written}, and this code reads up to version {declared.state_version}"
