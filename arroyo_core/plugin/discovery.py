"""Finds installed plugins and fills a registry; one broken plugin harms nobody else."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import pluggy

from arroyo_core.api import OperatorConstructor, Origin, Registry, Udf
from arroyo_core.errors import PluginError
from arroyo_core.plugin import hookspec

#: A comma-separated list of plugins (entry-point names or distributions) that are not loaded.
BLOCK_VARIABLE = "ARROYO_BLOCK_PLUGINS"

#: What a plugin may raise: `sys.exit` in it does not end the command, as if all had been done.
_RAISED = (Exception, SystemExit)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PluginReport:
    """What became of one installed plugin."""

    name: str
    origin: Origin
    module: str
    operators: tuple[str, ...] = ()
    lookups: tuple[str, ...] = ()
    udfs: tuple[str, ...] = ()
    #: The hooks that it implements.
    hooks: tuple[str, ...] = ()
    error: str | None = None
    is_blocked: bool = False


class Hooks:
    """The one plugin manager of a process, which calls one plugin at a time: what one of them raises is its own."""

    def __init__(self) -> None:
        self._manager = pluggy.PluginManager(hookspec.PROJECT)
        self._manager.add_hookspecs(hookspec)
        self._origins: dict[Any, Origin] = {}
        self._collected: dict[str, Sequence[Any]] = {}

    def register(self, module: Any, origin: Origin) -> tuple[str, ...]:
        """Add a plugin, and return the names of its hooks; raises `PluginError` where they are not ours."""
        self._manager.register(module)
        try:
            self._manager.check_pending()
            callers = self._manager.get_hookcallers(module)
            if not callers:
                raise PluginError("it implements no hook; expected 'arroyo_register', marked with @hookimpl")
        except Exception:
            self._manager.unregister(module)
            raise
        self._origins[module] = origin
        return tuple(sorted(caller.name for caller in callers))

    def unregister(self, module: Any) -> None:
        self._manager.unregister(module)
        del self._origins[module]

    def call(self, hook: str, module: Any, **arguments: Any) -> list[Any]:
        """What one plugin returns; an empty list where it does not implement the hook."""
        others = [plugin for plugin in self._manager.get_plugins() if plugin is not module]
        found: list[Any] = self._manager.subset_hook_caller(hook, others)(**arguments)
        return found

    def call_each(
        self, hook: str, *, within: Callable[[Origin], AbstractContextManager[None]] | None = None, **arguments: Any
    ) -> Iterable[tuple[Origin, list[Any]]]:
        """Every plugin that implements the hook, by distribution; those that raise are logged and left out.

        Each is called within `within(its origin)`.
        """
        for module, origin in self._origins.items():
            try:
                with within(origin) if within is not None else nullcontext():
                    found = self.call(hook, module, **arguments)
            except _RAISED as error:
                logger.warning("%s of plugin %s failed: %s: %s", hook, origin, type(error).__name__, error)
                continue
            if found:
                yield origin, found

    def call_one(self, hook: str, kind: type, *, what: str, **arguments: Any) -> Any:
        """What the one plugin returns that has `what`, a `kind`; None where none has.

        Raises `PluginError` where several have it, or where it is something else.
        """
        found = list(self.call_each(hook, **arguments))
        if len(found) > 1:
            names = " and by ".join(str(origin) for origin, _ in found)
            raise PluginError(
                f"{what} is claimed by {names}: uninstall all but one, or block them with {BLOCK_VARIABLE}"
            )
        if not found:
            return None
        origin, (item, *_) = found[0]
        _check_kind(hook, item, kind, origin)
        return item

    def call_all(self, hook: str, kind: type, **arguments: Any) -> list[Any]:
        """What all plugins return; raises `PluginError` for what is not a `kind`."""
        found = [(origin, item) for origin, items in self.call_each(hook, **arguments) for item in items]
        for origin, item in found:
            _check_kind(hook, item, kind, origin)
        return [item for _, item in found]

    def collect(self, hook: str, kind: type) -> Sequence[tuple[Any, Origin]]:
        """The objects that a hook returns, of all plugins; it is called once. Raises `PluginError` for any other."""
        if hook not in self._collected:
            self._collected[hook] = [
                (item, origin) for origin, lists in self.call_each(hook) for items in lists for item in items
            ]
        for item, origin in self._collected[hook]:
            _check_kind(hook, item, kind, origin)
        return self._collected[hook]


@dataclass(slots=True)
class PluginSet:
    """The plugins of this environment: a filled registry, and a report on each."""

    registry: Registry
    reports: Sequence[PluginReport]
    #: Operators that two distributions claim: nobody gets them.
    conflicts: Mapping[str, str] = field(default_factory=dict)
    hooks: Hooks = field(default_factory=Hooks, repr=False)

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
    return PluginSet(loader.registry, loader.reports, loader.conflicts, loader.hooks)


@cache
def installed_plugins() -> PluginSet:
    """The plugins of this process, discovered once."""
    return discover()


class _Loader:
    def __init__(self) -> None:
        self.registry = Registry()
        self.hooks = Hooks()
        self.reports: list[PluginReport] = []
        self.conflicts: dict[str, str] = {}

    def load(self, point: EntryPoint, *, is_blocked: bool) -> None:
        report = PluginReport(point.name, _origin(point), point.value, is_blocked=is_blocked)
        if not is_blocked:
            try:
                report = self._register(report, point.load)
            # A plugin is foreign code: whatever it raises on import is its own trouble, and is reported.
            except _RAISED as error:
                report = replace(report, error=f"{type(error).__name__}: {error}")
        self.reports.append(report)

    def _register(self, report: PluginReport, load: Callable[[], Any]) -> PluginReport:
        """Import one plugin and let it fill a registry of its own, so that it registers all or nothing."""
        module = load()
        names = self.hooks.register(module, report.origin)
        staged = Registry()
        try:
            self.hooks.call("arroyo_register", module, registry=staged)
        except _RAISED:
            self.hooks.unregister(module)
            raise
        return self._merge(replace(report, hooks=names), staged)

    def _merge(self, report: PluginReport, staged: Registry) -> PluginReport:
        conflicts = []
        with self.registry.registering(report.origin):
            for name, constructor in staged.constructors.items():
                try:
                    self.registry.add(name, constructor)
                except PluginError as error:
                    self.conflicts[name] = str(error)
                    conflicts.append(str(error))
            for name, lookup in staged.lookups.items():
                try:
                    self.registry.add_lookup(name, lookup)
                except PluginError as error:
                    self.registry.withdraw_lookup(name, str(error))
                    conflicts.append(str(error))
            for udf in staged.udfs.values():
                try:
                    self.registry.add_udf(_attributed(udf, report.origin))
                except PluginError as error:
                    self.registry.withdraw_udf(udf.name, str(error))
                    conflicts.append(str(error))
        return replace(
            report,
            operators=tuple(sorted(staged.constructors)),
            lookups=tuple(sorted(staged.lookups)),
            udfs=tuple(sorted(staged.udfs)),
            error="; ".join(conflicts) or None,
        )


def _check_kind(hook: str, item: Any, kind: type, origin: Origin) -> None:
    if not isinstance(item, kind):
        raise PluginError(f"{hook} of {origin} returns {type(item).__name__}, expected {kind.__name__}")


def _attributed(udf: Udf, origin: Origin) -> Udf:
    """The function as its distribution's own, where it can say so: its errors name where it came from."""
    registered_by = getattr(udf, "registered_by", None)
    return registered_by(origin.distribution, origin.version) if registered_by is not None else udf


def _origin(point: EntryPoint) -> Origin:
    if point.dist is None:
        return Origin("unknown distribution", "0")
    return Origin(point.dist.name, point.dist.version)
