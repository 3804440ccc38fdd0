"""A REST catalog for tests: one SeaweedFS process on loopback, which has S3 for the files too; its data go with it."""

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
from pathlib import Path
from typing import Any

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import RESTError
from requests.exceptions import RequestException

KEY, SECRET, WAREHOUSE = "test", "test-secret", "warehouse"
START_SECONDS = 120
STOP_SECONDS = 10
_PARTS = ("master", "volume", "filer", "s3", "admin")


def find_weed() -> str | None:
    """The program, beside this Python or on the path; None where it is not installed."""
    beside = Path(sys.executable).with_name("weed")
    return str(beside) if beside.exists() else shutil.which("weed")


@contextmanager
def rest_catalog(weed: str) -> Iterator[dict[str, Any]]:
    """The config of a running catalog, which is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="arroyo-iceberg-") as name:
        folder = Path(name)
        ports = _free_ports(2 * len(_PARTS) + 1)
        log = folder / "server.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                _command(weed, folder, ports),
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=os.environ | {"HOME": name, "TMPDIR": name, "S3_TABLE_BUCKET": WAREHOUSE},
                start_new_session=True,
            )
        try:
            config = {
                "type": "rest",
                "uri": f"http://127.0.0.1:{ports[-1]}",
                "warehouse": WAREHOUSE,
                "credential": f"{KEY}:{SECRET}",
                "properties": {
                    "s3.endpoint": f"http://127.0.0.1:{ports[2 * _PARTS.index('s3')]}",
                    "s3.access-key-id": KEY,
                    "s3.secret-access-key": SECRET,
                    "s3.region": "us-east-1",
                },
            }
            _wait(process, config, log)
            yield config
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
    command += [f"-s3.config={users}", f"-s3.port.iceberg={ports[-1]}", "-s3.port.lance=0"]
    command += [f"-s3.localSocket={folder}/s3.sock", f"-filer.localSocket={folder}/filer.sock"]
    command += ["-webdav=false", "-admin.ui=false", "-master.telemetry=false"]
    for part, port, internal in zip(_PARTS, ports[:-1:2], ports[1:-1:2], strict=True):
        command += [f"-{part}.port={port}", f"-{part}.port.grpc={internal}"]
    return command


def _free_ports(count: int) -> list[int]:
    """All at once, so that they differ."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


def _wait(process: subprocess.Popen[bytes], config: dict[str, Any], log: Path) -> None:
    """Until the catalog has the warehouse: it is made some time after the first answer."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            catalog = RestCatalog(
                "ready",
                **{name: config[name] for name in ("uri", "warehouse", "credential")},
                **{"oauth2-server-uri": f"{config['uri']}/v1/oauth/tokens"},
            )
            catalog.create_namespace_if_not_exists("ready")
            return
        except (RESTError, RequestException, AttributeError) as error:
            if process.poll() is not None or time.monotonic() > deadline:
                end = log.read_text(encoding="utf-8", errors="replace")[-2000:]
                raise RuntimeError(f"the REST catalog for tests did not start: {error}; {end}") from error
            time.sleep(0.1)
