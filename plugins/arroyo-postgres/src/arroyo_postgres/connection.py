"""How a database is reached: a checked `Connection` of a config, and connections made of it.

Connections do not survive a fork: make them in tasks and on the driver, never while a module is imported. No text that
is made here has the password.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from arroyo_core.api import Dataset
from arroyo_core.api.policy import current_policy
from arroyo_core.errors import ArroyoError, ConfigError
from arroyo_postgres.connection_pb2 import Connection
from arroyo_postgres.errors import translate

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import TupleRow

#: What stands for a secret in anything that people see.
HIDDEN = "***"
#: Settings of every session, so that values are written in one way whatever the server's own settings are.
SESSION = {
    "client_encoding": "UTF8",
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "extra_float_digits": "3",
    "bytea_output": "hex",
}
#: A peer that is gone is noticed after about a minute, also where nothing is sent to it.
_KEEPALIVE = {"keepalives": "1", "keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3"}
_SCHEMES = ("postgresql", "postgres")


@dataclass(frozen=True, slots=True)
class Server:
    """A database as a config gives it. Hashable, so that connections can be kept by it."""

    #: Parameters of libpq, in order; some are secret.
    parameters: tuple[tuple[str, str], ...] = field(repr=False)
    #: Whether the password, or the whole URL, is in the parameters.
    secrets: tuple[str, ...] = field(repr=False, default=())

    @property
    def host(self) -> str:
        return dict(self.parameters).get("host", "")

    @property
    def port(self) -> str:
        return dict(self.parameters).get("port", "5432")

    @property
    def database(self) -> str:
        found = dict(self.parameters)
        return found.get("dbname") or found.get("user", "")

    def display(self) -> str:
        """The database for plans and messages, without secrets: `host:5432/shop`."""
        return f"{self.host or 'localhost'}:{self.port}/{self.database}"

    def dataset(self, table: str) -> Dataset:
        """A table of the database, as catalogues name it: `postgres://host:5432`, `shop.public.orders`."""
        return Dataset(f"postgres://{self.host or 'localhost'}:{self.port}", f"{self.database}.{table}")

    def connect(
        self, *, name: str = "arroyo", replication: bool = False, settings: Mapping[str, str] | None = None
    ) -> psycopg.Connection[TupleRow]:
        """A connection in autocommit, the caller's to close; `name` is shown in `pg_stat_activity`.

        With `replication` it takes commands of the replication protocol too. Raises `ConfigError` where the server
        refuses it for good, else `ExternalError`.
        """
        import psycopg

        current_policy().check_network(f"to reach the database {self.display()}", field="connection")
        options = " ".join(f"-c {key}={value}" for key, value in {**SESSION, **(settings or {})}.items())
        parameters: dict[str, Any] = {**_KEEPALIVE, **dict(self.parameters)}
        parameters["options"] = f"{parameters['options']} {options}" if parameters.get("options") else options
        parameters["application_name"] = name
        if replication:
            parameters["replication"] = "database"
        with self.translating(f"cannot connect to {self.display()}"):
            return psycopg.connect(**parameters, autocommit=True)

    @contextmanager
    def translating(self, doing: str) -> Iterator[None]:
        """Errors of the driver as ours, with what was done: `cannot read table 'orders'`."""
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            raise self.translate(error, doing) from error

    def translate(self, error: psycopg.Error, doing: str) -> ArroyoError:
        return translate(error, doing, self.redact)

    def redact(self, text: str) -> str:
        """The text with `***` for every secret in it."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        return text


def read_connection(config: Connection) -> Server:
    """The database of a config; raises `ConfigError`. Reaches no server."""
    parameters = _from_url(config.url) if config.url else {}
    written = {
        "host": config.host,
        "port": str(config.port) if config.port else "",
        "dbname": config.database,
        "user": config.user,
        "password": config.password,
        "sslmode": config.sslmode.replace("_", "-"),
        "sslrootcert": config.sslrootcert,
        "sslcert": config.sslcert,
        "sslkey": config.sslkey,
    }
    parameters |= {name: value for name, value in written.items() if value}
    parameters.setdefault("connect_timeout", str(max(2, config.connect_timeout // 1_000_000)))
    if parameters.get("sslmode", "").startswith("verify") and not parameters.get("sslrootcert"):
        raise ConfigError(
            f"sslmode {parameters['sslmode']} needs sslrootcert, a file with the certificates to trust",
            field="connection.sslrootcert",
        )
    secrets = [config.url, config.password, parameters.get("password", "")]
    return Server(tuple(sorted(parameters.items())), tuple(dict.fromkeys(secret for secret in secrets if secret)))


def _from_url(url: str) -> dict[str, str]:
    """The parameters of libpq in a URL. The message never has the URL, which is a secret."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigError("url is not a URL that can be read", field="connection.url") from None
    if parts.scheme not in _SCHEMES:
        raise ConfigError("url must begin with postgresql://", field="connection.url")
    found = {
        "host": unquote(parts.hostname or ""),
        "port": str(port) if port else "",
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "dbname": unquote(parts.path.removeprefix("/")),
    }
    for setting in filter(None, parts.query.split("&")):
        name, _, value = setting.partition("=")
        found[unquote(name)] = unquote(value)
    return {name: value for name, value in found.items() if value}
