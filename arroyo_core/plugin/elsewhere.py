"""Which distributions have what the core itself does not have, so that a miss can say what to install.

The core's own metadata says it, in entry points of the groups `arroyo_core.commands`, `arroyo_core.formats` and so on;
nothing is ever loaded from them. An action or a format of a command is `command.action`, `command.format`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points


@cache
def known_elsewhere(kind: str) -> Mapping[str, str]:
    """The distribution of each name of that kind, such as `commands`; of operators the prefix is the name."""
    return {point.name: point.value.replace("_", "-") for point in entry_points(group=f"arroyo_core.{kind}")}
