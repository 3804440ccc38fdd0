"""Tables that are made: of rows, and of tokens."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from arroyo_connectors.texts import is_bytes, is_list

from arroyo_core.errors import ConfigError
from arroyo_mysql.connection import Session
from arroyo_mysql.names import TableName, quoted

_INTEGERS = {8: "tinyint", 16: "smallint", 32: "int", 64: "bigint"}
#: What MySQL's decimals have at most; MariaDB's have more digits behind the point.
_MOST_DIGITS, _MOST_SCALE = 65, 30
#: An index has 3072 bytes, of which a character may be 4; some are for other columns of the key.
_KEY_CHARACTERS, _MOST_CHARACTERS = 700, 255


def create_table(session: Session, name: TableName, rows: pa.Schema, keys: Sequence[str]) -> None:
    """Make a table for these rows, unless somebody else just did. Ends a transaction that is open."""
    columns = [f"{quoted(field.name)} {_column_type(session, rows, field, keys)}" for field in rows]
    if keys:
        columns.append(f"primary key ({', '.join(map(quoted, keys))})")
    session.execute(
        f"create table if not exists {name.quoted} ({', '.join(columns)}) engine = InnoDB default charset = utf8mb4"
    )


def create_token_table(session: Session, name: TableName) -> None:
    """Make the table of tokens, unless somebody else just did. Ends a transaction that is open."""
    session.execute(
        f"create table if not exists {name.quoted} (incarnation varchar(64) not null, node varchar(255) not null, "
        "generation bigint not null, epoch bigint not null, primary key (incarnation, node)) "
        "engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin"
    )


def check_creatable(rows: pa.Schema, keys: Sequence[str]) -> None:
    """Raise `ConfigError` where no table can be made for these rows."""
    seen: dict[str, str] = {}
    for field in rows:
        sql_type(field.type, field.name)
        other = seen.setdefault(field.name.casefold(), field.name)
        if other != field.name:
            raise ConfigError(
                f"columns {other!r} and {field.name!r} are one to MySQL: rename one with std.project", field="table"
            )
        kind = field.type
        if field.name in keys and (is_list(kind) or pa.types.is_struct(kind) or pa.types.is_map(kind)):
            raise ConfigError(f"column {field.name!r} is {kind}: it cannot be a key of a table", field="keys")


def sql_type(kind: pa.DataType, name: str) -> str:
    """The type of a column that is made for these values; raises `ConfigError` where there is none."""
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind):
        return _INTEGERS[kind.bit_width] + (" unsigned" if pa.types.is_unsigned_integer(kind) else "")
    if pa.types.is_floating(kind):
        return "double" if pa.types.is_float64(kind) else "float"
    if pa.types.is_decimal(kind):
        scale = max(kind.scale, 0)
        digits = max(kind.precision - min(kind.scale, 0), scale)
        if digits > _MOST_DIGITS or scale > _MOST_SCALE:
            raise ConfigError(
                f"column {name!r} is {kind}, and decimals of MySQL have {_MOST_DIGITS} digits, {_MOST_SCALE} of them "
                "behind the point: cast it with std.project",
                field="table",
            )
        return f"decimal({digits},{scale})"
    for test, found in (
        (pa.types.is_timestamp, "datetime(6)"),
        (pa.types.is_date, "date"),
        (pa.types.is_time, "time(6)"),
        (is_bytes, "longblob"),
        (is_list, "json"),
        (pa.types.is_struct, "json"),
        (pa.types.is_map, "json"),
        (pa.types.is_string, "longtext"),
        (pa.types.is_large_string, "longtext"),
        (pa.types.is_null, "longtext"),
    ):
        if test(kind):
            return found
    raise ConfigError(
        f"column {name!r} is {kind}, which MySQL has no type for: cast it with std.project", field="table"
    )


def _column_type(session: Session, rows: pa.Schema, field: pa.Field, keys: Sequence[str]) -> str:
    found = sql_type(field.type, field.name)
    if field.name not in keys or found not in ("longtext", "longblob"):
        return found
    wide = [key for key in keys if sql_type(rows.field(key).type, key) in ("longtext", "longblob")]
    length = min(_MOST_CHARACTERS, _KEY_CHARACTERS // len(wide))
    if found == "longblob":
        return f"varbinary({length})"
    return f"varchar({length}) character set utf8mb4 collate {_exact_collation(session)}"


def _exact_collation(session: Session) -> str:
    """One that takes no two texts for equal: MariaDB and MySQL call it by different names."""
    wanted = "'utf8mb4_nopad_bin', 'utf8mb4_0900_bin'"
    found = session.execute(
        f"select collation_name from information_schema.collations where collation_name in ({wanted})"
    )
    return str(found[0][0]) if found else "utf8mb4_bin"
