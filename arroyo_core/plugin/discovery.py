"""Finds installed plugins and fills a registry; one broken plugin harms nobody else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import pluggy

from arroyo_core.api import OperatorConstructor, Origin, Registry, Udf
from arroyo_core.errors import PluginError
from arroyo_core.plugin import hookspec

#: A comma-separated list of plugins (entry-point names or distributions) that are not loaded.
BLOCK_VARIABLE = "ARROYO_BLOCK_PLUGINS"


@dataclass(frozen=True, slots=True)
class PluginReport:
    """What became of one installed plugin."""

    name: str
    origin: Origin
    module: str
    operators: tuple[str, ...] = ()
    udfs: tuple[str, ...] = ()
    error: str | None = None
    is_blocked: bool = False


@dataclass(slots=True)
class PluginSet:
    """The plugins of this environment: a filled registry, and a report on each."""

    registry: Registry
    reports: Sequence[PluginReport]
    #: Operators that two distributions claim: nobody gets them.
    conflicts: Mapping[str, str] = field(default_factory=dict)

    def constructor(self, operator: str) -> OperatorConstructor[Any]:
        """The constructor of an operator; raises `PluginError` saying why there is none."""
        if operator in self.conflicts:
            raise PluginError(self.conflicts[operator])
        found = self.registry.constructors.get(operator)
        if found is not None:
            return found
        for report in self.reports:
            if report.name != operator.partition(".")[0]:
                continue
            if report.is_blocked:
                raise PluginError(f"plugin {report.name!r} ({report.origin}) is blocked by {BLOCK_VARIABLE}")
            if report.error:
                raise PluginError(f"plugin {report.name!r} ({report.origin}) could not be loaded: {report.error}")
        raise PluginError(f"unknown operator {operator!r}")

    def origin(self, operator: str) -> Origin:
        return self.registry.origin(operator)


def discover(points: Iterable[EntryPoint] | None = None) -> PluginSet:
    """Load every plugin of the group `arroyo_core` that is not blocked."""
    found = entry_points(group=hookspec.PROJECT) if points is None else points
    blocked = {name.strip() for name in os.environ.get(BLOCK_VARIABLE, "").split(",")} - {""}
    loader = _Loader()
    for point in sorted(found, key=lambda point: (_origin(point).distribution, point.name)):
        loader.load(point, is_blocked=bool({point.name, _origin(point).distribution} & blocked))
    return PluginSet(loader.registry, loader.reports, loader.conflicts)


@cache
def installed_plugins() -> PluginSet:
    """The plugins of this process, discovered once."""
    return discover()


class _Loader:
    def __init__(self) -> None:
        self.registry = Registry()
        self.reports: list[PluginReport] = []
        self.conflicts: dict[str, str] = {}

    def load(self, point: EntryPoint, *, is_blocked: bool) -> None:
        origin = _origin(point)
        report = PluginReport(point.name, origin, point.value, is_blocked=is_blocked)
        if is_blocked:
            self.reports.append(report)
            return
        try:
            staged = _register(point.load)
        # A plugin is foreign code: whatever it raises on import is its own trouble, and is reported.
        except Exception as error:
            self.reports.append(PluginReport(point.name, origin, point.value, error=f"{type(error).__name__}: {error}"))
            return
        self.reports.append(self._merge(report, staged))

    def _merge(self, report: PluginReport, staged: Registry) -> PluginReport:
        conflicts = []
        with self.registry.registering(report.origin):
            for name, constructor in staged.constructors.items():
                try:
                    self.registry.add(name, constructor)
                except PluginError as error:
                    self.conflicts[name] = str(error)
                    conflicts.append(str(error))
            for udf in staged.udfs.values():
                try:
                    self.registry.add_udf(_attributed(udf, report.origin))
                except PluginError as error:
                    conflicts.append(str(error))
        return PluginReport(
            report.name,
            report.origin,
            report.module,
            operators=tuple(sorted(staged.constructors)),
            udfs=tuple(sorted(staged.udfs)),
            error="; ".join(conflicts) or None,
        )


def _register(load: Callable[[], Any]) -> Registry:
    """Import one plugin and let it fill a registry of its own."""
    manager = pluggy.PluginManager(hookspec.PROJECT)
    manager.add_hookspecs(hookspec)
    module = load()
    manager.register(module)
    manager.check_pending()
    if not manager.get_hookcallers(module):
        raise PluginError("it implements no hook; expected 'arroyo_register', marked with @hookimpl")
    registry = Registry()
    manager.hook.arroyo_register(registry=registry)
    return registry


def _attributed(udf: Udf, origin: Origin) -> Udf:
    """The function as its distribution's own, where it can say so: its errors name where it came from."""
    registered_by = getattr(udf, "registered_by", None)
    return registered_by(origin.distribution, origin.version) if registered_by is not None else udf


def _origin(point: EntryPoint) -> Origin:
    if point.dist is None:
        return Origin("unknown distribution", "0")
    return Origin(point.dist.name, point.dist.version)
