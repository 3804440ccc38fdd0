"""Hosts with networks of their own on this machine: namespaces of Linux, joined by a switch that is one, too."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from ..waiting import wait_until
from .servers import SPARK_CLASS, START_S, Cluster, Server, running

#: Nobody outside of these namespaces has or sees these addresses.
NETWORK = "10.77.0"
MASTER_PORT = 7077


class NoHostsError(Exception):
    """This machine does not allow networks of one's own."""


def ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoHostsError(f"ip {' '.join(words)}: {done.stderr.strip()}")


@dataclass(frozen=True, slots=True)
class Host:
    """A namespace, and its address there."""

    namespace: str
    address: str
    switch: str

    @property
    def port(self) -> str:
        """Its end of the cable at the switch."""
        return f"port{self.address.rpartition('.')[2]}"

    def command(self, words: Sequence[str]) -> list[str]:
        """What runs a command on this host."""
        return ["ip", "netns", "exec", self.namespace, *words]

    @contextmanager
    def unplugged(self) -> Iterator[None]:
        """Its cable is pulled: what it sends, and what is sent to it, is lost, and nobody is told."""
        ip("-n", self.switch, "link", "set", self.port, "down")
        try:
            yield
        finally:
            ip("-n", self.switch, "link", "set", self.port, "up")

    @contextmanager
    def cut_from(self, other: Host) -> Iterator[None]:
        """What the two send to each other is lost, and nothing else."""
        with ExitStack() as stack:
            for here, there in ((self, other), (other, self)):
                route = ("blackhole", f"{there.address}/32")
                ip("-n", here.namespace, "route", "add", *route)
                stack.callback(ip, "-n", here.namespace, "route", "del", *route)
            yield

    def slow_down(self, *, mbit: int) -> None:
        """So much in a second at most, from here to others."""
        limit = ["rate", f"{mbit}mbit", "burst", "64kb", "latency", "100ms"]
        words = ["-n", self.namespace, "qdisc", "add", "dev", "eth0", "root", "tbf", *limit]
        done = subprocess.run(["tc", *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise NoHostsError(f"tc {' '.join(words)}: {done.stderr.strip()}")


@contextmanager
def made_hosts(count: int) -> Iterator[list[Host]]:
    """So many, which reach each other; all of it is gone afterwards. Raises `NoHostsError` where it cannot be."""
    if os.getuid() != 0 or shutil.which("ip") is None:
        raise NoHostsError("only root can make networks, with ip (Debian, Ubuntu: 'apt-get install iproute2')")
    name = f"arroyo-{secrets.token_hex(4)}"
    switch = f"{name}-switch"
    with ExitStack() as stack:
        _namespace(switch, stack)
        ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", switch, "link", "set", "bridge", "up")
        hosts = []
        for number in range(1, count + 1):
            host = Host(f"{name}-{number}", f"{NETWORK}.{number}", switch)
            _namespace(host.namespace, stack)
            cable = ("link", "add", host.port, "type", "veth", "peer", "name", "eth0", "netns", host.namespace)
            ip("-n", switch, *cable)
            ip("-n", switch, "link", "set", host.port, "master", "bridge", "up")
            ip("-n", host.namespace, "addr", "add", f"{host.address}/24", "dev", "eth0")
            ip("-n", host.namespace, "link", "set", "eth0", "up")
            hosts.append(host)
        yield hosts


def _namespace(name: str, ending: ExitStack) -> None:
    ip("netns", "add", name)
    ending.callback(ip, "netns", "del", name)
    ip("-n", name, "link", "set", "lo", "up")


@contextmanager
def hosts_or_skip(count: int) -> Iterator[list[Host]]:
    """The same; skips the test where it cannot be. On CI, as root, `ip` must be installed."""
    if os.getuid() == 0 and shutil.which("ip") is None and os.environ.get("CI") == "true":
        pytest.fail("ip is not installed: networks between hosts are not tried")
    with ExitStack() as stack:
        try:
            hosts = stack.enter_context(made_hosts(count))
        except NoHostsError as error:
            pytest.skip(f"no hosts with networks of their own: {error}")
        yield hosts


@contextmanager
def cluster_of(hosts: Sequence[Host], folder: Path) -> Iterator[Cluster]:
    """A standalone cluster: its master is on the first host, and on each other one there is a worker with a core."""
    first, *others = hosts
    address = ["--host", first.address, "--port", str(MASTER_PORT), "--webui-port", "8080"]
    master = first.command([str(SPARK_CLASS), "org.apache.spark.deploy.master.Master", *address])
    url = f"spark://{first.address}:{MASTER_PORT}"
    with ExitStack() as stack:
        log = folder / "master.log"
        server = stack.enter_context(running(master, log, SPARK_LOCAL_IP=first.address))
        _wait_for_line("I have been elected leader", 1, log, [server])
        workers = []
        for number, host in enumerate(others):
            worker = [str(SPARK_CLASS), "org.apache.spark.deploy.worker.Worker", "--host", host.address]
            worker += ["--cores", "1", "--memory", "1g", "--webui-port", "8081"]
            worker += ["--work-dir", str(folder / f"worker-{number}"), url]
            environment = {
                "ARROYO_STATE_CACHE": str(folder / f"cache-{number}"),
                "ARROYO_UDF_CACHE": str(folder / f"udf-cache-{number}"),
                "SPARK_LOCAL_IP": host.address,
            }
            log_file = folder / f"worker-{number}.log"
            workers.append(stack.enter_context(running(host.command(worker), log_file, **environment)))
        _wait_for_line("Registering worker", len(others), log, [server, *workers])
        yield Cluster(url=url, workers=workers)


def _wait_for_line(text: str, times: int, log: Path, servers: Sequence[Server]) -> None:
    def is_there() -> bool:
        for server in servers:
            if server.process.poll() is not None:
                raise RuntimeError(f"the server ended:\n{server.log.read_text()[-3000:]}")
        return log.read_text(errors="replace").count(text) >= times

    wait_until(is_there, patience_s=START_S, problem=lambda: f"no {text!r} in:\n{log.read_text()[-3000:]}")


def arroyo_command(*words: str) -> list[str]:
    return [str(Path(sys.executable).with_name("arroyo")), *words]
