"""Calls of user code that must come back: in a thread of their own where there is a deadline."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from arroyo_core.api.units import format_duration_us
from arroyo_core.errors import UdfTimeoutError
from arroyo_core.udf.user_function import UserFunction

ResultT = TypeVar("ResultT")


def call_within(udf: UserFunction, timeout_us: int | None, call: Callable[[], ResultT]) -> ResultT:
    """What `call` gives or raises; raises `UdfTimeoutError` if it has not come back by then.

    A call that never comes back keeps its thread, which dies with the process and does not hold it. Code in
    C that does not release the interpreter's lock cannot be timed.
    """
    if timeout_us is None:
        return call()
    results: list[ResultT] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name=f"udf-{udf.name}", daemon=True)
    thread.start()
    thread.join(timeout_us / 1_000_000)
    if errors:
        raise errors[0]
    if not results:
        source = str(udf.source) if udf.source else ""
        message = f"it did not return within {format_duration_us(timeout_us)}"
        raise UdfTimeoutError(message, udf=udf.name, source=source)
    return results[0]
