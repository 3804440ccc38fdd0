"""What Spark's own pages show of a job, and who can see them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from ..waiting import wait_until
from .servers import free_port

PIPELINE = """\
name: paged
checkpoint: {{url: {folder}/state, interval: 500ms}}
nodes:
  - {{id: numbers, operator: impulse.source, config: {{rate: 500}}}}
  - {{id: keyed, operator: std.key_by, inputs: [numbers], config: {{keys: [counter]}}}}
  - {{id: latest, operator: std.deduplicate, inputs: [keyed], config: {{keys: [counter], ttl: 1m}}}}
  - {{id: out, operator: std.blackhole, inputs: [latest]}}
"""

LISTENING = "0A"


def ask(port: int, path: str) -> list[dict[str, object]]:
    try:
        with urlopen(f"http://127.0.0.1:{port}/api/v1/{path}") as answer:
            found: list[dict[str, object]] = json.load(answer)
            return found
    except (URLError, ConnectionError):
        return []


def listening_addresses(port: int) -> set[str]:
    """The local addresses, as the kernel writes them, that somebody listens on at the port."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            _, local, _, state, *_ = line.split()
            address, _, number = local.rpartition(":")
            if state == LISTENING and int(number, 16) == port:
                found.add(address)
    return found


def is_loopback(address: str) -> bool:
    # 127.0.0.1, also as an address of IPv6; words are in the order of bytes of the machine.
    return address.endswith("0100007F")


def test_stages_are_called_by_their_waves_and_pages_are_for_this_machine(tmp_path: Path) -> None:
    path = tmp_path / "paged.yaml"
    path.write_text(PIPELINE.format(folder=tmp_path))
    port = free_port()
    arroyo = str(Path(sys.executable).with_name("arroyo"))
    command = [arroyo, "run", str(path), "--master", "local[2]", "--conf", f"spark.ui.port={port}"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path)
    try:
        wait_until(
            lambda: bool(list(tmp_path.glob("state/paged/checkpoints/2/*"))) or process.poll() is not None,
            problem=(tmp_path / "log").read_text,
        )
        assert process.poll() is None, (tmp_path / "log").read_text()
        (application,) = ask(port, "applications")
        assert application["name"] == "arroyo paged"
        jobs = {str(job.get("description")): job for job in ask(port, f"applications/{application['id']}/jobs")}
        assert jobs["arroyo paged: epoch 1, 2 waves"]["name"] == "wave_1"
        # A stage that has not begun yet has no such time.
        stages = ask(port, f"applications/{application['id']}/stages")
        ours = {stage["name"] for stage in stages if stage.get("submissionTime")}
        assert {"wave_0", "wave_1"} <= ours
        # The only other job starts the workers.
        described = [name for name in jobs if not name.startswith("arroyo paged: epoch ")]
        assert described == ["arroyo: start Python workers"]
        addresses = listening_addresses(port)
        assert addresses
        assert all(map(is_loopback, addresses)), addresses
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0, (tmp_path / "log").read_text()
