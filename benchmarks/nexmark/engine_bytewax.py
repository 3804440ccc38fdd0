"""Bytewax: two processes with a worker each and recovery on. Rows are read with pyarrow and written as lines."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

from .tasks import Task, Timing

SNAPSHOT_S = 10


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def run_flow(flow: str, task: Task) -> float:
    """Start the processes as the documentation says, and wait for them; returns the seconds that they took."""
    recovery = Path(task.scratch) / "recovery"
    recovery.mkdir()
    subprocess.run([sys.executable, "-m", "bytewax.recovery", str(recovery), str(task.cores)], check=True)
    addresses = ";".join(f"127.0.0.1:{free_port()}" for _ in range(task.cores))
    start = time.perf_counter()
    command = [sys.executable, "-m", "bytewax.run", flow]
    kept = ["-r", str(recovery), "-s", str(SNAPSHOT_S), "-b", "0"]
    workers = [subprocess.Popen([*command, *kept, "-i", str(index), "-a", addresses]) for index in range(task.cores)]
    codes = [worker.wait() for worker in workers]
    if any(codes):
        raise SystemExit(f"the workers ended with {codes}")
    return time.perf_counter() - start


def main() -> None:
    task = Task.read(Path(sys.argv[1]))
    Path(task.answer).mkdir()
    job_s = run_flow(f"{__package__}.bytewax_flows:flow('{sys.argv[1]}')", task)
    Timing(job_s=job_s, epochs=1, answer="csv", versions={"bytewax": version("bytewax")}).write(Path(sys.argv[2]))


if __name__ == "__main__":
    main()
