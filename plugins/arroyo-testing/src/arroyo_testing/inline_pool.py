"""A pool of threads without threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

T = TypeVar("T")


class InlinePool(Executor):
    """Stands for a pool of threads: does everything at once, so that calls have the same order in every run."""

    def __init__(self, *_: Any, **__: Any) -> None:
        return

    def submit(self, call: Callable[..., T], /, *arguments: Any, **options: Any) -> Future[T]:
        """What the call returned; what it raises is raised here, before anything else is called."""
        done: Future[T] = Future()
        done.set_result(call(*arguments, **options))
        return done
