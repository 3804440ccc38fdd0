"""Rules that plugins add to the conformance kit through the hook `arroyo_conformance`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from arroyo_core.api import Registry
from arroyo_core.plugin import PluginSet, installed_plugins
from arroyo_testing.conformance.cases import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A check of every case of some types.

    `check(case, registry)` raises `ConformanceError` for a fault, and `NotApplicable` where it has nothing to say.
    """

    name: str
    #: Such as `OperatorCase`; a sink's case is an operator's too.
    cases: tuple[type[Case], ...]
    check: Callable[[Case, Registry], None] = field(repr=False)


def rules_for(case: Case, plugins: PluginSet | None = None) -> list[Rule]:
    """The rules of all plugins that hold for a case."""
    plugins = plugins or installed_plugins()
    found = plugins.hooks.collect("arroyo_conformance", Rule)
    return [rule for rule, _ in found if isinstance(case, rule.cases)]
