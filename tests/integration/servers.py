"""Starts real Spark servers from pip's pyspark on free loopback ports, and stops them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from ..waiting import wait_until
from .processes import Process, end_session, session_processes

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
SPARK_SUBMIT = SPARK_CLASS.with_name("spark-submit")
START_S = 120

#: Of servers and executors, which live for seconds: to compile their code well costs more than it gives.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Server:
    """A server in a session of its own: all that it starts, and what those start, can be found and ended."""

    def __init__(self, command: Sequence[str], log: Path, **environment: str) -> None:
        self._command = list(command)
        self.log = log
        self._environment = {
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "JAVA_TOOL_OPTIONS": SHORT_LIVED,
        } | environment
        #: Of all its lives: what it started may outlive it for a while.
        self._sessions: list[int] = []
        self.process = self._start()

    def processes(self) -> list[Process]:
        """The server and all that came from it, the current life last."""
        return [process for session in self._sessions for process in session_processes(session)]

    def kill(self) -> None:
        """SIGKILL the server alone: those that it started are left to notice."""
        self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        """Start it again after it was killed."""
        self.process = self._start()

    def stop(self) -> None:
        """End it and all that came from it."""
        for session in self._sessions:
            end_session(session)
        self.process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as out:
            process = subprocess.Popen(
                self._command,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=os.environ | self._environment,
            )
        self._sessions.append(process.pid)
        return process


@contextmanager
def running(command: Sequence[str], log: Path, **environment: str) -> Iterator[Server]:
    """A server, all of which is gone afterwards."""
    server = Server(command, log, **environment)
    try:
        yield server
    finally:
        server.stop()


def wait_for_port(port: int, server: Server) -> None:
    def is_up() -> bool:
        if server.process.poll() is not None:
            raise RuntimeError(f"the server ended:\n{server.log.read_text()[-3000:]}")
        return is_listening(port)

    wait_until(
        is_up,
        patience_s=START_S,
        problem=lambda: f"nothing listens on port {port}:\n{server.log.read_text()[-3000:]}",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A running standalone cluster."""

    url: str
    workers: Sequence[Server]


@contextmanager
def standalone_cluster(
    folder: Path,
    *,
    workers: int = 2,
    cores: int = 1,
    environments: Sequence[Mapping[str, str]] = (),
    settings: Mapping[str, str] | None = None,
) -> Iterator[Cluster]:
    """A master and its workers, of so many cores; each has caches of its own for state and bundles, as a host has.

    `environments` are further variables, of the first worker first; `settings` are of the master and the workers
    themselves.
    """
    options = " ".join(f"-D{name}={value}" for name, value in (settings or {}).items())
    port, page = free_port(), free_port()
    master = [str(SPARK_CLASS), "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1"]
    master += ["--port", str(port), "--webui-port", str(page)]
    with ExitStack() as stack:
        server = stack.enter_context(running(master, folder / "master.log", SPARK_DAEMON_JAVA_OPTS=options))
        wait_for_port(port, server)
        url = f"spark://127.0.0.1:{port}"
        started = []
        for number in range(workers):
            # Addresses of their own: to Spark they are different hosts, which matters for second attempts and shuffles.
            host = f"127.0.0.{number + 1}"
            worker = [str(SPARK_CLASS), "org.apache.spark.deploy.worker.Worker", "--host", host]
            worker += ["--cores", str(cores), "--memory", "1g", "--webui-port", "0"]
            worker += ["--work-dir", str(folder / f"worker-{number}"), url]
            caches = {
                "ARROYO_STATE_CACHE": str(folder / f"cache-{number}"),
                "ARROYO_UDF_CACHE": str(folder / f"udf-cache-{number}"),
                "SPARK_DAEMON_JAVA_OPTS": options,
                "SPARK_LOCAL_IP": host,
            }
            environment = caches | dict(environments[number] if number < len(environments) else {})
            started.append(stack.enter_context(running(worker, folder / f"worker-{number}.log", **environment)))
        _wait_for_workers(page, workers)
        yield Cluster(url=url, workers=started)


def _wait_for_workers(page: int, workers: int) -> None:
    def are_registered() -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{page}/json/", timeout=5) as answer:
                return bool(answer.read().count(b'"state" : "ALIVE"') >= workers)
        except OSError:
            return False

    wait_until(are_registered, patience_s=START_S, problem=lambda: "the workers did not register")


def connect_command(port: int) -> list[str]:
    """Starts a Spark Connect server on `local[2]`."""
    command = [str(SPARK_SUBMIT), "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    if not list((SPARK_CLASS.parents[1] / "jars").glob("spark-connect_*.jar")):
        # Before Spark 4 it was apart, on Maven Central.
        command += ["--packages", f"org.apache.spark:spark-connect_2.12:{pyspark.__version__}"]
    command += ["--master", "local[2,4]", "--conf", f"spark.connect.grpc.binding.port={port}"]
    command += ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.ui.enabled=false", "spark-internal"]
    return command


@dataclass(frozen=True, slots=True, kw_only=True)
class Connect:
    """A running Spark Connect server."""

    url: str
    server: Server

    def restart(self) -> None:
        """Kill the server, start it again at its old address, and wait until it listens."""
        self.server.stop()
        self.server.restart()
        wait_for_port(int(self.url.rpartition(":")[2]), self.server)


@contextmanager
def connect_server(folder: Path, **environment: str) -> Iterator[Connect]:
    """A server, with further variables."""
    port = free_port()
    with running(connect_command(port), folder / "connect.log", **environment) as server:
        wait_for_port(port, server)
        yield Connect(url=f"sc://127.0.0.1:{port}", server=server)
