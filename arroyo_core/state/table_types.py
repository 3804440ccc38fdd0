"""The types of tables, by their number in configs and metadata; and what is asked of a table of any type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from arroyo_core.errors import StateError
from arroyo_core.plugin import installed_plugins
from arroyo_core.proto.state_pb2 import StateFile, TableConfig
from arroyo_core.state.expiring_time_key_map import ExpiringTimeKeyTable
from arroyo_core.state.global_keyed_map import GlobalKeyedTable
from arroyo_core.state.table import Table

#: Numbers below are for the core.
FIRST_OF_PLUGINS = 1000

_TYPES: dict[int, type[Table[Any]]] = {table.table_type: table for table in (GlobalKeyedTable, ExpiringTimeKeyTable)}


def add_table_type(table: type[Table[Any]]) -> None:
    """Let tables of another type be declared in this process; plugins give theirs through the hook `arroyo_table_type`.

    The same class may be added twice. Raises `StateError` for a number that is taken, or is not for plugins.
    """
    known = _TYPES.get(table.table_type)
    if known is table:
        return
    if known is not None:
        raise StateError(
            f"table type {table.table_type} of {_path(table)} is taken by {_path(known)}: give another number"
        )
    if table.table_type < FIRST_OF_PLUGINS:
        raise StateError(f"table type {table.table_type} of {_path(table)} must be {FIRST_OF_PLUGINS} or more")
    _TYPES[table.table_type] = table


def table_class(table_type: int) -> type[Table[Any]]:
    """The class for tables of a type; raises `StateError` for one that nobody has added."""
    found = _known(table_type)
    if found is None:
        raise StateError(f"there is no table type {table_type} here: install the plugin that has it")
    return found


def type_name(table_type: int) -> str:
    """A type as people read it, also where nobody has added it."""
    found = _known(table_type)
    return found.type_name if found is not None else f"TABLE_TYPE_{table_type}"


def uses_two_phase_commit(config: TableConfig) -> bool:
    """Whether the table carries commit data."""
    return table_class(config.table_type).uses_two_phase_commit(config)


def derive_mismatch(written: TableConfig, declared: TableConfig) -> str | None:
    """What of a table's kind or columns changed since a checkpoint, as the end of a sentence about it; else None."""
    if declared.table_type != written.table_type:
        return f"is {type_name(written.table_type)} in the checkpoint, and declared as {type_name(declared.table_type)}"
    return table_class(declared.table_type).derive_mismatch(written, declared)


def describe_changes(written: TableConfig, declared: TableConfig) -> tuple[str, ...]:
    """What becomes of rows of a checkpoint in a table that can take them over, as clauses."""
    return table_class(declared.table_type).describe_changes(written, declared)


def derive_version_mismatch(files: Iterable[StateFile], declared: TableConfig) -> str | None:
    """As `derive_mismatch`, for values of a version that the code does not know yet."""
    written = max((file.state_version for file in files), default=0)
    if written <= declared.state_version:
        return None
    return f"holds state of version {written}, and this code reads up to version {declared.state_version}"


def _known(table_type: int) -> type[Table[Any]] | None:
    if table_type not in _TYPES and table_type >= FIRST_OF_PLUGINS:
        for table, _ in installed_plugins().hooks.collect("arroyo_table_type", type):
            add_table_type(table)
    return _TYPES.get(table_type)


def _path(table: type[Table[Any]]) -> str:
    return f"{table.__module__}.{table.__qualname__}"
