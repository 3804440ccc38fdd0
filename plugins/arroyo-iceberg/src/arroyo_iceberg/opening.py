"""The table that a sink writes to: made where it is wanted, with the columns that the input has.

All subtasks may do this at the same time; what one has made the others find.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from arroyo_core.errors import ConfigError, DataError, ExternalError
from arroyo_iceberg.catalog import MissingTableError, translated
from arroyo_iceberg.partitions import check_partition_fields, describe_spec, make_spec
from arroyo_iceberg.schemas import stored_schema, stored_type
from arroyo_iceberg.sink_settings import Evolution, Missing, Mode, SinkSettings

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table

#: How often another writer may change the columns of the table first.
ATTEMPTS = 20


def open_table(settings: SinkSettings, rows: pa.Schema) -> Table:
    """The table, which takes rows with these columns; made or changed where the settings want that.

    Raises `ConfigError` where it does not fit.
    """
    table = _load_or_create(settings, rows)
    _check_partitioning(settings, table)
    if settings.mode is Mode.OVERWRITE_PARTITIONS:
        _check_overwritable(table)
    for _ in range(ATTEMPTS):
        missing = [field for field in rows if field.name not in table.schema().as_arrow().names]
        if not missing:
            _check_columns(settings, table, rows)
            return table
        if settings.evolution is not Evolution.ADD:
            names = ", ".join(repr(field.name) for field in missing)
            raise ConfigError(
                f"table {settings.table} has no column {names}: leave it out in front of the sink, or choose "
                "schema_evolution: add",
                field="schema_evolution",
            )
        table = _add_columns(settings, table, missing)
    raise ExternalError(f"cannot add columns to table {settings.table}: others keep changing it")


def table_schema(rows: pa.Schema) -> Schema:
    """The columns of a table that is made for such rows; raises `ConfigError`."""
    from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids
    from pyiceberg.schema import assign_fresh_schema_ids

    return assign_fresh_schema_ids(_pyarrow_to_schema_without_ids(stored_schema(rows)))


def _load_or_create(settings: SinkSettings, rows: pa.Schema) -> Table:
    from pyiceberg.exceptions import NamespaceAlreadyExistsError, TableAlreadyExistsError

    try:
        return settings.catalog.load(settings.table)
    except MissingTableError:
        if settings.if_missing is not Missing.CREATE:
            raise
    schema = table_schema(rows)
    check_partition_fields(settings.partition_by, schema)
    with translated(f"cannot create table {settings.table} in catalog {settings.catalog.shown}"):
        catalog = settings.catalog.open()
        try:
            if not catalog.namespace_exists(settings.table.namespace):
                catalog.create_namespace(settings.table.namespace)
        except NamespaceAlreadyExistsError:
            pass
        try:
            return catalog.create_table(
                settings.table.identifier,
                schema,
                partition_spec=make_spec(settings.partition_by, schema),
                properties=dict(settings.table_properties),
            )
        except TableAlreadyExistsError:
            return settings.catalog.load(settings.table)


def _add_columns(settings: SinkSettings, table: Table, missing: list[pa.Field]) -> Table:
    from pyiceberg.exceptions import CommitFailedException

    wanted = pa.schema([pa.field(field.name, stored_type(field.type, field.name)) for field in missing])
    try:
        with (
            translated(f"cannot add columns to table {settings.table}"),
            table.transaction() as transaction,
            transaction.update_schema() as update,
        ):
            update.union_by_name(table_schema(wanted))
    except CommitFailedException:
        pass
    return settings.catalog.load(settings.table)


def _check_partitioning(settings: SinkSettings, table: Table) -> None:
    found = describe_spec(table.spec(), table.schema())
    wanted = [str(field) for field in settings.partition_by]
    if wanted and wanted != found:
        raise ConfigError(
            f"table {settings.table} is partitioned by {', '.join(found) or 'nothing'}, not by {', '.join(wanted)}: "
            "leave partition_by away, or change the table",
            field="partition_by",
            value=wanted,
        )


def _check_overwritable(table: Table) -> None:
    if table.spec().is_unpartitioned():
        raise ConfigError(
            "the table is not partitioned, so there is nothing that mode: overwrite_partitions could replace",
            field="mode",
        )
    if table.metadata.format_version < 2:
        raise ConfigError(
            "mode: overwrite_partitions needs sequence numbers, which tables of version 1 have not: upgrade the table",
            field="mode",
        )


def _check_columns(settings: SinkSettings, table: Table, rows: pa.Schema) -> None:
    """What a value that does not fit would show only when it comes."""
    columns = {field.name: field for field in table.schema().columns}
    for name, column in columns.items():
        if column.required and name not in rows.names:
            raise ConfigError(f"table {settings.table} requires column {name!r}, which the input has not")
    for field in rows:
        kind = stored_type(field.type, field.name)
        target = table.schema().as_arrow().field(field.name).type
        if not _fits(kind, target):
            raise ConfigError(
                f"column {field.name!r} is {field.type}, and in table {settings.table} it is "
                f"{columns[field.name].field_type}: cast it in front of the sink"
            )
    for name in settings.keys:
        if name not in columns:
            raise DataError(f"table {settings.table} has no key column {name!r}")


def _fits(kind: pa.DataType, target: pa.DataType) -> bool:
    """Whether values of a type may be written to a column: what harms a value fails when it comes."""
    for same in (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
        pa.types.is_nested,
        pa.types.is_date,
        pa.types.is_time,
        pa.types.is_boolean,
    ):
        if same(kind):
            return same(target) or (pa.types.is_integer(kind) and _is_number(target))
    if pa.types.is_timestamp(kind):
        return bool(pa.types.is_timestamp(target) and (kind.tz is None) == (target.tz is None))
    if _is_text(kind):
        return _is_text(target)
    return _is_bytes(kind) and _is_bytes(target)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or isinstance(kind, pa.UuidType)
    )
