"""What executors get with the Spark that `arroyo run` starts: what a plugin brings through `arroyo_provision`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from arroyo_core.cli.log_lines import LogLines
from arroyo_core.pipeline.plan import Plan
from arroyo_core.plugin import PluginSet
from arroyo_core.spark.provisions import Provider, Provision
from arroyo_core.spark.target import Target


def provision_for(
    args: argparse.Namespace, plans: Sequence[Plan], plugins: PluginSet, *, target: Target, lines: LogLines
) -> Provision | None:
    """What to start Spark with there; None where nothing is to be sent, and on this machine.

    Raises `PluginError` where several plugins have it, and what the plugin raises when it makes it.
    """
    provider: Provider | None = plugins.hooks.call_one(
        "arroyo_provision", Provider, what="what executors get", args=args, plans=plans
    )
    if provider is None:
        return None

    def tell(text: str) -> None:
        print(lines.render(f"arroyo: {text}"), end="", file=sys.stderr, flush=True)

    if target.is_local:
        tell(f"{provider.asked_by} has no effect on {target.shown_master}: tasks run in the driver's own Python")
        return None
    return provider.prepare(tell)
