"""Which distributions a pipeline needs where its tasks run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import packages_distributions
from typing import Final

from fsspec.registry import known_implementations

from arroyo_core.pipeline import Plan
from arroyo_core.pipeline.plan import UdfKind
from arroyo_core.plugin import PluginReport, PluginSet

CORE: Final = "arroyo-core"

#: Plugins with one of these add something that tasks may meet, whatever nodes a pipeline has.
_FOR_TASKS: Final = frozenset({"arroyo_format", "arroyo_storage", "arroyo_table_type"})
_PROTOCOL: Final = re.compile(rb"([a-z][a-z0-9+.-]{1,15})://")


def needed_by(plans: Sequence[Plan], plugins: PluginSet) -> list[str]:
    """The core, the plugins of all nodes, and what opens their URLs; in a fixed order."""
    names = {CORE}
    for plan in plans:
        configs = [node.config for node in plan.nodes.values()]
        names |= {node.origin.distribution for node in plan.nodes.values()}
        names |= {pin.name for pin in plan.udfs if pin.kind is UdfKind.DISTRIBUTION}
        names |= {report.origin.distribution for report in plugins.reports if _serves(report, configs)}
        names |= set(_clients([*configs, (plan.checkpoint.url or "").encode()]))
    return sorted(names)


def needed_by_all(plugins: PluginSet) -> list[str]:
    """The core, and every plugin that adds something for tasks."""
    found = {
        report.origin.distribution
        for report in plugins.reports
        if report.error is None and (report.operators or report.udfs or report.lookups or _is_for_tasks(report))
    }
    return sorted({CORE, *found})


def _serves(report: PluginReport, configs: Sequence[bytes]) -> bool:
    if report.error is not None or report.is_blocked:
        return False
    is_looked_up = any(name.encode() in config for name in report.lookups for config in configs)
    return _is_for_tasks(report) or is_looked_up


def _is_for_tasks(report: PluginReport) -> bool:
    return bool(_FOR_TASKS & set(report.hooks))


def _clients(texts: Iterable[bytes]) -> Iterator[str]:
    """The distributions, of those installed here, that fsspec opens the URLs in these texts with."""
    protocols = {found.decode() for text in texts for found in _PROTOCOL.findall(text)}
    modules = {
        known_implementations[name]["class"].partition(".")[0] for name in protocols & set(known_implementations)
    }
    owners = packages_distributions()
    for module in modules - {"fsspec"}:
        yield from owners.get(module, ())[:1]
