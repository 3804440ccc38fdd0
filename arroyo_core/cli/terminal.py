"""What a stream can show: plain text everywhere, and what rich makes of it on a terminal."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console


def is_terminal(stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether somebody looks at a terminal that has more than plain text."""
    return stream.isatty() and environment.get("TERM", "dumb") != "dumb"


def is_coloured(stream: TextIO) -> bool:
    """Whether to write colours to the stream: on a terminal, unless `NO_COLOR` is set."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


def open_console(stream: TextIO) -> Console:
    """What writes to a terminal: texts as they are, without colours or bold where `NO_COLOR` is set."""
    # Imported here, because a pipe, which is what most commands of scripts write to, needs none of it.
    from rich.console import Console

    return Console(
        file=stream,
        force_terminal=True,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        markup=False,
        emoji=False,
        highlight=False,
    )
