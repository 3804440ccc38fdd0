from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from .support.registry_server import RegistryState, running_registry

# Two cores, shared: the time of an example says nothing.
settings.register_profile("shared", deadline=None, max_examples=60)
settings.load_profile("shared")


@pytest.fixture
def registry() -> Iterator[RegistryState]:
    with running_registry() as state:
        yield state
