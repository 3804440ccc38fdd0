"""A real MariaDB for tests: found where Debian puts it, run in a temporary folder, on a free port."""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pymysql
import pytest

from arroyo_core.errors import SetupError

from .waiting import wait_until

#: Who runs the server where the tests are run by root, whom it refuses; Debian's packages make this user.
ACCOUNT = "mysql"
USER = "tests"
PASSWORD = "only for tests"
DATABASE = "shop"
#: Small, faster than it is safe, and with a binlog that has all of a row.
SETTINGS = {
    "bind-address": "127.0.0.1",
    "log-bin": "binlog",
    "binlog-format": "ROW",
    "binlog-row-metadata": "FULL",
    "server-id": "1",
    # What is committed outlives the server, if not the machine.
    "innodb-flush-log-at-trx-commit": "2",
    "innodb-buffer-pool-size": "64M",
    "innodb-log-file-size": "16M",
    "innodb-use-native-aio": "0",
    "sync-binlog": "0",
    "max-connections": "60",
    # Not what our sessions want: they have to say what they need.
    "sql-mode": "ANSI_QUOTES,NO_BACKSLASH_ESCAPES",
    "default-time-zone": "+09:00",
}


class MysqlServer:
    """One server, with its data in a folder; it may be stopped, killed and started again."""

    def __init__(self, folder: Path, *, settings: Mapping[str, str] | None = None) -> None:
        """The folder is empty. Raises `SetupError` where there is no MariaDB."""
        self._server, install = find_binary("mariadbd"), find_binary("mariadb-install-db")
        self._folder = folder
        #: Where its files are, the binlog among them.
        self.data = folder / "data"
        self._log = folder / "server.log"
        self._account = _account()
        self._settings = {**SETTINGS, **(settings or {})}
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        shutil.copytree(_installed(install), self.data)
        if self._account:
            for path in (folder, *folder.rglob("*")):
                shutil.chown(path, ACCOUNT)

    @property
    def config(self) -> dict[str, object]:
        """The field `connection` of an operator."""
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "database": DATABASE,
            "user": USER,
            "password": PASSWORD,
        }

    @property
    def url(self) -> str:
        return f"mysql://{USER}:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{self.port}/{DATABASE}"

    def connect(self, database: str | None = DATABASE) -> Any:
        """A connection in autocommit, the caller's to close."""
        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            database=database,
            user=USER,
            password=PASSWORD,
            charset="utf8mb4",
            autocommit=True,
            init_command="set sql_mode = 'STRICT_ALL_TABLES', time_zone = '+00:00'",
        )

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements on a connection of their own; returns the rows of the last one."""
        with closing(self.connect()) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def empty(self) -> None:
        """Leave nothing in the database."""
        self.execute(f"drop database {DATABASE}", f"create database {DATABASE} character set utf8mb4")

    def start(self) -> None:
        """Return when it takes connections."""
        settings = {**self._settings, "port": str(self.port), "datadir": str(self.data)}
        settings |= {"socket": str(self._folder / "socket"), "pid-file": str(self._folder / "pid")}
        options = [f"--{name}={value}" for name, value in settings.items()]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._server, "--no-defaults", "--skip-name-resolve", *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self._account,  # type: ignore[arg-type]
            )
        wait_until(self._is_ready, problem=lambda: self._log.read_text(errors="replace")[-2000:])

    def stop(self) -> None:
        """End it in order."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            process.wait()

    def kill(self) -> None:
        """End it with SIGKILL, as a machine that loses its power does."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def restart(self) -> None:
        """Kill it and start it again."""
        self.kill()
        self.start()

    def _is_ready(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            raise SetupError(f"MariaDB has ended: {self._log.read_text(errors='replace')[-2000:]}")
        try:
            self.connect(None).close()
        except pymysql.OperationalError:
            return False
        return True


@cache
def _installed(install: str) -> Path:
    """The data of a server with an empty database, made once for all servers of a process; raises `SetupError`."""
    folder = Path(tempfile.mkdtemp(prefix="arroyo-mysql-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    account = _account()
    if account:
        shutil.chown(folder, ACCOUNT)
    grants = folder / "grants.sql"
    grants.write_text(
        "flush privileges;\n"  # until then there are no users
        f"create database {DATABASE} character set utf8mb4;\n"
        f"create user {USER}@'127.0.0.1' identified by '{PASSWORD}';\n"
        f"grant all on *.* to {USER}@'127.0.0.1' with grant option;\n"
    )
    grants.chmod(0o644)
    command = [install, "--no-defaults", f"--datadir={folder / 'data'}", "--skip-test-db", "--skip-name-resolve"]
    command += ["--auth-root-authentication-method=normal", f"--extra-file={grants}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **account)  # type: ignore[call-overload]
    if done.returncode:
        raise SetupError(f"mariadb-install-db failed: {done.stderr or done.stdout}")
    return folder / "data"


def find_binary(name: str) -> str:
    """A program of MariaDB; raises `SetupError` where there is none."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/bin")
    if found is None:
        raise SetupError("no MariaDB is installed: apt-get install mariadb-server")
    return found


@contextmanager
def running_server(settings: Mapping[str, str] | None = None) -> Iterator[MysqlServer]:
    """A server with an empty database, stopped and removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="arroyo-mysql-"))
    folder.chmod(0o755)
    try:
        server = MysqlServer(folder, settings=settings)
        try:
            server.start()
            yield server
        finally:
            server.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@cache
def shared_server() -> MysqlServer:
    """A server for all tests that leave it running. Where there is none, they are skipped; in CI they fail."""
    running = running_server()
    try:
        server = running.__enter__()
    except SetupError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no MariaDB: {error}")
    atexit.register(running.__exit__, None, None, None)
    return server


def _account() -> dict[str, object]:
    """How to start a process of the server: as somebody else, where this is root."""
    if os.geteuid() != 0:
        return {}
    try:
        found = pwd.getpwnam(ACCOUNT)
    except KeyError:
        raise SetupError(f"MariaDB does not run as root, and there is no user {ACCOUNT!r}") from None
    return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": [], "cwd": "/"}


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
