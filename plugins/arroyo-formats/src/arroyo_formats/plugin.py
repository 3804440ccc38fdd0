"""Brings the formats; everything heavy is imported when one is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from arroyo_core.plugin import hookimpl


@hookimpl
def arroyo_format() -> Sequence[Any]:
    return []
