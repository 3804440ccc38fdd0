"""The stores of two drivers at once, and moves of files in an order that is always the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from arroyo_filesystem import commit
from arroyo_testing.crash_filesystem import CrashObjectStore, register_store
from arroyo_testing.inline_pool import InlinePool


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
def moves_in_order() -> Iterator[None]:
    """The files of a commit are moved one after the other inside."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commit, "ThreadPoolExecutor", InlinePool)
        yield
