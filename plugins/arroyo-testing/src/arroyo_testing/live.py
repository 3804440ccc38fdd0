"""Workers that live on, as threads of this process: the exchange of `execution: live` without Spark."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from arroyo_core.plugin import PluginSet
from arroyo_core.runtime.live.executor import LiveExecutor
from arroyo_core.runtime.live.worker import Host, Ticket, work
from arroyo_testing.network import FaultyNetwork

#: How long a worker gets to end.
_GRACE_SECONDS = 10.0


def live_executor(plugins: PluginSet, network: FaultyNetwork | None = None) -> LiveExecutor:
    """Runs epochs in workers that are threads; close it in the end. With a `network` their connections fail."""
    return LiveExecutor(ThreadLauncher(plugins, network))


class ThreadLauncher:
    """Starts workers as threads."""

    is_one_machine = True
    host = ""

    def __init__(self, plugins: PluginSet, network: FaultyNetwork | None = None) -> None:
        host = Host(lambda: plugins, cache=None)
        self._host = host if network is None else replace(host, wrap=network.wrap)

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
        return None

    def end(self) -> None:
        for thread in self._threads:
            thread.join(_GRACE_SECONDS)
