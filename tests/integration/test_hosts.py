"""Live workers on hosts of their own, whose network is slow, is cut, and comes back."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from ..waiting import wait_until
from .hosts import Host, NoHostsError, arroyo_command, cluster_of, hosts_or_skip, made_hosts
from .processes import end_session
from .servers import standalone_cluster
from .tally import Tally, published_epoch

#: The driver is on the first one, the workers on the others.
HOSTS = 3
GOES_ON = "the job goes on from its last checkpoint"
#: By default minutes. Workers notice a cut themselves after the first of these.
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.network.timeout": "6s",
    "spark.network.timeoutInterval": "2s",
    "spark.executor.heartbeatInterval": "1s",
    "spark.executor.memory": "512m",
}


class Driver:
    """`arroyo run --execution live`, on a host, in a session of its own."""

    def __init__(self, pipeline: Path, url: str, *, host: Host | None, settings: dict[str, str]) -> None:
        address = host.address if host is not None else "127.0.0.1"
        given = SETTINGS | {"spark.driver.host": address} | settings
        words = [word for key, value in given.items() for word in ("--conf", f"{key}={value}")]
        command = arroyo_command("run", str(pipeline), "--master", url, "--execution", "live", *words)
        self._log = pipeline.parent / "driver.log"
        self._folder = pipeline.parent
        with self._log.open("wb") as out:
            self.process = subprocess.Popen(
                host.command(command) if host is not None else command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=pipeline.parent,
                start_new_session=True,
                env=os.environ | {"SPARK_LOCAL_IP": address},
            )

    def said(self) -> str:
        return self._log.read_text(errors="replace")

    def wait_for_epoch(self, epoch: int) -> None:
        self._wait(lambda: published_epoch(self._folder) >= epoch)

    def wait_for_restart(self, number: int) -> None:
        self._wait(lambda: self.said().count(GOES_ON) >= number)

    def _wait(self, is_true: Callable[[], bool]) -> None:
        def is_so() -> bool:
            assert self.process.poll() is None, self.said()[-3000:]
            return is_true()

        wait_until(is_so, problem=lambda: self.said()[-3000:])


@contextmanager
def driving(pipeline: Path, url: str, *, host: Host | None, settings: dict[str, str] | None = None) -> Iterator[Driver]:
    driver = Driver(pipeline, url, host=host, settings=settings or {})
    try:
        yield driver
        assert driver.process.wait() == 0, driver.said()[-3000:]
    finally:
        end_session(driver.process.pid)
        driver.process.wait()


def job(epochs: int) -> Tally:
    """An epoch that stands still would be cancelled by the job itself, too, but not within this test."""
    return Tally.of_epochs(epochs, rows_per_epoch=20_000, rate=40_000)


@pytest.mark.timeout(900)
def test_a_job_whose_workers_are_on_other_hosts_is_exact(tmp_path: Path) -> None:
    """In namespaces where that can be, else at other addresses of this machine: through TCP in both."""
    tally = job(8)
    try:
        with made_hosts(HOSTS) as hosts, cluster_of(hosts, tmp_path) as cluster:
            run(tally, tmp_path, cluster.url, host=hosts[0])
    except NoHostsError:
        with standalone_cluster(tmp_path) as cluster:
            run(tally, tmp_path, cluster.url, host=None)
    tally.assert_exact(tmp_path / "job", tmp_path / "expected")


def run(tally: Tally, folder: Path, url: str, *, host: Host | None) -> None:
    with driving(tally.write(folder / "job"), url, host=host) as driver:
        pass
    assert GOES_ON not in driver.said()


@pytest.mark.timeout(900)
def test_a_job_whose_hosts_encrypt_is_exact(tmp_path: Path) -> None:
    """As Spark does there: keys and certificates are made by the driver, and nobody has a file of them."""
    tally = job(8)
    settings = {
        "spark.authenticate": "true",
        "spark.authenticate.secret": "known",
        "spark.network.crypto.enabled": "true",
    }
    with (
        standalone_cluster(tmp_path, settings=settings) as cluster,
        driving(tally.write(tmp_path / "job"), cluster.url, host=None, settings=settings) as driver,
    ):
        pass
    assert GOES_ON not in driver.said()
    tally.assert_exact(tmp_path / "job", tmp_path / "expected")


Cut = Callable[[Sequence[Host]], AbstractContextManager[None]]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "cut",
    [
        pytest.param(lambda hosts: hosts[1].cut_from(hosts[2]), id="between two workers"),
        pytest.param(lambda hosts: hosts[2].unplugged(), id="between a worker and all others"),
    ],
)
def test_a_link_that_is_cut_ends_the_epoch_and_the_job_goes_on_when_it_is_back(tmp_path: Path, cut: Cut) -> None:
    tally = job(24)
    with (
        hosts_or_skip(HOSTS) as hosts,
        cluster_of(hosts, tmp_path) as cluster,
        driving(tally.write(tmp_path / "job"), cluster.url, host=hosts[0]) as driver,
    ):
        driver.wait_for_epoch(3)
        with cut(hosts):
            driver.wait_for_restart(1)
        driver.wait_for_epoch(published_epoch(tmp_path / "job") + 1)
    tally.assert_exact(tmp_path / "job", tmp_path / "expected")


@pytest.mark.timeout(900)
def test_a_job_over_a_slow_link_is_exact(tmp_path: Path) -> None:
    tally = job(8)
    with hosts_or_skip(HOSTS) as hosts, cluster_of(hosts, tmp_path) as cluster:
        try:
            for host in hosts[1:]:
                host.slow_down(mbit=20)
        except NoHostsError as error:
            pytest.skip(f"no slow links: {error}")
        with driving(tally.write(tmp_path / "job"), cluster.url, host=hosts[0]) as driver:
            pass
    assert GOES_ON not in driver.said()
    tally.assert_exact(tmp_path / "job", tmp_path / "expected")
