"""Counts the steps of Python code: tells a loop per row from work on whole batches, without a clock."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def count_steps(work: Callable[[], object]) -> int:
    """How many lines of Python this thread executes for `work`; a line counts at each iteration of its loop.

    Compare counts of the same work on few and on many rows: code that works on whole batches takes as many steps.
    """
    steps = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        nonlocal steps
        steps += event == "line"
        return trace

    former = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(former)
    return steps
