"""The flags of `arroyo run` that say what it shows."""

from __future__ import annotations

import argparse

from arroyo_core.cli.options import add_format


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags that `run` reads."""
    group = parser.add_argument_group("watching", "See docs/watching.md.")
    group.add_argument(
        "--progress",
        choices=("live", "plain", "brief", "none"),
        help="a view that is redrawn in place, a line for each epoch, a line every ten seconds, or neither; on stderr "
        "(default: live on a terminal, where a plugin has such a view, else plain; brief where stderr is not a "
        "terminal; none with --format json)",
    )
    group.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="how lines on stderr are written: with their time, or as JSON objects (default: %(default)s)",
    )
    add_format(
        parser,
        help="json: an object for each epoch and one at the end on stdout, and what sinks print goes to stderr",
        formerly=["--output"],
    )
