"""The stores of two drivers at once, and calls to storage in an order that is always the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from arroyo_filesystem import commit
from arroyo_testing.crash_filesystem import CrashObjectStore, register_store
from arroyo_testing.inline_pool import InlinePool

from arroyo_core.state import file_access


class FirstDriverStore(CrashObjectStore):
    """The object store as one of two processes at once sees it."""

    protocol = ("first-object", "memory")
    current = None


class SecondDriverStore(CrashObjectStore):
    """And as the other one does."""

    protocol = ("second-object", "memory")
    current = None


for kind in (FirstDriverStore, SecondDriverStore):
    register_store(kind)


@contextmanager
def calls_in_order() -> Iterator[None]:
    """Everything that is done side by side is done one after the other inside."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_access, "_pool", InlinePool)
        patch.setattr(commit, "ThreadPoolExecutor", InlinePool)
        yield
