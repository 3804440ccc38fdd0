"""A pool of threads without threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class InlinePool:
    """Stands for a pool of threads: does everything at once, so that calls have the same order in every run."""

    def __init__(self, *_: Any, **__: Any) -> None:
        return

    def submit(self, call: Callable[..., T], *arguments: Any) -> Future[T]:
        done: Future[T] = Future()
        done.set_result(call(*arguments))
        return done

    def map(self, call: Callable[..., T], *arguments: Iterable[Any]) -> Iterator[T]:
        return iter([call(*each) for each in zip(*arguments, strict=True)])

    def __enter__(self) -> InlinePool:
        return self

    def __exit__(self, *_: object) -> None:
        return
