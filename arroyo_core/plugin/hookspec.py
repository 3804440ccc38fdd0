"""The hook that plugins implement: this file is their manual.

A plugin is a module named by an entry point of the group `arroyo_core`:

    [project.entry-points.arroyo_core]
    acme = "acme.plugin"

The entry point's name is the prefix of the plugin's operators: `acme.running_count`.
The module is imported by every command, so it must import no client library by itself.
"""

from __future__ import annotations

import pluggy

from arroyo_core.api import Registry

PROJECT = "arroyo_core"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def arroyo_register(registry: Registry) -> None:
    """Add operators (`registry.add`) and UDFs (`registry.add_udf`).

    Called once per process, when plugins are discovered: on the driver, and on executors.
    If it raises, nothing of this plugin is registered, and only pipelines that use it fail.
    """
