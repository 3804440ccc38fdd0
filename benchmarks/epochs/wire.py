"""`python -m benchmarks.epochs.wire`: rows through one connection between two live workers: Unix socket, TCP, TLS."""

from __future__ import annotations

import argparse
import multiprocessing
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe

import pyarrow as pa

from arroyo_core.runtime.live.access import Access
from arroyo_core.runtime.live.listener import Listener, connect
from arroyo_core.runtime.live.tls import make_identity
from arroyo_core.runtime.live.wire import Connection, MessageKind

ROW_BYTES = 24
FRAME = pa.py_buffer(bytes(range(256)) * 4096)
#: As many as the head of a frame has.
HEAD = bytes(43)
#: Small messages there and back.
TURNS = 500
ENDS = b"calling", b"called"


@dataclass(frozen=True, slots=True)
class Measured:
    rows_per_s: float
    #: Of both processes together.
    rows_per_cpu_s: float
    turn_us: float


def serve(access: Access, host: str | None, pipe: Pipe) -> None:
    """Take frames; tell how much processor time that took, and send small messages back."""

    def answer(connection: Connection) -> None:
        while (message := connection.receive()) is not None:
            if message.kind is not MessageKind.FRAME:
                connection.send(message.kind, b"%f" % time.process_time())

    listener = Listener(access, answer, role=ENDS[1], expected=ENDS[0], peers=1, host=host)
    pipe.send(listener.address)
    pipe.recv()
    listener.close()


def measure(access: Access, host: str | None, frames: int) -> Measured:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(access, host, there))
    process.start()
    connection = connect(here.recv(), access, role=ENDS[0], expected=ENDS[1])
    send(connection, frames // 10)
    cpu_s, started_s = used(connection), time.perf_counter()
    send(connection, frames)
    cpu_s, duration_s = used(connection) - cpu_s, time.perf_counter() - started_s
    started_s = time.perf_counter()
    for _ in range(TURNS):
        used(connection)
    turn_s = (time.perf_counter() - started_s) / TURNS
    connection.close()
    here.send(None)
    process.join()
    rows = frames * FRAME.size / ROW_BYTES
    return Measured(rows / duration_s, rows / cpu_s, turn_s * 1e6)


def send(connection: Connection, frames: int) -> None:
    for _ in range(frames):
        connection.send(MessageKind.FRAME, HEAD, FRAME)


def used(connection: Connection) -> float:
    """The processor time of both ends, when all that was sent is taken."""
    connection.send(MessageKind.DONE)
    answer = connection.receive()
    assert answer is not None
    return float(answer.head) + time.process_time()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.epochs.wire", description=__doc__)
    parser.add_argument("--frames", type=int, default=2000, help="of 1 MiB, in each run (default: 2000)")
    parser.add_argument("--runs", type=int, default=3, help="of each, in turns (default: 3)")
    args = parser.parse_args()
    plain, encrypted = Access(b"secret"), Access(b"secret", make_identity())
    ways = {"Unix socket": (plain, None), "TCP": (plain, "127.0.0.1"), "TLS": (encrypted, "127.0.0.1")}
    print("| | rows/s | rows per second of processor | there and back |\n|---|---:|---:|---:|")
    for _ in range(args.runs):
        for name, (access, host) in ways.items():
            found = measure(access, host, args.frames)
            print(
                f"| {name} | {found.rows_per_s / 1e6:.0f} M | {found.rows_per_cpu_s / 1e6:.0f} M "
                f"| {found.turn_us:.0f} µs |",
                flush=True,
            )


if __name__ == "__main__":
    main()
