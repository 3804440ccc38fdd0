"""What other users of the machine can do to a driver and its Spark."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ..other_user import try_as_other_user
from .processes import Process, session_processes
from .waiting_driver import SECRET_VARIABLE

#: States of sockets, as the kernel writes them.
LISTENING, UNCONNECTED = "0A", "01"

READ_ARGUMENTS = """
import pathlib, sys
def arguments():
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes()
        except OSError:
            continue
told = list(arguments())
print(any(b"org.apache.spark" in line for line in told), any(sys.argv[1][::-1].encode() in line for line in told))
"""
CONNECT = """
import socket, sys
socket.socket(socket.AF_UNIX).connect(sys.argv[1])
"""
#: A request of Spark's protocol: the length of the frame, its type, a number, the length of its body, and that.
REQUEST = """
import socket, struct, sys
body = b"\\0" * 64
frame = struct.pack(">qbqi", 8 + 1 + 8 + 4 + len(body), 3, 7, len(body)) + body
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
    connection.sendall(frame)
    connection.settimeout(20)
    print(connection.recv(1 << 16).decode(errors="replace"))
"""


@dataclass(frozen=True)
class Driver:
    secret: str
    #: Of its own, of its JVM, and of Python workers.
    processes: list[Process]

    def sockets(self, pids: list[int]) -> set[str]:
        found = set()
        for pid in pids:
            for path in Path(f"/proc/{pid}/fd").iterdir():
                try:
                    target = str(path.readlink())
                except OSError:
                    continue
                if target.startswith("socket:["):
                    found.add(target[len("socket:[") : -1])
        return found

    def listening_ports(self, pids: list[int]) -> list[tuple[str, int]]:
        """The addresses, as the kernel writes them, and the ports."""
        own, found = self.sockets(pids), []
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                address, _, port = fields[1].rpartition(":")
                if fields[3] == LISTENING and fields[9] in own:
                    found.append((address, int(port, 16)))
        return found

    def socket_files(self) -> set[str]:
        own = self.sockets([process.pid for process in self.processes])
        lines = (line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:])
        return {fields[7] for fields in lines if len(fields) > 7 and fields[6] in own and fields[5] == UNCONNECTED}


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    secret = secrets.token_hex(16)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.waiting_driver"],
        env=os.environ | {SECRET_VARIABLE: secret},
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "2 tasks with the secret\n"
        yield Driver(secret, session_processes(process.pid))
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


def test_settings_are_not_among_the_arguments_of_processes(driver: Driver) -> None:
    # Backwards, because it is among the arguments of whoever looks for it.
    assert try_as_other_user(READ_ARGUMENTS, driver.secret[::-1]) == "True False"


def test_sockets_of_workers_are_closed_to_others_whatever_the_umask_says(driver: Driver) -> None:
    found = driver.socket_files()
    # That of the Python daemon, and that which takes what tasks have counted.
    assert len(found) >= 2
    assert {try_as_other_user(CONNECT, path) for path in found} == {"PermissionError: [Errno 13] Permission denied"}


def test_ports_are_those_of_this_machine(driver: Driver) -> None:
    found = driver.listening_ports([process.pid for process in driver.processes])
    assert found
    assert {address[-8:] for address, _ in found} == {"0100007F"}


def test_ports_of_spark_answer_nobody_who_does_not_know_its_secret(driver: Driver) -> None:
    """But the pages, which are for reading, and the port for the driver's program, which has a secret of its own."""
    (jvm,) = (process for process in driver.processes if process.is_driver_jvm)
    answers = [try_as_other_user(REQUEST, port) for _, port in driver.listening_ports([jvm.pid])]
    assert sum("SaslMessage" in answer for answer in answers) == 2
    for answer in answers:
        assert "SaslMessage" in answer or "400 Bad Request" in answer or "TimeoutError" in answer or not answer


def test_nothing_is_left_of_what_spark_was_started_with(driver: Driver) -> None:
    (jvm,) = (process for process in driver.processes if process.is_driver_jvm)
    (file,) = (word for word in jvm.command.split() if word.endswith("settings.conf"))
    assert not Path(file).exists()
    assert not Path(file).parent.exists()
