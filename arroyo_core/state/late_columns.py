"""Tables of operators written for an earlier version: declared without columns, which `on_start` gives.

Deprecated, for one version: `tables(inputs)` declares tables with their columns.
"""

from __future__ import annotations

from arroyo_core.api.schema import ArroyoSchema
from arroyo_core.proto.state_pb2 import TableConfig, TableType
from arroyo_core.state.config import check_schema, decode_expiring_config


def has_columns(config: TableConfig) -> bool:
    """Whether the columns of a table are known."""
    is_expiring = config.table_type == TableType.EXPIRING_KEYED_TIME_TABLE
    return not is_expiring or decode_expiring_config(config).HasField("schema")


def with_columns(config: TableConfig, schema: ArroyoSchema) -> TableConfig:
    """The config of an expiring table with these columns."""
    settings = decode_expiring_config(config)
    settings.schema.CopyFrom(check_schema(settings.table_name, schema))
    return TableConfig(table_type=config.table_type, config=settings.SerializeToString(deterministic=True))
