"""How operators declare their tables."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import pyarrow as pa

from arroyo_core.api.schema import ArroyoSchema
from arroyo_core.errors import ConfigError
from arroyo_core.proto.state_pb2 import (
    ExpiringKeyedTimeTableConfig,
    GlobalKeyedTableConfig,
    StateSchema,
    TableConfig,
    TableType,
)
from arroyo_core.state.column_rules import ColumnRules
from arroyo_core.state.envelope import decode_message
from arroyo_core.state.failures import DamagedStateError


def global_table_config(
    name: str, description: str, *, uses_two_phase_commit: bool = False, is_partitioned: bool = False
) -> dict[str, TableConfig]:
    """Declare a global keyed table: `{name: config}`, to be returned from `tables(inputs)`.

    Every subtask reads all of it in every epoch. With `is_partitioned` each key belongs to one subtask, which alone
    reads and writes it: see `TableManager.get_partitioned_keyed_state`.
    """
    return global_table_config_with_version(
        name, description, 0, uses_two_phase_commit=uses_two_phase_commit, is_partitioned=is_partitioned
    )


def global_table_config_with_version(
    name: str, description: str, version: int, *, uses_two_phase_commit: bool = False, is_partitioned: bool = False
) -> dict[str, TableConfig]:
    """As `global_table_config`, for values whose type has a version; see `MigratableState`."""
    config = GlobalKeyedTableConfig(
        table_name=_check_name(name),
        description=description,
        uses_two_phase_commit=uses_two_phase_commit,
        partitioned=is_partitioned,
    )
    return {
        name: TableConfig(
            table_type=TableType.GLOBAL_KEY_VALUE, config=config.SerializeToString(), state_version=version
        )
    }


def timestamp_table_config(
    name: str,
    description: str,
    retention: timedelta,
    generational: bool,
    schema: ArroyoSchema | None,
    *,
    column_rules: ColumnRules | None = None,
) -> TableConfig:
    """The config of an expiring table of rows of `schema`; the operator puts it under `name` in `tables(inputs)`.

    With `column_rules` columns may come and go between two starts of a pipeline; without, a checkpoint with other
    columns is refused. None for the schema is deprecated: it is for operators that give the columns with `define_table`
    in `on_start`.
    """
    if retention < timedelta(0):
        raise ConfigError(f"table {name!r}: retention must not be negative", value=retention)
    config = ExpiringKeyedTimeTableConfig(
        table_name=_check_name(name),
        description=description,
        retention_us=retention // timedelta(microseconds=1),
        generational=generational,
        schema=None if schema is None else check_schema(name, schema),
        column_rules=None if column_rules is None else column_rules.encode(),
    )
    # Equal configs have equal bytes.
    return TableConfig(
        table_type=TableType.EXPIRING_KEYED_TIME_TABLE, config=config.SerializeToString(deterministic=True)
    )


#: Columns of data files beside the user's: the key hash, what the row does, until when, and which of two rows is newer.
KEY_HASH_COLUMN = "_key_hash"
OPERATION_COLUMN = "_operation"
UNTIL_COLUMN = "_until_us"
GENERATION_COLUMN = "_generation"
RESERVED_COLUMNS = frozenset({KEY_HASH_COLUMN, OPERATION_COLUMN, UNTIL_COLUMN, GENERATION_COLUMN})


def check_schema(name: str, schema: ArroyoSchema) -> StateSchema:
    """The columns of a table as its config holds them; raises `ConfigError` for names that files need themselves."""
    reserved = sorted(set(schema.names) & RESERVED_COLUMNS)
    if reserved:
        raise ConfigError(f"table {name!r}: columns {', '.join(reserved)} are added by state files", value=reserved)
    return encode_schema(schema)


def encode_schema(schema: ArroyoSchema) -> StateSchema:
    return StateSchema(
        arrow_schema=schema.schema.serialize().to_pybytes(),
        timestamp_column=schema.timestamp_column or "",
        key_columns=schema.key_columns or (),
        has_keys=schema.key_columns is not None,
    )


def decode_schema(schema: StateSchema) -> ArroyoSchema:
    """The columns of a config; raises `DamagedStateError` for what is no schema of a table."""
    try:
        columns = pa.ipc.read_schema(pa.py_buffer(schema.arrow_schema))
        time_zones(columns)
        return ArroyoSchema(
            columns, schema.timestamp_column or None, tuple(schema.key_columns) if schema.has_keys else None
        )
    except (pa.ArrowException, OSError, ValueError, ConfigError) as error:
        raise DamagedStateError(f"the config of a table in a checkpoint has no schema: {error}") from error


def time_zones(fields: Iterable[pa.Field]) -> set[str]:
    """Those of all columns; raises `UnicodeDecodeError` for one, or for a name, that is not UTF-8."""
    found: set[str] = set()
    for field in fields:
        kind = field.type
        found |= time_zones(kind.field(index) for index in range(kind.num_fields))
        # Arrow looks at what a name is when it is asked for it.
        if field.name is not None and pa.types.is_timestamp(kind) and kind.tz is not None:
            found.add(kind.tz)
    return found


def decode_global_config(config: TableConfig) -> GlobalKeyedTableConfig:
    return decode_message(config.config, GlobalKeyedTableConfig, name=_CONFIG)


def decode_expiring_config(config: TableConfig) -> ExpiringKeyedTimeTableConfig:
    return decode_message(config.config, ExpiringKeyedTimeTableConfig, name=_CONFIG)


#: For messages.
_CONFIG = "the config of a table in a checkpoint"


def _check_name(name: str) -> str:
    if not name or not all(part.isalnum() for part in name.replace("-", "_").split("_") if part):
        raise ConfigError(f"table name {name!r} must be letters, digits, '_' and '-'", value=name)
    return name
