"""Spark may run a stage again whose task has died; workers that it starts so find nobody, and end."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import struct
import threading
from typing import TYPE_CHECKING

import pytest

from arroyo_core.runtime.live.access import Access
from arroyo_core.runtime.live.crew import LiveWorkersError
from arroyo_core.runtime.live.listener import Listener
from arroyo_core.runtime.live.wire import Connection, MessageKind
from arroyo_core.runtime.live.worker import DRIVER, WORKER, Ticket
from arroyo_core.spark.live import SparkLauncher

from ..waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKERS = 2
_CREDENTIALS = struct.Struct("3i")


class Driver:
    """Hears the workers of a stage, and does nothing with them."""

    def __init__(self) -> None:
        self.access = Access(secrets.token_bytes(32))
        self.connections: list[Connection] = []
        #: The processes of the workers that have come.
        self.processes: list[int] = []
        self.is_over = threading.Event()
        self.listener = Listener(self.access, self._hear, role=DRIVER, expected=WORKER, peers=WORKERS)
        self.ticket = Ticket(self.listener.address, self.access, WORKERS, True)

    def _hear(self, connection: Connection) -> None:
        hello = connection.receive()
        assert hello is not None
        assert hello.kind is MessageKind.HELLO
        sock = connection._sock
        assert isinstance(sock, socket.socket)
        found = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        self.processes.append(_CREDENTIALS.unpack(found)[0])
        self.connections.append(connection)
        self.is_over.wait()

    def leave(self) -> None:
        """As a driver that has lost a worker."""
        self.listener.close()
        for connection in self.connections:
            connection.close()
        self.is_over.set()


@pytest.fixture
def driver():
    made = Driver()
    yield made
    made.leave()


def launcher(spark: SparkSession) -> SparkLauncher:
    return SparkLauncher(spark.sparkContext, is_one_machine=True)


def test_what_spark_does_after_the_loss_of_a_worker_brings_no_other_workers(
    spark: SparkSession, driver: Driver
) -> None:
    """Whether Spark tries the stage again depends on who ends first; the driver hears nothing of it."""
    tracker = spark.sparkContext.statusTracker()
    stage = launcher(spark).start(driver.ticket, "retried")
    wait_until(lambda: len(driver.processes) == WORKERS)
    driver.listener.close()
    os.kill(driver.processes[0], signal.SIGKILL)
    driver.leave()
    wait_until(lambda: stage.failure() is not None)
    assert len(driver.processes) == WORKERS
    assert isinstance(stage.failure(), LiveWorkersError)
    assert list(tracker.getActiveStageIds()) == []


def test_workers_that_are_started_after_their_driver_has_left_end(spark: SparkSession, driver: Driver) -> None:
    driver.leave()
    stage = launcher(spark).start(driver.ticket, "late")
    wait_until(lambda: stage.failure() is not None)
    assert str(stage.failure()) == "the workers of the job have ended"
    assert driver.processes == []
