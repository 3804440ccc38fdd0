"""Starts real Spark servers from pip's pyspark on free loopback ports, and stops them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
SPARK_SUBMIT = SPARK_CLASS.with_name("spark-submit")
START_S = 120


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(command: list[str], log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server in a process group of its own, all of which is gone afterwards."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"} | environment,
        )
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for_port(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended:\n{log.read_text()[-3000:]}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError(f"nothing listens on port {port}:\n{log.read_text()[-3000:]}")


@contextmanager
def standalone_cluster(folder: Path, *, workers: int = 2) -> Iterator[str]:
    """A master and its workers, one core each; yields the master's URL."""
    port, page = free_port(), free_port()
    log = folder / "master.log"
    master = [str(SPARK_CLASS), "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1"]
    with ExitStack() as stack:
        process = stack.enter_context(running([*master, "--port", str(port), "--webui-port", str(page)], log))
        wait_for_port(port, process, log)
        url = f"spark://127.0.0.1:{port}"
        for number in range(workers):
            worker = [str(SPARK_CLASS), "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1"]
            worker += ["--cores", "1", "--memory", "1g", "--webui-port", "0"]
            worker += ["--work-dir", str(folder / f"worker-{number}"), url]
            stack.enter_context(running(worker, folder / f"worker-{number}.log"))
        _wait_for_workers(page, workers)
        yield url


def _wait_for_workers(page: int, workers: int) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{page}/json/", timeout=5) as answer:
                if answer.read().count(b'"state" : "ALIVE"') >= workers:
                    return
        except OSError:
            pass
        time.sleep(0.2)
    raise RuntimeError("the workers did not register")


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """A Spark Connect server on `local[2]`; yields its URL."""
    port = free_port()
    log = folder / "connect.log"
    command = [str(SPARK_SUBMIT), "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += ["--master", "local[2,4]", "--conf", f"spark.connect.grpc.binding.port={port}"]
    command += ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.ui.enabled=false", "spark-internal"]
    with running(command, log) as process:
        wait_for_port(port, process, log)
        yield f"sc://127.0.0.1:{port}"
