"""What the database says of a table, a publication and a slot, and the statements that make them or put them right."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from arroyo_core.errors import ConfigError
from arroyo_postgres.cdc.lsn import parse_lsn
from arroyo_postgres.cdc_pb2 import CatalogueColumn, CatalogueTable

if TYPE_CHECKING:
    import psycopg

_TABLE = """
select c.oid, n.nspname, c.relname, c.relkind::text, c.relpersistence::text
from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = %s
"""
#: Of a domain the type below it. A generated column is not replicated.
_COLUMNS = """
select a.attname, coalesce(nullif(t.typbasetype, 0), a.atttypid)::int8,
  case when t.typbasetype <> 0 then t.typtypmod else a.atttypmod end, a.atttypid::int8, a.atttypmod,
  format_type(a.atttypid, a.atttypmod), a.attgenerated::text,
  case when a.attcollation not in (0, 100) then quote_ident(cn.nspname) || '.' || quote_ident(co.collname) else '' end
from pg_attribute a join pg_type t on t.oid = a.atttypid
left join pg_collation co on co.oid = a.attcollation left join pg_namespace cn on cn.oid = co.collnamespace
where a.attrelid = %s and a.attnum > 0 and not a.attisdropped order by a.attnum
"""
#: Of a table with partitions it is their identity that counts.
_IDENTITY = """
select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relreplident <> 'f' and (c.oid = %(oid)s or
  c.oid in (select relid from pg_partition_tree(%(oid)s::oid::regclass) where isleaf))
order by c.oid = %(oid)s desc, 1, 2 limit 1
"""
_KEY = """
select a.attname from pg_index i cross join lateral unnest(i.indkey::int2[]) with ordinality as k(number, place)
join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.number
where i.indrelid = %s and i.indisprimary order by k.place
"""
_SLOT = """
select plugin, slot_type, database, active_pid, confirmed_flush_lsn::text, to_jsonb(s) from pg_replication_slots s
where slot_name = %s
"""
_PUBLICATION = "select puballtables, pubinsert, pubupdate, pubdelete, pubviaroot from pg_publication where pubname = %s"
_PUBLISHED = "select to_jsonb(p) from pg_publication_tables p where pubname = %s and schemaname = %s and tablename = %s"
_PRESENT = "select attname from pg_attribute where attrelid = %s and attnum > 0 and not attisdropped"


@dataclass(frozen=True, slots=True)
class Slot:
    """A replication slot as it is now."""

    plugin: str
    kind: str
    database: str
    #: The process of the server that uses it; None for none.
    active_pid: int | None
    confirmed_lsn: int
    #: Why the server cannot give its changes any more; empty where it can.
    lost: str


def quoted(*names: str) -> str:
    """Names as SQL has them."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


def table_name(table: CatalogueTable) -> str:
    return quoted(table.schema, table.name)


def read_table(
    connection: psycopg.Connection[Any], name: str, columns: Sequence[str], as_text: Sequence[str]
) -> CatalogueTable:
    """A table with the columns that are wanted; raises `ConfigError` where there is none, or it cannot be read so."""
    found = connection.execute("select to_regclass(%s)::oid::int8", [name]).fetchone()
    if found is None or found[0] is None:
        raise ConfigError(f"there is no table {name!r}, or the user may not see it", field="table", value=name)
    row = connection.execute(_TABLE, [found[0]]).fetchone()
    if row is None:
        raise ConfigError(f"there is no table {name!r} any more", field="table", value=name)
    oid, schema, relation, kind, persistence = row
    if kind not in ("r", "p") or persistence != "p":
        raise ConfigError(
            f"{name!r} is not a table whose changes are logged: views, foreign and temporary tables have none",
            field="table",
            value=name,
        )
    table = CatalogueTable(schema=schema, name=relation, oid=oid, is_partitioned=kind == "p")
    without = connection.execute(_IDENTITY, {"oid": oid}).fetchone()
    table.without_full_identity = quoted(*without) if without is not None else ""
    known = {each.name: each for each in _read_columns(connection, oid, as_text)}
    table.known.extend(known)
    wanted = list(columns) or list(known)
    for place, column in enumerate(wanted):
        _check_column(column, known, f"columns[{place}]")
        if column in wanted[:place]:
            raise ConfigError(f"column {column!r} is named twice", field=f"columns[{place}]", value=column)
        table.columns.append(known[column])
    for place, column in enumerate(as_text):
        _check_column(column, known, f"as_text[{place}]")
    for (column,) in connection.execute(_KEY, [oid]).fetchall():
        table.key.append(known[column])
    return table


def _read_columns(connection: psycopg.Connection[Any], oid: int, as_text: Sequence[str]) -> list[CatalogueColumn]:
    columns = []
    for row in connection.execute(_COLUMNS, [oid]):
        name, base, base_modifier, declared, declared_modifier, type_name, generated, collation = row
        if generated:
            continue
        columns.append(
            CatalogueColumn(
                name=name,
                type_oid=declared,
                type_modifier=declared_modifier,
                base_oid=base,
                base_modifier=base_modifier,
                type_name=type_name,
                collation=collation,
                as_text=name in as_text,
            )
        )
    return columns


def _check_column(name: str, known: dict[str, CatalogueColumn], field: str) -> None:
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        raise ConfigError(
            f"the table has no column {name!r} that is replicated",
            field=field,
            value=name,
            allowed=list(known),
            suggestion=near[0] if near else None,
        )


def check_identity(table: CatalogueTable) -> None:
    """Raises `ConfigError` where updates and deletes would come without the row that was there."""
    without = table.without_full_identity
    if without:
        raise ConfigError(
            f"table {without} logs updates and deletes without the row that was there, which has to be taken back: run "
            f"ALTER TABLE {without} REPLICA IDENTITY FULL, or choose changes: inserts",
            field="table",
            value=table.name,
        )


def read_slot(connection: psycopg.Connection[Any], name: str) -> Slot | None:
    """None where there is none."""
    row = connection.execute(_SLOT, [name]).fetchone()
    if row is None:
        return None
    plugin, kind, database, active_pid, confirmed, everything = row
    lost = everything.get("invalidation_reason") or ("wal_removed" if everything.get("wal_status") == "lost" else "")
    if everything.get("conflicting"):
        lost = lost or "conflicting"
    return Slot(plugin or "", kind, database or "", active_pid, parse_lsn(confirmed) if confirmed else 0, lost)


def check_slot(slot: Slot, name: str, database: str) -> None:
    """Raises `ConfigError` for a slot that can never give the changes of this database."""
    if slot.kind != "logical" or slot.plugin != "pgoutput":
        raise ConfigError(
            f"slot {name!r} is {slot.kind}, of plugin {slot.plugin or 'none'!r}: it must be logical, of pgoutput",
            field="slot",
            value=name,
        )
    if slot.database != database:
        raise ConfigError(f"slot {name!r} is of database {slot.database!r}, not {database!r}", field="slot", value=name)
    if slot.lost:
        raise ConfigError(
            f"slot {name!r} is invalid ({slot.lost}): the server has removed changes that were not read yet, and they "
            f"are lost. Drop it with SELECT pg_drop_replication_slot('{name}'), and start the job over, with a new "
            "snapshot and without its state; max_slot_wal_keep_size says how much the server keeps",
            field="slot",
            value=name,
        )


def has_publication(connection: psycopg.Connection[Any], name: str) -> bool:
    return connection.execute("select 1 from pg_publication where pubname = %s", [name]).fetchone() is not None


def make_publication(connection: psycopg.Connection[Any], name: str, table: CatalogueTable, *, inserts: bool) -> None:
    """Make one of this table alone."""
    options = ["publish = 'insert'"] if inserts else []
    if table.is_partitioned:
        options.append("publish_via_partition_root = true")
    given = f" with ({', '.join(options)})" if options else ""
    connection.execute(f"create publication {quoted(name)} for table {table_name(table)}{given}".encode())


def check_publication(connection: psycopg.Connection[Any], name: str, table: CatalogueTable, *, inserts: bool) -> None:
    """Raises `ConfigError` where the publication has not all that is asked for."""
    row = connection.execute(_PUBLICATION, [name]).fetchone()
    if row is None:
        raise ConfigError(
            f"there is no publication {name!r}: run CREATE PUBLICATION {quoted(name)} FOR TABLE {table_name(table)}, "
            "or write create: true",
            field="publication",
            value=name,
        )
    _, *publishes, via_root = row
    missing = [kind for kind, is_there in zip(("insert", "update", "delete"), publishes, strict=True) if not is_there]
    if missing and (not inserts or "insert" in missing):
        raise ConfigError(f"publication {name!r} has no {' and no '.join(missing)}", field="publication", value=name)
    found = connection.execute(_PUBLISHED, [name, table.schema, table.name]).fetchone()
    if found is None and table.is_partitioned and not via_root:
        raise ConfigError(
            f"publication {name!r} has the partitions of {table_name(table)}, and not the table: run ALTER PUBLICATION "
            f"{quoted(name)} SET (publish_via_partition_root = true)",
            field="publication",
            value=name,
        )
    if found is None:
        raise ConfigError(
            f"publication {name!r} has not the table: run ALTER PUBLICATION {quoted(name)} ADD TABLE "
            f"{table_name(table)}",
            field="publication",
            value=name,
        )
    published = found[0]
    if published.get("rowfilter"):
        raise ConfigError(
            f"publication {name!r} has a filter for rows of {table_name(table)}, which the snapshot would not have: "
            "leave it out, and filter in the pipeline",
            field="publication",
            value=name,
        )
    columns = published.get("attnames")
    left_out = {column.name for column in table.columns} - set(columns) if columns is not None else set()
    # What the table itself does not have any more is said where its changes are read: with the place in the log.
    missing = [row[0] for row in connection.execute(_PRESENT, [table.oid]) if row[0] in left_out] if left_out else []
    if missing:
        raise ConfigError(
            f"publication {name!r} leaves out column {missing[0]!r} of {table_name(table)}",
            field="publication",
            value=name,
        )
