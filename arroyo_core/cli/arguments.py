"""Types of command-line arguments."""

from __future__ import annotations

import argparse

from arroyo_core.api.units import parse_duration_us
from arroyo_core.pipeline.file_keys import MAX_PARALLELISM
from arroyo_core.state.failures import ForkError
from arroyo_core.state.fork import ForkSource

MAX_EPOCH = 2**32 - 1
MOST_RESTARTS = 1_000_000
MAX_COUNT = 1_000_000_000
MAX_PORT = 65_535


def parallelism(text: str) -> int:
    """A number of subtasks."""
    return _whole_number(text, 1, MAX_PARALLELISM)


def epoch(text: str) -> int:
    """The number of an epoch."""
    return _whole_number(text, 1, MAX_EPOCH)


def restarts(text: str) -> int:
    """How often something may be started again."""
    return _whole_number(text, 0, MOST_RESTARTS)


def count(text: str) -> int:
    """How many of something, one at least."""
    return _whole_number(text, 1, MAX_COUNT)


def duration_us(text: str) -> int:
    """Microseconds, from a text such as `90s`."""
    try:
        return parse_duration_us(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def port(text: str) -> int:
    """A TCP port."""
    return _whole_number(text, 1, MAX_PORT)


def checkpoint(text: str) -> ForkSource:
    """A checkpoint of some job: `URL[#JOB[@EPOCH]]`."""
    try:
        return ForkSource.parse(text)
    except ForkError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _whole_number(text: str, least: int, most: int) -> int:
    # Long before `int` minds: a number of thousands of digits is not a number here.
    if text.isascii() and text.isdigit() and len(text) <= 20 and least <= int(text) <= most:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r:.100} is not a whole number between {least} and {most}")
