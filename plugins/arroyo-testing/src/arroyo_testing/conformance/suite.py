"""`Conformance`: the cases of one plugin, and the checks that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from arroyo_core.api import Registry, Udf
from arroyo_testing.conformance import discovery
from arroyo_testing.conformance.cases import (
    Case,
    FormatCase,
    LookupCase,
    OperatorCase,
    SinkCase,
    SourceCase,
    StorageCase,
    case_name,
)
from arroyo_testing.conformance.config_checks import (
    check_config_mistakes,
    check_leaves_its_config,
    check_wrong_inputs,
)
from arroyo_testing.conformance.describing import check_describes_itself
from arroyo_testing.conformance.faults import ConformanceError
from arroyo_testing.conformance.format_checks import FORMAT_CHECKS
from arroyo_testing.conformance.leftovers import check_leaves_nothing
from arroyo_testing.conformance.lookup_checks import LOOKUP_CHECKS
from arroyo_testing.conformance.operator_checks import (
    check_any_cut_into_batches,
    check_any_cut_into_epochs,
    check_any_parallelism,
    check_crash_at_any_boundary,
    check_empty_batches,
    check_lives_on,
    check_needed_columns,
    check_no_state_outside_tables,
    check_nulls,
    check_produces_its_schema,
)
from arroyo_testing.conformance.partials import check_partial
from arroyo_testing.conformance.pipeline_checks import check_any_cut_in_a_pipeline
from arroyo_testing.conformance.rules import rules_for
from arroyo_testing.conformance.script import restart_at
from arroyo_testing.conformance.sink_checks import SINK_CHECKS
from arroyo_testing.conformance.source_checks import SOURCE_CHECKS, read_all
from arroyo_testing.conformance.storage_checks import STORAGE_CHECKS
from arroyo_testing.conformance.subject import OperatorSubject, SourceSubject, empty_folder
from arroyo_testing.conformance.token_checks import TOKEN_CHECKS

PLUGIN = "plugin"


@dataclass(frozen=True, slots=True)
class Check:
    """One rule for one case. `run` raises `ConformanceError`; `skip` says why it does not apply."""

    case: str
    name: str
    run: Callable[[], None] = field(repr=False)
    skip: str = ""

    def __str__(self) -> str:
        return f"{self.case}::{self.name}"


class Conformance:
    """All checks of a plugin. As a global of a test module it is collected by pytest, one test per check.

    `plugin` is the module with `arroyo_register`; None for cases that need no plugin. `udfs` are functions that cases
    use, `allowed_imports` packages that may come in with the plugin because they cost nothing.
    """

    def __init__(
        self,
        plugin: str | None,
        cases: Sequence[Case],
        *,
        udfs: Iterable[Udf] = (),
        allowed_imports: Collection[str] = (),
    ) -> None:
        self.plugin = plugin
        self.cases = cases
        self._udfs = list(udfs)
        self._allowed_imports = allowed_imports
        names = [case_name(case) for case in cases]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"several cases are called {', '.join(twice)}: give each an id=")

    @cached_property
    def registry(self) -> Registry:
        if self.plugin is None:
            return Registry()
        return discovery.load_registry(self.plugin).with_udfs(self._udfs)

    def checks(self) -> list[Check]:
        """All of them, in order; nothing is imported or made before one runs."""
        return [*self._plugin_checks(), *(check for case in self.cases for check in self._case_checks(case))]

    def run(self) -> None:
        """Run every check that applies; raises the first fault. For those who do not use pytest."""
        for check in self.checks():
            if not check.skip:
                check.run()

    def _plugin_checks(self) -> list[Check]:
        plugin = self.plugin
        if plugin is None:
            return []
        covered = [case.operator for case in self.cases if isinstance(case, OperatorCase | SourceCase)]
        return [
            Check(
                PLUGIN,
                "imports_nothing_heavy",
                partial(discovery.check_imports_nothing_heavy, plugin, allowed=self._allowed_imports),
            ),
            Check(PLUGIN, "one_prefix", lambda: discovery.check_prefix(plugin, self.registry)),
            Check(
                PLUGIN,
                "every_operator_has_a_case",
                lambda: discovery.check_every_operator_has_a_case(plugin, self.registry, covered),
            ),
        ]

    def _case_checks(self, case: Case) -> list[Check]:
        named = dict(_checks_of(case))
        for rule in rules_for(case):
            if rule.name in named:
                raise ValueError(f"there is a check {rule.name!r} already: call the rule something else")
            named[rule.name] = _on_case(rule.check)
        unknown = sorted(set(case.skip) - set(named))
        if unknown:
            raise ValueError(
                f"{case_name(case)} skips {', '.join(unknown)}, which are no checks: there are {', '.join(named)}"
            )
        return [
            Check(case_name(case), name, partial(run, case, self), skip=case.skip.get(name, ""))
            for name, run in named.items()
        ]


Runner = Callable[[Any, Conformance], None]


def _checks_of(case: Case) -> list[tuple[str, Runner]]:
    match case:
        case SinkCase():
            return [*_OPERATOR, *((name, _on_case(check)) for name, check in {**SINK_CHECKS, **TOKEN_CHECKS}.items())]
        case OperatorCase():
            return [*_OPERATOR, *_RESULTS]
        case SourceCase():
            return _SOURCE
        case FormatCase():
            return [(name, _on_case(check)) for name, check in FORMAT_CHECKS.items()]
        case StorageCase():
            return [(name, _on_case_alone(check)) for name, check in STORAGE_CHECKS.items()]
        case LookupCase():
            return [(name, _on_case(check)) for name, check in LOOKUP_CHECKS.items()]
    raise TypeError(f"{case!r} is not a case")


def _on_operator(check: Callable[[OperatorSubject], None]) -> Runner:
    def run(case: OperatorCase, suite: Conformance) -> None:
        if not case.inputs:
            raise ConformanceError(f"the case of {case.operator} has no inputs: give the rows of each")
        with empty_folder() as folder:
            check(OperatorSubject(case, suite.registry, folder))

    return run


def _on_source(check: Callable[[SourceSubject], None]) -> Runner:
    def run(case: SourceCase, suite: Conformance) -> None:
        with empty_folder() as folder:
            check(SourceSubject(case, suite.registry, folder))

    return run


def _on_case(check: Callable[[Any, Registry], None]) -> Runner:
    return lambda case, suite: check(case, suite.registry)


def _on_case_alone(check: Callable[[StorageCase], None]) -> Runner:
    return lambda case, suite: check(case)


def _operator_leaves_nothing(subject: OperatorSubject) -> None:
    """Threads, files and processes end with the operator: at every restart, and at the end of the data."""
    script = subject.script()
    script = restart_at(script, len(script) // 2)
    check_leaves_nothing(subject.name, lambda: subject.run(script), fix="on_close()")


def _source_leaves_nothing(subject: SourceSubject) -> None:
    """Threads, files and processes end with the source: at the end of every epoch."""
    check_leaves_nothing(subject.name, lambda: read_all(subject, rows=20), fix="on_close()")


_OPERATOR: list[tuple[str, Runner]] = [
    ("describes_itself", _on_operator(check_describes_itself)),
    ("produces_its_schema", _on_operator(check_produces_its_schema)),
    ("config_mistakes", _on_operator(check_config_mistakes)),
    ("leaves_its_config", _on_operator(check_leaves_its_config)),
    ("wrong_inputs", _on_operator(check_wrong_inputs)),
    ("empty_batches", _on_operator(check_empty_batches)),
    ("nulls", _on_operator(check_nulls)),
    ("leaves_nothing_behind", _on_operator(_operator_leaves_nothing)),
]
_RESULTS: list[tuple[str, Runner]] = [
    ("any_cut_into_batches", _on_operator(check_any_cut_into_batches)),
    ("any_cut_into_epochs", _on_operator(check_any_cut_into_epochs)),
    ("no_state_outside_tables", _on_operator(check_no_state_outside_tables)),
    ("lives_on", _on_operator(check_lives_on)),
    ("crash_at_any_boundary", _on_operator(check_crash_at_any_boundary)),
    ("any_parallelism", _on_operator(check_any_parallelism)),
    ("any_cut_in_a_pipeline", _on_operator(check_any_cut_in_a_pipeline)),
    ("needed_columns", _on_operator(check_needed_columns)),
    ("partial", _on_operator(check_partial)),
]
_SOURCE: list[tuple[str, Runner]] = [
    ("describes_itself", _on_source(check_describes_itself)),
    ("config_mistakes", _on_source(check_config_mistakes)),
    ("leaves_its_config", _on_source(check_leaves_its_config)),
    *((name, _on_source(check)) for name, check in SOURCE_CHECKS.items()),
    ("leaves_nothing_behind", _on_source(_source_leaves_nothing)),
]
