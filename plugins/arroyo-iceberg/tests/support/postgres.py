"""A PostgreSQL server for tests, on loopback; its data go with it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Who runs it where the tests are root's: the server refuses to.
USER = "postgres"
PASSWORD = "a word/of:its own"
START_SECONDS = 120
STOP_SECONDS = 20


def find_postgres() -> Path | None:
    """The folder of the server's programs; None where it is not installed."""
    found = shutil.which("postgres")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


@contextmanager
def postgres_server(programs: Path) -> Iterator[int]:
    """The port of a running server, gone afterwards."""
    user = USER if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="arroyo-iceberg-postgres-") as name, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
        probe.close()
        folder = Path(name)
        (folder / "password").write_text(PASSWORD, encoding="utf-8")
        if user:
            shutil.chown(folder, user)
            shutil.chown(folder / "password", user)
        data, log = folder / "data", folder / "server.log"
        subprocess.run(
            [programs / "initdb", "-D", data, "-U", USER, "-A", "scram-sha-256", f"--pwfile={folder}/password", "-N"],
            check=True,
            capture_output=True,
            user=user,
            cwd=folder,
        )
        with log.open("wb") as out:
            process = subprocess.Popen(
                [programs / "postgres", "-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", folder, "-F"],
                stdout=out,
                stderr=subprocess.STDOUT,
                user=user,
                cwd=folder,
            )
        try:
            _wait(process, port, log)
            yield port
        finally:
            # The fast way: the other one waits for connections, which pools keep.
            process.send_signal(signal.SIGINT)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    import psycopg

    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with psycopg.connect(host="127.0.0.1", port=port, user=USER, password=PASSWORD, dbname="postgres"):
                return
        except psycopg.OperationalError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                end = log.read_text(encoding="utf-8", errors="replace")[-2000:]
                raise RuntimeError(f"PostgreSQL did not start: {error}; {end}") from error
            time.sleep(0.05)
