"""What many browsers look at is asked for once: answers of the console, shared for as long as they are fresh."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")

#: Answers that nobody asked for since are forgotten.
_FORGOTTEN_S = 60.0
#: What was made of answers is kept for so many names: jobs that somebody looks at.
_MADE = 64
#: Calls that wait for files and databases at the same time; those of planning have their own.
_THREADS = 8


@dataclass(slots=True)
class _Answer:
    task: asyncio.Task[Any]
    at_s: float
    asked_s: float = field(default_factory=time.monotonic)


class Live:
    """Of one event loop. A call that is under way is waited for by all who ask meanwhile."""

    def __init__(self) -> None:
        self._answers: dict[Hashable, _Answer] = {}
        self._made: OrderedDict[Hashable, tuple[tuple[object, ...], Any]] = OrderedDict()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="console-page")

    @property
    def known(self) -> int:
        """How many answers are kept."""
        return len(self._answers)

    async def get(self, call: Callable[..., T], *arguments: Any, fresh_s: float = 1.5, **named: Any) -> T:
        """The answer of `call`, which is not older than `fresh_s`. Raises what the call raises."""
        now_s = time.monotonic()
        key = (call.__qualname__, arguments, tuple(sorted(named.items())))
        found = self._answers.get(key)
        if found is None or (found.task.done() and now_s - found.at_s > fresh_s) or found.task.cancelled():
            self._forget(now_s)
            task = asyncio.ensure_future(self.run(call, *arguments, **named))
            # Whoever waits gets the error; with nobody left it is not one that was never retrieved.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            found = self._answers[key] = _Answer(task=task, at_s=now_s)
        found.asked_s = now_s
        # A browser that leaves must not take the answer away from the others.
        return await asyncio.shield(found.task)

    def made(self, name: Hashable, make: Callable[..., T], *answers: object) -> T:
        """What `make` makes of the newest answers under a name: once for all who were given the same objects."""
        known = self._made.get(name)
        if known is None or any(old is not new for old, new in zip(known[0], answers, strict=True)):
            known = self._made[name] = (answers, make(*answers))
        self._made.move_to_end(name)
        if len(self._made) > _MADE:
            self._made.popitem(last=False)
        made: T = known[1]
        return made

    async def run(self, call: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """In a thread, for nobody else: what changes something, or is asked for once."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(call, *arguments, **named))

    def _forget(self, now_s: float) -> None:
        old = [key for key, each in self._answers.items() if each.task.done() and now_s - each.asked_s > _FORGOTTEN_S]
        for key in old:
            del self._answers[key]

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
