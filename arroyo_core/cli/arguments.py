"""Types of command-line arguments."""

from __future__ import annotations

import argparse

from arroyo_core.graph.spec import MAX_PARALLELISM


def parallelism(text: str) -> int:
    """A number of subtasks."""
    if text.isascii() and text.isdigit() and 1 <= int(text) <= MAX_PARALLELISM:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number between 1 and {MAX_PARALLELISM}")
