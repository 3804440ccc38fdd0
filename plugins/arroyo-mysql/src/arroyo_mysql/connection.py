"""How a database is reached: a checked `Connection` of a config, and sessions made of it.

Sessions do not survive a fork: make them in tasks and on the driver, never while a module is imported. No text that
is made here has the password.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from arroyo_core.api import Dataset
from arroyo_core.api.policy import current_policy
from arroyo_core.errors import ArroyoError, ConfigError
from arroyo_mysql.connection_pb2 import Connection
from arroyo_mysql.errors import translate

#: What stands for a secret in anything that people see.
HIDDEN = "***"
SSL_MODES = ("disable", "prefer", "require", "verify_ca", "verify_full")
_SCHEMES = ("mysql", "mariadb")
#: Settings of every session, whatever the server's own are. Values that do not fit are errors, a 0 is a 0 also where
#: numbers are made, backslashes escape, and times are UTC. MySQL would round fractions of seconds that a column has no
#: place for, MariaDB cuts them, and does not read what is in the comment.
_SESSION = (
    "set sql_mode = concat('STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION' "
    "/*!80000 , ',TIME_TRUNCATE_FRACTIONAL' */), time_zone = '+00:00', innodb_lock_wait_timeout = 50, "
    "wait_timeout = {idle_s}"
)


class _PlainLogin:
    """A way to log in that sends the password as it is: only where the connection is encrypted."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def authenticate(self, packet: Any) -> Any:
        import pymysql

        if not self._connection._secure:
            raise pymysql.OperationalError(
                2061, "the server asks for the password in clear, and the connection is not encrypted: SSL is required"
            )
        self._connection.write_packet(self._connection.password + b"\0")
        answer = self._connection._read_packet()
        answer.check_error()
        return answer


#: The client would follow any server that asks so. With `dialog` it would answer whatever is asked.
_PLAIN_LOGINS = {"mysql_clear_password": _PlainLogin, "dialog": _PlainLogin}


class Session:
    """A connection in autocommit that runs statements which have all their values as literals."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, statement: str | bytes) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def describe(self, query: str) -> list[Any]:
        """The columns that a query has: as the server sends them, with `name`, `type_code`, `length` and others."""
        with self._connection.cursor() as cursor:
            cursor.execute(query)
            # The description that DB-API has, without flags and character sets, does not say what is unsigned or bytes.
            return list(cursor._result.fields)

    def stream(self, query: str, rows: int) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of a SELECT, so many at a time, which are not all held in memory. All have to be taken."""
        from pymysql.cursors import SSCursor

        with self._connection.cursor(SSCursor) as cursor:
            cursor.execute(query)
            while found := cursor.fetchmany(rows):
                yield list(found)

    def send(self, command: int, argument: bytes) -> None:
        """A command of the protocol, whose answer the caller reads from the socket."""
        self._connection._execute_command(command, argument)

    def take_socket(self) -> Any:
        """The socket, after `send`: from now on only `close` is for the session."""
        return self._connection._sock

    def close(self) -> None:
        # One that is broken is closed, and would raise.
        if self._connection.open:
            self._connection.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A database as a config gives it. Hashable, so that sessions can be kept by it."""

    host: str
    port: int
    database: str
    user: str
    password: str = field(repr=False)
    sslmode: str = "prefer"
    sslrootcert: str = ""
    sslcert: str = ""
    sslkey: str = ""
    connect_timeout_s: int = 10
    #: The password and the URL, as they were written.
    secrets: tuple[str, ...] = field(repr=False, default=())

    def display(self) -> str:
        """The database for plans and messages, without secrets: `host:3306/shop`."""
        return f"{self.host}:{self.port}/{self.database}"

    def dataset(self, schema: str, table: str) -> Dataset:
        """A table of the server, as catalogues name it: `mysql://host:3306`, `shop.orders`."""
        return Dataset(f"mysql://{self.host}:{self.port}", f"{schema}.{table}")

    def connect(self, *, idle_s: int = 600, answer_s: int = 300, raw: bool = False) -> Session:
        """A session in autocommit, the caller's to close.

        The server ends it after `idle_s` without a statement, also within a transaction; the client gives up a
        statement after `answer_s`. With `raw` values come as the texts and bytes that the server sends. Raises
        `ConfigError` where the server refuses it for good, else `ExternalError`.
        """
        import pymysql

        current_policy().check_network(f"to reach the database {self.display()}", field="connection")
        options: dict[str, Any] = {"conv": {}} if raw else {}
        context = self._tls_context()
        is_preferred = context is not None and not self._needs_tls
        with self.translating(f"cannot connect to {self.display()}"):
            connection = pymysql.connect(
                host=self.host,
                port=self.port,
                database=self.database,
                user=self.user,
                password=self.password,
                charset="utf8mb4",
                connect_timeout=self.connect_timeout_s,
                read_timeout=answer_s,
                write_timeout=answer_s,
                autocommit=True,
                init_command=_SESSION.format(idle_s=idle_s),
                program_name="arroyo",
                auth_plugin_map=_PLAIN_LOGINS,
                ssl=None if is_preferred else context,
                ssl_disabled=context is None or is_preferred,
                defer_connect=True,
                **options,
            )
            if is_preferred:
                # Given a context the client refuses servers without TLS, and without one it makes one of its own.
                connection.ssl, connection.ctx = True, context
            connection.connect()
        return Session(connection)

    @contextmanager
    def translating(self, doing: str) -> Iterator[None]:
        """Errors of the client as ours, with what was done: `cannot read table 'orders'`."""
        import pymysql

        try:
            yield
        except (pymysql.Error, RuntimeError) as error:
            # The client raises RuntimeError where a way to log in needs more than it has.
            # And where the server asks for a file of this host, which it does not get.
            if isinstance(error, RuntimeError) and not re.search("auth|LOAD_LOCAL", str(error)):
                raise
            raise self.translate(error, doing) from error

    def translate(self, error: Exception, doing: str) -> ArroyoError:
        return translate(error, doing, self.redact)

    def redact(self, text: str) -> str:
        """The text with `***` for every secret in it."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        return text

    @property
    def _needs_tls(self) -> bool:
        return self.sslmode not in ("disable", "prefer") or bool(self.sslrootcert or self.sslcert)

    def _tls_context(self) -> ssl.SSLContext | None:
        if self.sslmode == "disable":
            return None
        files = (self.sslrootcert, self.sslcert, self.sslkey)
        return _make_tls_context(self.sslmode, *files, tuple(_changed_ns(file) for file in files))


@lru_cache(maxsize=8)
def _make_tls_context(mode: str, root: str, cert: str, key: str, _changed: tuple[int, ...]) -> ssl.SSLContext:
    """Made once for all sessions, since it takes longer than a small commit; again where a file has changed."""
    field = "connection.sslrootcert"
    try:
        context = ssl.create_default_context(cafile=root or None)
        if cert:
            field = "connection.sslcert"
            context.load_cert_chain(cert, key or None)
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read the certificates: {error}", field=field) from error
    context.check_hostname = mode == "verify_full"
    context.verify_mode = ssl.CERT_REQUIRED if mode.startswith("verify") else ssl.CERT_NONE
    return context


def _changed_ns(file: str) -> int:
    """When a file was changed last; 0 where there is none, which is found when it is read."""
    try:
        return Path(file).stat().st_mtime_ns if file else 0
    except OSError:
        return 0


def read_connection(config: Connection) -> Server:
    """The database of a config; raises `ConfigError`. Reaches no server."""
    found = _from_url(config.url) if config.url else {}
    for name in ("host", "database", "user", "password", "sslmode", "sslrootcert", "sslcert", "sslkey"):
        if value := getattr(config, name):
            found[name] = value
    for name in ("database", "user"):
        if not found.get(name):
            raise ConfigError(f"{name} is needed", field=f"connection.{name}")
    mode = found.get("sslmode", "prefer").replace("-", "_")
    if mode not in SSL_MODES:
        raise ConfigError(f"unknown sslmode {mode!r}", field="connection.sslmode", value=mode, allowed=SSL_MODES)
    if mode.startswith("verify") and not found.get("sslrootcert"):
        raise ConfigError(
            f"sslmode {mode} needs sslrootcert, a file with the certificates to trust", field="connection.sslrootcert"
        )
    secrets = [config.url, config.password, found.get("password", "")]
    return Server(
        host=found.get("host", "localhost"),
        port=config.port or int(found.get("port", "3306")),
        database=found["database"],
        user=found["user"],
        password=found.get("password", ""),
        sslmode=mode,
        sslrootcert=found.get("sslrootcert", ""),
        sslcert=found.get("sslcert", ""),
        sslkey=found.get("sslkey", ""),
        connect_timeout_s=max(2, config.connect_timeout // 1_000_000),
        secrets=tuple(dict.fromkeys(secret for secret in secrets if secret)),
    )


def _from_url(url: str) -> dict[str, str]:
    """What a URL gives. The message never has the URL, which is a secret."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigError("url is not a URL that can be read", field="connection.url") from None
    if parts.scheme not in _SCHEMES:
        raise ConfigError("url must begin with mysql://", field="connection.url")
    found = {
        "host": unquote(parts.hostname or ""),
        "port": str(port) if port else "",
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "database": unquote(parts.path.removeprefix("/")),
    }
    allowed = ["sslmode", "sslrootcert", "sslcert", "sslkey"]
    for setting in filter(None, parts.query.split("&")):
        name, _, value = setting.partition("=")
        if name not in allowed:
            raise ConfigError(f"url has an unknown setting {name!r}", field="connection.url", allowed=allowed)
        found[name] = unquote(value)
    return {name: value for name, value in found.items() if value}
