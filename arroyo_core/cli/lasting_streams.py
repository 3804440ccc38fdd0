"""Streams that outlive their readers: `arroyo run ... | head` closes a pipe, and that must not end a job."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextlib import redirect_stderr as _redirect_stderr
from contextlib import redirect_stdout as _redirect_stdout
from typing import Any, TextIO, cast


class LastingStream:
    """A text stream; once nobody reads it, what is written is dropped. `on_closed` is called then, once."""

    def __init__(self, stream: TextIO, on_closed: Callable[[], None] = lambda: None) -> None:
        self._stream = stream
        self._on_closed = on_closed
        self._is_closed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        self._attempt(lambda: self._stream.write(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        self._attempt(self._stream.flush)

    def _attempt(self, call: Callable[[], object]) -> None:
        try:
            call()
        except BrokenPipeError:
            self._lead_nowhere()

    def _lead_nowhere(self) -> None:
        """What is buffered, here and in whoever else has the same file open, goes to where it can be written."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, self._stream.fileno())
        finally:
            os.close(nowhere)
        if not self._is_closed:
            self._is_closed = True
            self._on_closed()


@contextmanager
def lasting_streams(on_closed: Callable[[str], None]) -> Iterator[None]:
    """`sys.stdout` and `sys.stderr` are such streams within; `on_closed` is told the name of one without a reader."""
    with ExitStack() as resources:
        for name, redirect in (("stdout", _redirect_stdout), ("stderr", _redirect_stderr)):
            stream = getattr(sys, name)
            lasting = LastingStream(stream, lambda name=name: on_closed(name))  # type: ignore[misc]
            resources.enter_context(redirect(cast(TextIO, lasting)))
            # What is still buffered must not fail later.
            resources.callback(lasting.flush)
        yield
