"""A real PostgreSQL for tests: found where Debian puts it, run in a temporary folder, on a free port."""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import psycopg
import pytest

from arroyo_core.errors import SetupError

from .waiting import wait_until

#: Who runs the server where the tests are run by root, whom it refuses; Debian's packages make this user.
ACCOUNT = "postgres"
USER = "tests"
PASSWORD = "only for tests"
DATABASE = "shop"
#: Faster than it is safe, and ready for logical replication.
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "wal_level": "logical",
    "max_replication_slots": "20",
    "max_wal_senders": "20",
    "max_connections": "60",
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "log_min_messages": "log",
}


class PostgresServer:
    """One server, with its data in a folder; it may be stopped, killed and started again."""

    def __init__(self, folder: Path, *, settings: Mapping[str, str] | None = None) -> None:
        """The folder is empty. Raises `SetupError` where there is no PostgreSQL."""
        self._bin = find_binaries()
        self._data = folder / "data"
        self._log = folder / "server.log"
        self._account = _account()
        self._settings = {**SETTINGS, **(settings or {})}
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        shutil.copytree(_initialized(self._bin), self._data)
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

    def connect(self, database: str = DATABASE) -> psycopg.Connection[tuple[object, ...]]:
        """A connection in autocommit, the caller's to close."""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, dbname=database, user=USER, password=PASSWORD, autocommit=True
        )

    def execute(self, *statements: str) -> list[tuple[object, ...]]:
        """Run statements on a connection of their own; returns the rows of the last one."""
        with self.connect() as connection:
            rows: list[tuple[object, ...]] = []
            for statement in statements:
                cursor = connection.execute(statement.encode())
                rows = cursor.fetchall() if cursor.description else []
            return rows

    def start(self) -> None:
        """Return when it takes connections; makes the database at the first start."""
        settings = {**self._settings, "port": str(self.port)}
        options = [text for name, value in settings.items() for text in ("-c", f"{name}={value}")]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._bin / "postgres"), "-D", str(self._data), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self._account,  # type: ignore[arg-type]
            )
        wait_until(self._is_ready, problem=lambda: self._log.read_text(errors="replace")[-2000:])
        with self.connect("postgres") as connection:
            if not connection.execute("select 1 from pg_database where datname = %s", [DATABASE]).fetchall():
                connection.execute(f"create database {DATABASE}".encode())

    def stop(self) -> None:
        """End it at once and in order: sessions are told."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """End all its processes with SIGKILL, as a machine that loses its power does."""
        process = self._process
        if process is None:
            return
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._process = None
        # The postmaster's children have process groups of their own: they end when they see that it is gone.
        wait_until(lambda: not _is_used(self._data))
        (self._data / "postmaster.pid").unlink(missing_ok=True)

    def restart(self) -> None:
        """Kill it and start it again."""
        self.kill()
        self.start()

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(number)
            process.wait()

    def _is_ready(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            raise SetupError(f"PostgreSQL has ended: {self._log.read_text(errors='replace')[-2000:]}")
        try:
            self.connect("postgres").close()
        except psycopg.OperationalError:
            return False
        return True


@cache
def _initialized(binaries: Path) -> Path:
    """The data of a server, made once for all servers of a process; raises `SetupError`."""
    folder = Path(tempfile.mkdtemp(prefix="arroyo-postgres-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    account = _account()
    if account:
        shutil.chown(folder, ACCOUNT)
    secret = folder / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    # C.UTF-8 is on every Debian; the order of its texts is that of their bytes.
    command = [str(binaries / "initdb"), "-D", str(folder / "data"), "-U", USER, "-A", "scram-sha-256"]
    command += ["--pwfile", str(secret), "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **account)  # type: ignore[call-overload]
    if done.returncode:
        raise SetupError(f"initdb failed: {done.stderr or done.stdout}")
    return folder / "data"


def find_binaries() -> Path:
    """The folder of the newest PostgreSQL of this machine; raises `SetupError` where there is none."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    if found:
        return max(found, key=lambda folder: int(folder.parent.name) if folder.parent.name.isdecimal() else 0)
    on_path = shutil.which("postgres")
    if on_path is None:
        raise SetupError("no PostgreSQL is installed: apt-get install postgresql")
    return Path(on_path).resolve().parent


@contextmanager
def running_server(settings: Mapping[str, str] | None = None) -> Iterator[PostgresServer]:
    """A server with an empty database, stopped and removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="arroyo-postgres-"))
    folder.chmod(0o755)
    try:
        server = PostgresServer(folder, settings=settings)
        try:
            server.start()
            yield server
        finally:
            server.kill()  # an orderly end would wait for streams that are still open
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@cache
def shared_server() -> PostgresServer:
    """A server for all tests that leave it running. Where there is none, they are skipped; in CI they fail."""
    running = running_server()
    try:
        server = running.__enter__()
    except SetupError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no PostgreSQL: {error}")
    atexit.register(running.__exit__, None, None, None)
    return server


def _account() -> dict[str, object]:
    """How to start a process of the server: as somebody else, where this is root."""
    if os.geteuid() != 0:
        return {}
    try:
        found = pwd.getpwnam(ACCOUNT)
    except KeyError:
        raise SetupError(f"PostgreSQL does not run as root, and there is no user {ACCOUNT!r}") from None
    return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": [], "cwd": "/"}


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def _is_used(data: Path) -> bool:
    """Whether a process of the server still works in this folder."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if (entry / "cwd").resolve(strict=True) == data:
                    return True
            except OSError:
                continue
    return False
