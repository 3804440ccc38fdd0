"""Calls of one coroutine function that are under way: so many at a time, each tried until it succeeds or must not."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from arroyo_core.api.units import format_duration_us
from arroyo_core.errors import UdfError, UdfTimeoutError
from arroyo_core.udf import AsyncUdf
from arroyo_core.udf.user_errors import failure, raised, show_row, show_value
from arroyo_core.udf.values import CONVERSION_ERRORS, from_python, to_python
from arroyo_std.event_loop import abandon, event_loop

#: How often a waiting thread looks whether the event loop is alive.
_PULSE_S = 0.5


class Calls:
    """The calls for the rows of one batch. Written in the event loop, read by the thread that submitted them."""

    def __init__(self, columns: list[list[Any]], rows: list[int], size: int) -> None:
        #: The arguments by column, one for each row that is called.
        self.columns = columns
        self.rows = rows
        self.results: list[Any] = [None] * size
        self.errors: dict[int, UdfError] = {}
        self.unfinished = len(rows)
        #: Rows that are finished and were not taken yet; those that need no call are from the start.
        self._finished = sorted(set(range(size)) - set(rows)) if len(rows) < size else []

    def finish(self, place: int, result: Any, error: UdfError | None) -> None:
        row = self.rows[place]
        self.results[row] = result
        if error is not None:
            self.errors[row] = error
        self._finished.append(row)
        # Last, because who finds nothing unfinished takes what is there and goes.
        self.unfinished -= 1

    def take_finished(self) -> list[int]:
        """The rows that were finished since it was last asked, in order."""
        # The loop may append meanwhile, so what was there is cut off by its length.
        count = len(self._finished)
        taken = sorted(self._finished[:count])
        del self._finished[:count]
        return taken


class InFlight:
    """Submits rows from one thread, and runs their calls in the process's event loop.

    With `is_fatal` the first call that fails for good ends all others.
    """

    def __init__(self, function: AsyncUdf, *, is_fatal: bool) -> None:
        self._function = function
        self._is_fatal = is_fatal
        self._loop = event_loop()
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Calls, Iterator[int]]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_cancelled = False
        self._fatal: UdfError | None = None
        self._last_pulse_s = time.monotonic()
        #: Calls that were submitted and are not finished.
        self.unfinished = 0

    def submit(self, columns: Sequence[pa.Array]) -> Calls:
        """Begin to call the function for the rows of these columns; rows with a null that it does not take are null."""
        cast = [
            column if column.type == parameter.type else column.cast(parameter.type)
            for column, parameter in zip(columns, self._function.parameters, strict=True)
        ]
        size = len(cast[0])
        is_called = np.ones(size, dtype=np.bool_)
        for column, parameter in zip(cast, self._function.parameters, strict=True):
            if column.null_count and not parameter.is_nullable:
                is_called &= column.is_valid().to_numpy(zero_copy_only=False)
        mask = pa.array(is_called)
        called = cast if is_called.all() else [column.filter(mask) for column in cast]
        calls = Calls([to_python(column) for column in called], np.flatnonzero(is_called).tolist(), size)
        with self._changed:
            self.unfinished += calls.unfinished
        if calls.unfinished:
            self._loop.call_soon_threadsafe(self._begin, calls)
        return calls

    def wait(self, unfinished: int) -> None:
        """Until no more calls than these are unfinished; raises `UdfError` if one failed that is fatal.

        Raises `UdfTimeoutError` if there is a timeout, and the event loop stands still for longer.
        """
        self._last_pulse_s = time.monotonic()
        with self._changed:
            while self.unfinished > unfinished and self._fatal is None:
                self._changed.wait(_PULSE_S)
                self._check_pulse()
        if self._fatal is not None:
            self.cancel()
            raise self._fatal

    def cancel(self) -> None:
        """Give up what is under way."""
        self._is_cancelled = True
        self._loop.call_soon_threadsafe(self._cancel)

    def _check_pulse(self) -> None:
        timeout_us = self._function.timeout_us
        if timeout_us is None:
            return
        if time.monotonic() - self._last_pulse_s > 2 * _PULSE_S + timeout_us / 1_000_000:
            abandon(self._loop)
            source = str(self._function.source) if self._function.source else ""
            raise UdfTimeoutError(
                f"it has kept the event loop for more than {format_duration_us(timeout_us)}: it must await what takes "
                "long, not wait for it",
                udf=self._function.name,
                source=source,
            )
        self._loop.call_soon_threadsafe(self._pulse)

    def _pulse(self) -> None:
        self._last_pulse_s = time.monotonic()

    def _begin(self, calls: Calls) -> None:
        self._waiting.append((calls, iter(range(len(calls.rows)))))
        for _ in range(min(self._function.concurrency - len(self._tasks), len(calls.rows))):
            task = self._loop.create_task(self._work())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _cancel(self) -> None:
        self._waiting.clear()
        for task in self._tasks:
            task.cancel()

    async def _work(self) -> None:
        """One of as many as there may be calls under way: takes row after row until none waits."""
        while self._waiting:
            calls, places = self._waiting[0]
            place = next(places, None)
            if place is None:
                self._waiting.popleft()
                continue
            arguments = [column[place] for column in calls.columns]
            result, error = await self._attempt(arguments)
            self._finish(calls, place, result, error)

    def _finish(self, calls: Calls, place: int, result: Any, error: UdfError | None) -> None:
        with self._changed:
            calls.finish(place, result, error)
            self.unfinished -= 1
            if error is not None and self._is_fatal and self._fatal is None:
                self._fatal = error
            # Not for every call: who waits does so for one of these.
            if self._fatal is not None or self.unfinished == 0 or self.unfinished == self._function.concurrency:
                self._changed.notify()

    async def _attempt(self, arguments: list[Any]) -> tuple[Any, UdfError | None]:
        """What the function gives, or the error of the last attempt."""
        function = self._function
        seconds = None if function.timeout_us is None else function.timeout_us / 1_000_000
        attempt = 0
        while True:
            try:
                async with asyncio.timeout(seconds) as scope:
                    return await function.function(*arguments), None
            except BaseException as cause:
                # A loop dies of SystemExit in a task, and a task of its cancellation.
                if self._is_cancelled:
                    raise asyncio.CancelledError from None
                error = self._failed(cause, arguments, is_late=scope.expired())
                if attempt == function.retries or not isinstance(cause, Exception):
                    return None, error
            await asyncio.sleep(function.backoff_us / 1_000_000 * 2**attempt)
            attempt += 1

    def _failed(self, cause: BaseException, arguments: list[Any], *, is_late: bool) -> UdfError:
        sample = show_row([parameter.name for parameter in self._function.parameters], arguments)
        tries = f" ({self._function.retries + 1} attempts)" if self._function.retries else ""
        if is_late and isinstance(cause, TimeoutError):
            limit = format_duration_us(self._function.timeout_us or 0)
            return failure(self._function, f"it did not come back within {limit}{tries}", sample=sample)
        error = raised(self._function, cause, sample=sample)
        error.message += tries
        return error


def to_column(function: AsyncUdf, calls: Calls, rows: Sequence[int]) -> tuple[pa.Array, dict[int, UdfError]]:
    """The results of these rows, null where there is none, and the errors of those that failed or do not fit."""
    errors = {row: calls.errors[row] for row in rows if row in calls.errors} if calls.errors else {}
    values = [calls.results[row] for row in rows]
    try:
        return from_python(values, function.return_type), errors
    except CONVERSION_ERRORS:
        pass
    for place, row in enumerate(rows):
        try:
            from_python([values[place]], function.return_type)
        except CONVERSION_ERRORS:
            shown = f"{show_value(values[place])} ({type(values[place]).__name__})"
            errors[row] = failure(function, f"it gave {shown}, which is not {function.return_type}")
            values[place] = None
    return from_python(values, function.return_type), errors
