"""Workers that live on, as threads of this process: the exchange of `execution: live` without Spark."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from arroyo_core.plugin import PluginSet
from arroyo_core.runtime.live.access import NETWORK_TIMEOUT_SECONDS
from arroyo_core.runtime.live.crew import LiveWorkersError
from arroyo_core.runtime.live.executor import LiveExecutor
from arroyo_core.runtime.live.wire import bare
from arroyo_core.runtime.live.worker import Host, Ticket, work
from arroyo_testing.network import FaultyNetwork

#: How long a worker gets to end.
_GRACE_SECONDS = 10.0


def live_executor(
    plugins: PluginSet,
    network: FaultyNetwork | None = None,
    *,
    address: str = "",
    is_encrypted: bool = False,
    is_eager: bool = True,
) -> LiveExecutor:
    """Runs epochs in workers that are threads; close it in the end. With a `network` their connections fail.

    They speak through TCP where there is an `address`, encrypted or not, and through Unix sockets else. With `is_eager`
    they begin an epoch before the one before it is committed.
    """
    launcher = ThreadLauncher(plugins, network, address=address, is_encrypted=is_encrypted)
    return LiveExecutor(launcher, is_eager=is_eager, wrap=bare if network is None else network.wrap)


class ThreadLauncher:
    """Starts workers as threads."""

    def __init__(
        self, plugins: PluginSet, network: FaultyNetwork | None = None, *, address: str = "", is_encrypted: bool = False
    ) -> None:
        host = Host(lambda: plugins, cache=None)
        self._host = host if network is None else replace(host, wrap=network.wrap)
        self.is_one_machine = not address
        self.host = address
        self.is_encrypted = is_encrypted
        self.network_timeout_s = NETWORK_TIMEOUT_SECONDS

    def start(self, ticket: Ticket, job_id: str) -> ThreadStage:
        threads = [
            threading.Thread(target=work, args=(ticket, index, self._host), name=f"{job_id}-{index}", daemon=True)
            for index in range(ticket.workers)
        ]
        for thread in threads:
            thread.start()
        return ThreadStage(threads)


class ThreadStage:
    """They end with the driver's connections."""

    def __init__(self, threads: Sequence[threading.Thread]) -> None:
        self._threads = threads

    def failure(self) -> Exception | None:
        is_over = not any(thread.is_alive() for thread in self._threads)
        return LiveWorkersError("the workers of the job have ended") if is_over else None

    def end(self) -> None:
        for thread in self._threads:
            thread.join(_GRACE_SECONDS)
