"""The database: how it is opened, its names and types, and what its errors mean."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow as pa

from arroyo_core.errors import ConfigError, ExternalError

#: How long another writer may hold the database.
TIMEOUT_S = 10.0
#: Locked by somebody, no space, a disk that fails: a later try may help. The rest is wrong, and stays wrong.
PASSING = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
}
#: The type of a column of the database, and what it is in a stream.
TYPES = {
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "text": pa.string(),
    "blob": pa.binary(),
}


def open_database(path: str) -> sqlite3.Connection:
    """A connection without transactions of its own: statements say where one begins."""
    return sqlite3.connect(path, timeout=TIMEOUT_S, isolation_level=None)


@contextmanager
def reading(path: str) -> Iterator[sqlite3.Connection]:
    """A connection that changes nothing; raises `ExternalError` where a later try may help."""
    try:
        with closing(sqlite3.connect(f"{Path(path).as_uri()}?mode=ro", uri=True, timeout=TIMEOUT_S)) as database:
            yield database
    except sqlite3.Error as error:
        translated = translate(error)
        if translated is None:
            raise
        raise translated from error


def quoted(name: str) -> str:
    """A name as it is written in SQL, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def listed(names: Iterable[str]) -> str:
    return ", ".join(quoted(name) for name in names)


def column_type(field: pa.Field) -> str:
    """The type of the database for a column of a stream; raises `ConfigError` where there is none."""
    kind = field.type
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return "bigint"
    if pa.types.is_floating(kind):
        return "double"
    for name, same in TYPES.items():
        if kind == same:
            return name
    raise ConfigError(f"column {field.name!r} is {kind}, which the database has no type for: cast it in front")


def translate(error: Exception) -> Exception | None:
    """What to raise for an error of the library; None for the error itself."""
    # The lower byte is the kind of an error, the rest its details.
    if isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in PASSING:
        return ExternalError(f"the database fails: {error}")
    return None
