"""How a catalog is reached: its settings, the tables in it, and what its errors mean."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit, urlunsplit

from arroyo_core.api import Dataset
from arroyo_core.api.policy import current_policy
from arroyo_core.api.urls import absolute_url, redact_url
from arroyo_core.errors import ArroyoError, ConfigError, DataError, ExternalError
from arroyo_iceberg.iceberg_pb2 import Catalog as CatalogConfig

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

SQL, REST = "sql", "rest"
_SQLITE = "sqlite:///"
#: Staged files are listed and deleted, which only the class that this one extends can.
_FILE_IO = "arroyo_iceberg.file_io.LimitedFileIO"
#: What the fields of the config say, and so `properties` may not.
_OWN_PROPERTIES = {"type": "type", "uri": "uri", "warehouse": "warehouse", "credential": "credential", "token": "token"}
#: SQLite: how long another process may hold the database.
_SQLITE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class CatalogSettings:
    """A catalog, and how to speak to it."""

    type: str
    uri: str
    name: str
    warehouse: str = ""
    #: Of pyiceberg, secrets among them.
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def shown(self) -> str:
        """The catalog as people may see it."""
        return redact_url(self.uri)

    def open(self) -> Catalog:
        """The catalog; the process keeps its connections."""
        return _open(
            os.getpid(), self.type, self.uri, self.name, self.warehouse, tuple(sorted(self.properties.items()))
        )

    def load(self, table: TableName, *, doing: str = "load") -> Table:
        """A table as it is now. Raises `MissingTableError`."""
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        with translated(f"cannot {doing} table {table} of catalog {self.shown}"):
            try:
                return self.open().load_table(table.identifier)
            except (NoSuchTableError, NoSuchNamespaceError):
                raise MissingTableError(
                    f"there is no table {table} in catalog {self.shown}", field="table", value=str(table)
                ) from None

    def dataset(self, table: TableName) -> Dataset:
        return Dataset(self.shown, str(table))


@dataclass(frozen=True, slots=True)
class TableName:
    """A table with its namespace."""

    identifier: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.identifier)

    @property
    def namespace(self) -> tuple[str, ...]:
        return self.identifier[:-1]


class MissingTableError(ConfigError):
    """There is no such table."""


def read_table_name(name: str) -> TableName:
    """The name of a config; raises `ConfigError`."""
    parts = tuple(name.split("."))
    if len(parts) < 2 or not all(parts):
        raise ConfigError("a table is written with its namespace, such as shop.orders", field="table", value=name)
    return TableName(parts)


def resolve_catalog(config: CatalogConfig) -> CatalogConfig:
    """A copy with absolute paths, for executors elsewhere; raises `ConfigError`."""
    resolved = CatalogConfig()
    resolved.CopyFrom(config)
    if config.uri.startswith(_SQLITE):
        path = config.uri.removeprefix(_SQLITE)
        if path and not path.startswith(":"):
            resolved.uri = _SQLITE + absolute_url(path)
    if config.warehouse and config.type == SQL:
        resolved.warehouse = absolute_url(config.warehouse)
    return resolved


def check_catalog(config: CatalogConfig) -> CatalogSettings:
    """The settings of a config, resolved or not; raises `ConfigError`. Reaches nothing."""
    config = resolve_catalog(config)
    if config.type not in (SQL, REST):
        raise ConfigError(f"unknown type {config.type!r}", field="catalog.type", value=config.type, allowed=[SQL, REST])
    for name in config.properties:
        if name in _OWN_PROPERTIES:
            raise ConfigError(
                f"{name} is the field {_OWN_PROPERTIES[name]} of catalog",
                field=f"catalog.properties.{name}",
                value=name,
            )
    for own, other in (("password", REST), ("credential", SQL), ("token", SQL)):
        if getattr(config, own) and config.type == other:
            raise ConfigError(f"catalogs of type {other} have no {own}", field=f"catalog.{own}")
    return CatalogSettings(config.type, _uri(config), config.name or "default", config.warehouse, _properties(config))


def _uri(config: CatalogConfig) -> str:
    """The URI, checked; without the password."""
    uri = config.uri
    try:
        parts = urlsplit(uri)
        has_password = parts.password is not None
    except ValueError as error:
        raise ConfigError(f"it is not a URI: {error}", field="catalog.uri") from None
    if has_password:
        other = "password" if config.type == SQL else "credential"
        raise ConfigError(f"a password would be shown here: write it as {other}", field="catalog.uri")
    allowed = ["http://", "https://"] if config.type == REST else ["sqlite:///", "postgresql+psycopg://"]
    if not uri.startswith(("http://", "https://") if config.type == REST else ("sqlite:", "postgresql")):
        raise ConfigError(
            f"a catalog of type {config.type} has another URI", field="catalog.uri", value=uri, allowed=allowed
        )
    if uri in ("sqlite://", "sqlite:///") or uri.startswith("sqlite:///:"):
        raise ConfigError(
            "a catalog in memory is gone with its process: name a file", field="catalog.uri", value=uri, allowed=allowed
        )
    return uri


def _properties(config: CatalogConfig) -> dict[str, str]:
    properties = {"py-io-impl": _FILE_IO, **config.properties}
    for name in ("credential", "token"):
        if value := getattr(config, name):
            properties[name] = value
    if config.password:
        properties[_PASSWORD] = config.password
    return properties


#: Among the properties until the catalog is opened.
_PASSWORD = "arroyo.password"


@lru_cache(maxsize=16)
def _open(
    _pid: int, kind: str, uri: str, name: str, warehouse: str, properties: tuple[tuple[str, str], ...]
) -> Catalog:
    # A forked process must not use its parent's connections, hence the process id.
    current_policy().check_network(f"to ask the catalog {redact_url(uri)}", field="catalog")
    given = dict(properties)
    password = given.pop(_PASSWORD, "")
    if warehouse:
        given["warehouse"] = warehouse
    if kind == REST:
        from arroyo_iceberg.guarded import GuardedRestCatalog

        # Where it is by default; the library warns of a default of its own.
        given.setdefault("oauth2-server-uri", f"{uri.rstrip('/')}/v1/oauth/tokens")
        return GuardedRestCatalog(name, uri=uri, **given)
    from sqlalchemy import NullPool, create_engine
    from sqlalchemy.exc import DBAPIError

    from arroyo_iceberg.guarded import GuardedSqlCatalog

    uri = _with_password(uri, password)
    if uri.startswith("sqlite:") and "timeout=" not in uri:
        uri += f"{'&' if '?' in uri else '?'}timeout={_SQLITE_SECONDS}"
    try:
        catalog = GuardedSqlCatalog(name, uri=uri, **given)
    except DBAPIError:
        # Another process may have made the same tables at the same time.
        catalog = GuardedSqlCatalog(name, uri=uri, **given)
    if not uri.startswith("sqlite:"):
        # A server need not keep connections for a catalog that is asked once in an epoch.
        catalog.engine.dispose()
        catalog.engine = create_engine(uri, poolclass=NullPool)
    return catalog


def _with_password(uri: str, password: str) -> str:
    if not password:
        return uri
    parts = urlsplit(uri)
    user, _, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user}:{quote(password, safe='')}@{host}"))


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Errors of the catalog and of the storage, as errors for people that say whether a retry helps.

    `OSError`s of files are left as they are: what is made of them is the same for all operators.
    """
    from pydantic import ValidationError
    from pyiceberg import exceptions
    from requests.exceptions import RequestException
    from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

    passing = (
        RequestException,
        DBAPIError,
        exceptions.CommitStateUnknownException,
        exceptions.ServerError,
        exceptions.ServiceUnavailableError,
        exceptions.TooManyRequestsError,
        exceptions.AuthorizationExpiredError,
    )
    refused = (
        exceptions.UnauthorizedError,
        exceptions.ForbiddenError,
        exceptions.OAuthError,
        exceptions.NotInstalledError,
        exceptions.NoSuchPropertyException,
        ArgumentError,
        NoSuchModuleError,
    )
    try:
        yield
    except ArroyoError:
        raise
    except exceptions.CommitFailedException:
        # Somebody else was faster: whoever commits looks again.
        raise
    except passing as error:
        raise ExternalError(f"{doing}: {_reason(error)}") from error
    except (ValidationError, exceptions.ValidationError) as error:
        raise DataError(f"{doing}: what is said of it cannot be read: {_reason(error)}") from error
    except refused as error:
        raise ConfigError(f"{doing}: {_reason(error)}", field="catalog") from error


def _reason(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
