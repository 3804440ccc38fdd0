"""Servers in processes of their own, and consoles in this one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from arroyo_console.building import ConsoleSettings, build_console
from arroyo_console.planning.texts import TextSettings
from arroyo_console.service import Console
from arroyo_console.supervision.launching import LaunchSettings
from arroyo_console.values import State

#: Machines that run tests are busy.
PATIENCE_S = 120.0


def wait_for(what: Callable[[], Any], *, patience_s: float = PATIENCE_S) -> Any:
    """What it returns as soon as that is true; fails with its last answer."""
    end_s = time.monotonic() + patience_s
    while True:
        found = what()
        if found:
            return found
        assert time.monotonic() < end_s, f"it did not come to that: {found!r}"
        time.sleep(0.1)


def console_in(folder: Path, **settings: Any) -> Console:
    """A console whose jobs run without Spark."""
    return build_console(
        ConsoleSettings(
            data=folder,
            launch=LaunchSettings(is_in_process=True),
            texts=settings.pop("texts", TextSettings()),
            **settings,
        )
    )


@contextmanager
def started(console: Console) -> Iterator[Console]:
    """Supervises within; then ends its jobs, so that no test leaves a process."""
    console.start()
    try:
        yield console
    finally:
        end_jobs(console)
        console.stop()


def end_jobs(console: Console) -> None:
    for job in console.jobs(limit=500).items:
        if job.pid is not None:
            kill(job.pid)


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def wait_for_state(console: Console, job_id: str, state: State) -> Any:
    def there() -> Any:
        job = console.job(job_id)
        assert state is State.FAILED or job.summary.state is not State.FAILED, job
        return job if job.summary.state is state else None

    return wait_for(there)


class ServerProcess:
    """`arroyo serve` in a process."""

    def __init__(self, data: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        command = [sys.executable, "-m", "arroyo_console.planning.command", "serve", "--no-pages", "--in-process"]
        self.process = subprocess.Popen(
            [*command, "--data", str(data), "--port", str(self.port), *arguments],
            env={**os.environ, **(environment or {})},
            stderr=subprocess.PIPE,
        )
        wait_for(self._answers)

    def _answers(self) -> bool:
        if self.process.poll() is not None:
            assert self.process.stderr is not None
            raise AssertionError(self.process.stderr.read().decode())
        try:
            return httpx.get(f"{self.url}/v1/ping", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    def get(self, path: str, **query: Any) -> Any:
        answer = httpx.get(f"{self.url}{path}", params=query, timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: Any) -> Any:
        answer = httpx.post(f"{self.url}{path}", json=body, timeout=180)
        assert answer.is_success, answer.text
        return answer.json()

    def patch(self, path: str, body: Any) -> Any:
        answer = httpx.patch(f"{self.url}{path}", json=body, timeout=180)
        assert answer.is_success, answer.text
        return answer.json()

    def kill(self) -> None:
        self.process.kill()
        self.close()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(60)
        if self.process.stderr is not None:
            self.process.stderr.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
