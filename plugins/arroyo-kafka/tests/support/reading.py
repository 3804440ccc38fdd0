"""A process that reads a topic slowly, and prints by how many bytes it has grown meanwhile.

Its arguments are the brokers, the topic, and the setting `client` of the source in JSON.
"""

from __future__ import annotations

import json
import resource
import sys

from arroyo_kafka.open_consumers import open_consumers
from arroyo_testing import SourceHarness

from tests.waiting import wait_until

from .sources import make_source

EPOCHS = 4
ROWS = 20


def memory() -> int:
    """The most that the process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Calm:
    """Whether memory has stayed the same through some looks: whoever reads ahead has stopped."""

    def __init__(self) -> None:
        self._last, self._looks = 0, 0

    def __call__(self) -> bool:
        now = memory()
        self._looks = self._looks + 1 if now == self._last else 0
        self._last = now
        return self._looks >= 20


def main(servers: str, topic: str, client: str) -> None:
    settings = {"format": "raw_bytes", "schema": {"value": "bytes"}, "client": json.loads(client)}
    harness = SourceHarness(lambda: make_source(servers, topic=topic, **settings))
    before = memory()
    for _ in range(EPOCHS):
        harness.run(rows=ROWS)
        wait_until(Calm())
    print(memory() - before)
    harness.close()
    open_consumers.close_all()


if __name__ == "__main__":
    main(*sys.argv[1:])
