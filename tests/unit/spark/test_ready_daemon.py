"""The daemon that the driver starts, asked for as Spark asks for one; with pyspark, but without a JVM."""

import os
import socket
import struct
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from arroyo_core.spark.daemon import MODULE
from arroyo_core.spark.ready_daemon import ReadyDaemon


@pytest.fixture
def sockets(tmp_path, monkeypatch):
    """A short path: those of sockets may have a hundred characters."""
    monkeypatch.chdir(tmp_path)
    return "."


@pytest.fixture
def ready():
    daemon = ReadyDaemon()
    yield daemon
    daemon.stop()


@contextmanager
def asked(environment, sockets):
    """What Spark starts, as it starts it, and the address that it is told."""
    process = subprocess.Popen(
        [sys.executable, "-m", MODULE, "pyspark.worker"],
        env={
            **os.environ,
            **environment,
            "PYTHON_UNIX_DOMAIN_ENABLED": "true",
            "PYTHON_WORKER_FACTORY_SOCK_DIR": sockets,
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        (length,) = struct.unpack("!i", process.stdout.read(4))
        yield process, process.stdout.read(length).decode()


@contextmanager
def worker(address):
    """The pid of a worker that is forked for a connection."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        (pid,) = struct.unpack("!i", connection.recv(4, socket.MSG_WAITALL))
        yield pid


def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_workers_are_forked_from_the_daemon_that_is_ready(ready, sockets):
    with asked(ready.environment, sockets) as (process, address):
        with worker(address) as pid:
            assert parent_of(pid) == ready._process.pid
        process.stdin.close()
        # It ends as Spark's own does, and so does what Spark has started.
        ready._process.wait()
        assert process.wait() == 0


def test_whoever_asks_next_becomes_a_daemon(ready, sockets):
    with asked(ready.environment, sockets) as (first, _), asked(ready.environment, sockets) as (second, address):
        with worker(address) as pid:
            assert parent_of(pid) == second.pid
        first.stdin.close()
        second.stdin.close()


def test_a_daemon_that_was_killed_is_replaced(ready, sockets):
    ready._process.kill()
    ready._process.wait()
    with asked(ready.environment, sockets) as (process, address):
        with worker(address) as pid:
            assert parent_of(pid) == process.pid
        process.stdin.close()


def test_what_spark_has_started_ends_with_the_daemon_whatever_its_workers_do(ready, sockets):
    with asked(ready.environment, sockets) as (process, address), worker(address):
        ready._process.kill()
        assert process.wait() == 0


def test_a_daemon_that_nobody_asks_for_goes_with_its_driver(ready):
    folder = Path(ready.environment["ARROYO_READY_DAEMON"]).parent
    ready.stop()
    assert ready._process.wait() == 0
    ready._waiting.join()
    assert not folder.exists()


def test_without_one_spark_gets_an_ordinary_daemon(sockets):
    with asked({}, sockets) as (process, address):
        with worker(address) as pid:
            assert parent_of(pid) == process.pid
        process.stdin.close()


def test_what_spark_starts_needs_no_pyarrow_to_ask():
    code = "import sys, arroyo_core.spark.daemon_entry; print('pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
