"""What the database says of a table and of its binlog, asked while the pipeline is planned and when a stream begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arroyo_connectors import check_column, check_distinct

from arroyo_core.errors import ConfigError
from arroyo_mysql.cdc.places import Place
from arroyo_mysql.cdc_pb2 import CatalogueColumn, CatalogueTable
from arroyo_mysql.connection import Session
from arroyo_mysql.names import TableName, quoted, text_literal
from arroyo_mysql.result_columns import ResultColumn, read_column

#: What the binlog has to be, and what it was made for.
_NEEDED = (
    ("binlog_format", "ROW", "the binlog has statements instead of rows"),
    ("binlog_row_image", "FULL", "the binlog does not have all columns of changed rows"),
    ("binlog_row_metadata", "FULL", "the binlog does not have the names of columns"),
)
#: Types whose values the binlog has in a form that is not read.
_UNREADABLE = {
    "inet4": "MariaDB's inet4",
    "inet6": "MariaDB's inet6",
    "uuid": "MariaDB's uuid",
    "vector": "a vector",
}
_MYSQL_JSON = 245
#: Types whose order the database tells of values that are given.
_KEY_TYPES = frozenset(
    {"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "date", "datetime", "timestamp", "year"}
    | {"char", "varchar", "binary", "varbinary", "tinytext", "text", "mediumtext", "longtext"}
    | {"tinyblob", "blob", "mediumblob", "longblob"}
)


@dataclass(frozen=True, slots=True)
class _Field:
    """As `read_column` wants it."""

    name: str
    type_code: int
    flags: int
    length: int
    scale: int
    charsetnr: int


def result_column(column: CatalogueColumn) -> ResultColumn:
    return read_column(_Field(column.name, column.type_code, column.flags, column.length, column.scale, column.charset))


def read_table(session: Session, name: TableName, columns: Sequence[str]) -> CatalogueTable:
    """A table with the columns that are wanted; raises `ConfigError` where there is none, or it cannot be read so."""
    schema = _check_table(session, name)
    table = CatalogueTable(schema=schema, name=name.name, is_mariadb=is_mariadb(session))
    where = f"table_schema = {text_literal(schema)} and table_name = {text_literal(name.name)}"
    types = {
        row[0]: row[1:]
        for row in session.execute(
            "select column_name, data_type, character_set_name, collation_name from information_schema.columns "
            f"where {where} order by ordinal_position"
        )
    }
    table.known.extend(types)
    check_distinct(columns)
    for place, column in enumerate(columns):
        check_column(column, list(types), f"columns[{place}]")
    key = session.execute(
        f"select column_name, sub_part from information_schema.statistics where {where} and index_name = 'PRIMARY' "
        "order by seq_in_index"
    )
    shown = {field.name: field for field in _describe(session, name, columns)}
    found = {**shown, **{field.name: field for field in _describe(session, name, [row[0] for row in key])}}
    wanted = list(columns or shown)
    for place, column in enumerate(wanted):
        table.columns.append(_column(found[column], types[column], f"columns[{place}]"))
    if all(types[row[0]][0].lower() in _KEY_TYPES and row[1] is None for row in key):
        table.key.extend(_column(found[row[0]], types[row[0]], "table") for row in key)
    return table


def is_mariadb(session: Session) -> bool:
    ((version,),) = session.execute("select version()")
    return "mariadb" in str(version).lower()


def check_binlog(session: Session, schema: str) -> None:
    """Raises `ConfigError` where the server does not log rows of a database as they are needed here."""
    found_variables = session.execute(
        "show global variables where variable_name regexp '^(log_bin$|binlog_|log_slave_updates$|log_replica_updates$)'"
    )
    variables = {row[0].lower(): str(row[1]) for row in found_variables}
    if variables.get("log_bin", "").upper() not in ("ON", "1"):
        raise ConfigError(
            "the server has no binlog, and so no changes to read: start it with log_bin, or choose snapshot: only",
            field="connection",
        )
    for name, value, why in _NEEDED:
        found = variables.get(name)
        if found is None:
            raise ConfigError(
                f"the server has no {name}: MariaDB 10.5 or newer, or MySQL 8.0.14 or newer, is needed",
                field="connection",
            )
        if found.upper() != value:
            raise ConfigError(
                f"{name} is {found}: {why}. Run SET GLOBAL {name} = {value}, which counts for sessions that begin "
                "then, and write it into the server's configuration",
                field="connection",
            )
    if variables.get("binlog_transaction_compression", "OFF").upper() == "ON":
        raise ConfigError("binlog_transaction_compression is ON, and is not read: turn it OFF", field="connection")
    _check_filters(session, schema, variables)


def current_place(session: Session) -> Place:
    """Where the binlog ends."""
    status = _binlog_status(session)
    executed = str(status[4]).replace("\n", "") if len(status) > 4 else None
    return make_place(session, str(status[0]), int(status[1]), executed)


def _binlog_status(session: Session) -> tuple[Any, ...]:
    """File, offset, which databases are logged, which are not; MySQL says GTIDs, too."""
    for statement in ("show master status", "show binary log status"):
        try:
            rows = session.execute(statement)
        except Exception as error:
            # MySQL 8.4 has the second one only.
            if not error.args or error.args[0] != 1064:
                raise
            continue
        if rows:
            return tuple(rows[0])
        break
    raise ConfigError("the server has no binlog, and so no changes to read: start it with log_bin", field="connection")


def _check_filters(session: Session, schema: str, variables: Mapping[str, str]) -> None:
    """Changes that the server makes and does not log."""
    folds = folds_case(session)
    name = schema.lower() if folds else schema
    logged, ignored = (
        [each.strip().lower() if folds else each.strip() for each in str(names or "").split(",") if each.strip()]
        for names in _binlog_status(session)[2:4]
    )
    if (logged and name not in logged) or name in ignored:
        setting = "binlog_do_db" if logged and name not in logged else "binlog_ignore_db"
        raise ConfigError(
            f"the server does not log changes of the database {schema}: its {setting} says so. Log it, or read another "
            "server",
            field="connection",
        )
    logs_replicated = variables.get("log_slave_updates", variables.get("log_replica_updates", "ON"))
    if logs_replicated.upper() not in ("ON", "1") and _is_replica(session):
        raise ConfigError(
            "the server is a replica with log_slave_updates = OFF: what it takes from its primary is not in its own "
            "binlog. Start it with log_slave_updates, or read the primary",
            field="connection",
        )


def _is_replica(session: Session) -> bool:
    """As far as the user may know."""
    running = session.execute("show global status like 'slaves_running'")
    if running and int(running[0][1]):
        return True
    for statement in ("show all slaves status", "show replica status"):
        try:
            return bool(session.execute(statement))
        except Exception as error:
            # One is of MariaDB, the other of MySQL; both need a privilege.
            if not error.args or error.args[0] not in (1064, 1227):
                raise
    return False


def make_place(session: Session, file: str, offset: int, executed: str | None) -> Place:
    """The place of a file and an offset, with GTIDs where there are any; `executed` are those of MySQL."""
    if executed is not None:
        ((mode,),) = session.execute("select @@global.gtid_mode")
        return Place(file, offset, executed if str(mode).upper() == "ON" else None)
    ((gtid,),) = session.execute(f"select binlog_gtid_pos({text_literal(file)}, {offset})")
    return Place(file, offset, None if gtid is None else str(gtid))


def bytes_behind(session: Session, place: Place) -> int:
    """How much of the binlog is behind a place."""
    found, size = False, 0
    for row in session.execute("show binary logs"):
        if str(row[0]) == place.file:
            found, size = True, int(row[1]) - place.offset
        elif found:
            size += int(row[1])
    return max(0, size)


def charsets(session: Session) -> dict[int, str]:
    """The character set of each collation, by its number."""
    found: dict[int, str] = {}
    for table in ("collation_character_set_applicability", "collations"):
        try:
            rows = session.execute(f"select id, character_set_name from information_schema.{table}")
        except Exception as error:
            # Only the former has all collations of newer releases of MariaDB, and has numbers only there.
            if not error.args or error.args[0] != 1054:
                raise
            continue
        found |= {int(row[0]): str(row[1]) for row in rows if row[0] is not None and row[1] is not None}
    return found


def folds_case(session: Session) -> bool:
    ((mode,),) = session.execute("select @@lower_case_table_names")
    return int(mode) != 0


def _check_table(session: Session, name: TableName) -> str:
    """The database of a table, as it is written there."""
    rows = session.execute(
        "select t.table_schema, t.table_type, t.engine, e.transactions from information_schema.tables t left join "
        f"information_schema.engines e on e.engine = t.engine where t.table_schema = {text_literal(name.schema)} "
        f"and t.table_name = {text_literal(name.name)}"
    )
    if not rows:
        raise ConfigError(f"there is no table {name}, or the user may not see it", field="table", value=str(name))
    schema, kind, engine, transactions = rows[0]
    if kind != "BASE TABLE":
        raise ConfigError(
            f"{name} is a {str(kind).lower()}, and not a table whose changes can be read",
            field="table",
            value=str(name),
        )
    if transactions != "YES":
        raise ConfigError(
            f"table {name} is of engine {engine}, which has no transactions: what is read of it would not be as of one "
            f"moment. Run ALTER TABLE {name.quoted} ENGINE = InnoDB",
            field="table",
            value=str(name),
        )
    return str(schema)


def _describe(session: Session, name: TableName, columns: Sequence[str]) -> list[Any]:
    wanted = ", ".join(quoted(column) for column in columns) or "*"
    return session.describe(f"select {wanted} from {name.quoted} limit 0")


def _column(field: Any, found: tuple[Any, ...], where: str) -> CatalogueColumn:
    data_type, character_set, collation = found
    data_type = str(data_type).lower()
    why = _UNREADABLE.get(data_type) or ("MySQL's binary JSON" if field.type_code == _MYSQL_JSON else None)
    if why is not None:
        raise ConfigError(
            f"column {field.name!r} is {why}, which is not read from the binlog: leave it out with columns: [...]",
            field=where,
            value=field.name,
        )
    return CatalogueColumn(
        name=field.name,
        type_code=field.type_code,
        flags=field.flags,
        length=field.length,
        scale=field.scale,
        charset=field.charsetnr,
        data_type=data_type,
        character_set=character_set or "",
        collation=collation or "",
    )
