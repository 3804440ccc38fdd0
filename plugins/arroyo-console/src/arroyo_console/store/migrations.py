"""The steps from an empty database to the tables of today, each done once, in order, in one transaction."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Column, Connection, Engine, Integer, MetaData, Table, insert, inspect, select
from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError

from arroyo_console.store import tables
from arroyo_core.errors import SetupError

_APPLIED = Table("schema_versions", MetaData(), Column("version", Integer, primary_key=True, autoincrement=False))


def _first(connection: Connection) -> None:
    for table in (tables.PIPELINES, tables.VERSIONS, tables.JOBS, tables.RUNS, tables.CHANGES, tables.LEASES):
        table.create(connection)


#: A step is never changed once it was released; what changes a table that is there comes after it.
MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_first,)


def migrate(engine: Engine) -> int:
    """Bring a database up to date; returns its version. Raises `SetupError` for one of a later release."""
    try:
        return _migrate(engine)
    except (IntegrityError, OperationalError, ProgrammingError):
        # Another server may have been faster, and has done the same: tables and versions are there already.
        return _migrate(engine)


def _migrate(engine: Engine) -> int:
    with engine.begin() as connection:
        if not inspect(connection).has_table(_APPLIED.name):
            _APPLIED.create(connection)
        done = set(connection.scalars(select(_APPLIED.c.version)))
        if done and max(done) > len(MIGRATIONS):
            raise SetupError(
                f"the database has version {max(done)} of the tables, and this arroyo-console knows {len(MIGRATIONS)}: "
                "install the release that wrote it, or a later one"
            )
        for version, step in enumerate(MIGRATIONS, start=1):
            if version not in done:
                connection.execute(insert(_APPLIED).values(version=version))
                step(connection)
    return len(MIGRATIONS)
