"""The broker of a test run: started when a test first needs it, ended with the process."""

from __future__ import annotations

import atexit
import os
from contextlib import ExitStack
from functools import cache

import pytest
from arroyo_kafka.broker import Broker, running_broker

from arroyo_core.errors import SetupError

_brokers = ExitStack()


@cache
def shared_broker() -> Broker:
    """A broker for all tests that leave it as it is. Where it cannot be had, they are skipped; in CI they fail."""
    try:
        broker = _brokers.enter_context(running_broker())
    except SetupError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no Kafka broker: {error}")
    atexit.register(_brokers.close)
    return broker
