"""Runs the tests of a file, and says what came of each."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from arroyo_core.api.policy import current_policy
from arroyo_core.errors import InvalidPipelineError
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.parameters import Given
from arroyo_core.pipeline.plan import Plan
from arroyo_core.pipeline.planner import PlannedPipeline, plan_file
from arroyo_core.pipeline.udfs import BundleLoader
from arroyo_core.plugin import PluginSet
from arroyo_core.runtime.user_code import BundleOpener
from arroyo_testing.cases.cells import Row, row_key, rows_of
from arroyo_testing.cases.comparison import Difference, compare_rows
from arroyo_testing.cases.compiling import CompiledCase, compile_case
from arroyo_testing.cases.files import CaseFile
from arroyo_testing.cases.operators import case_plugins
from arroyo_testing.cases.rewiring import Outlet
from arroyo_testing.cases.running import Captured, CaseRunner, MemoryPlace, Place, table_between
from arroyo_testing.cases.spec import CaseSpec
from arroyo_testing.machine import CrashPoint, Disk, Life


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """What came of one test. It passed where nothing else is set."""

    file: Path
    spec: CaseSpec
    duration_s: float
    differences: tuple[Difference, ...] = ()
    #: What the job failed with, where no failure was expected, or another one.
    error: Exception | None = None
    #: A failure was expected, and did not come.
    is_unfailing: bool = False

    @property
    def is_passed(self) -> bool:
        return not self.differences and self.error is None and not self.is_unfailing


@dataclass(frozen=True, slots=True)
class CrashRound:
    """A crash after which not all was as if nothing had happened."""

    point: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashResult:
    """What came of all crashes of one test."""

    file: Path
    spec: CaseSpec
    duration_s: float
    crashes: int
    calls: int
    failures: tuple[CrashRound, ...] = ()


@dataclass(slots=True)
class PipelineCases:
    """A pipeline file under test: plans it for each parallelism and environment once."""

    path: Path
    plugins: PluginSet = field(default_factory=case_plugins)
    bundles: BundleLoader | None = field(default_factory=BundleOpener)
    parameters: Mapping[str, Given] = field(default_factory=dict)
    _planned: dict[tuple[int, tuple[tuple[str, str], ...]], PlannedPipeline] = field(default_factory=dict)

    def planned(self, parallelism: int, environment: Mapping[str, str]) -> PlannedPipeline:
        """The pipeline as it would run, with all columns of its sources; raises `InvalidPipelineError`."""
        key = (parallelism, tuple(sorted(environment.items())))
        if key not in self._planned:
            policy = current_policy()
            self._planned[key] = plan_file(
                self.path,
                plugins=self.plugins,
                environment={**os.environ, **environment},
                # What a test itself gives is no secret.
                policy=replace(policy, variables=policy.variables | environment.keys()),
                parallelism=parallelism,
                bundles=self.bundles,
                parameters=self.parameters,
                keeps_columns=True,
            )
        return self._planned[key]

    def compile(self, spec: CaseSpec) -> CompiledCase:
        """The test against the pipeline; raises `InvalidPipelineError` for mistakes in either."""
        planned = self.planned(spec.parallelism, spec.environment)
        mistakes = Mistakes()
        compiled = compile_case(spec, planned.plan, sinks=planned.sinks, mistakes=mistakes)
        mistakes.raise_if_any()
        return compiled

    def runner(self, case: CompiledCase, place: Place) -> CaseRunner:
        environment = case.spec.environment

        def plans(parallelism: int) -> Plan:
            return self.planned(parallelism, environment).plan

        sinks = self.planned(case.spec.parallelism, environment).sinks
        return CaseRunner(case=case, plans=plans, sinks=sinks, plugins=self.plugins, place=place)

    def run(self, file: CaseFile, spec: CaseSpec, place: Place) -> CaseResult:
        """One test. Raises `InvalidPipelineError` for a mistake in it, or in a pipeline that should have none."""
        started_s = time.perf_counter()
        differences: tuple[Difference, ...] = ()
        error: Exception | None = None
        try:
            compiled = self.compile(spec)
            runner = self.runner(compiled, place)
            runner.run()
            differences = find_differences(compiled, runner.captured())
        except InvalidPipelineError as invalid:
            if spec.error is None or spec.error not in str(invalid):
                raise
            error = invalid
        except Exception as raised:
            error = raised
        is_expected = error is not None and spec.error is not None and spec.error in str(error)
        return CaseResult(
            file=file.path,
            spec=spec,
            duration_s=time.perf_counter() - started_s,
            differences=differences,
            error=None if is_expected else error,
            is_unfailing=spec.error is not None and error is None,
        )

    def crash_all(self, file: CaseFile, spec: CaseSpec, on_round: Callable[[int, int], None]) -> CrashResult:
        """Run the test once, and again from every state of its storage that a crash could leave.

        `on_round` is told how many rounds are done, and of how many.
        """
        started_s = time.perf_counter()
        compiled = self.compile(spec)
        place = MemoryPlace(is_watched=True)
        whole = self.runner(compiled, place)
        whole.run()
        lives = list(place.lives)
        wanted = _fingerprint(whole.captured())
        wrecks = [(number, point, disk) for number, life in enumerate(lives) for point, disk in life.wrecks]
        failures = []
        #: By process and disk: what a crash leaves before a call that only reads is what the one before it left.
        problems: dict[tuple[int, frozenset[tuple[str, int]]], str] = {}
        for done, (number, point, disk) in enumerate(wrecks):
            on_round(done, len(wrecks))
            wreck = (number, _identity(disk))
            if wreck not in problems:
                recovered = self.runner(compiled, MemoryPlace(disk=disk.copy()))
                recovered.positions = dict(whole.positions)
                problems[wreck] = _recover(recovered, number, wanted)
            if problems[wreck]:
                failures.append(CrashRound(_describe(number, point, lives), problems[wreck]))
        on_round(len(wrecks), len(wrecks))
        return CrashResult(
            file=file.path,
            spec=spec,
            duration_s=time.perf_counter() - started_s,
            crashes=len(wrecks),
            calls=sum(len(life.calls) for life in lives),
            failures=tuple(failures),
        )


def find_differences(case: CompiledCase, captured: Captured) -> tuple[Difference, ...]:
    """The expectations that were not met."""
    found = []
    for expected in case.expected:
        table = table_between(captured[expected.outlet], expected.first, expected.last, expected.schema)
        difference = compare_rows(expected, table)
        if difference is not None:
            found.append(difference)
    return tuple(found)


_Fingerprint = Mapping[tuple[Outlet, int], Counter[Row]]


def _fingerprint(captured: Captured) -> _Fingerprint:
    return {(outlet, step): _multiset(table) for outlet, tables in captured.items() for step, table in tables.items()}


def _multiset(table: pa.Table) -> Counter[Row]:
    return Counter(row_key(row, table.schema.types) for row in rows_of(table))


def _recover(runner: CaseRunner, first_life: int, wanted: _Fingerprint) -> str:
    """What was not as it should be after a crash; nothing if all was."""
    try:
        runner.run(first_life)
        found = _fingerprint(runner.captured())
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    for outlet, step in sorted({*wanted, *found}, key=str):
        missing = wanted.get((outlet, step), Counter()) - found.get((outlet, step), Counter())
        surplus = found.get((outlet, step), Counter()) - wanted.get((outlet, step), Counter())
        if missing or surplus:
            return f"{outlet}: rows lost: {missing.total()}, rows that should not have come: {surplus.total()}"
    return ""


def _identity(disk: Disk) -> frozenset[tuple[str, int]]:
    """Equal for disks with the same files, which are never changed in place."""
    return frozenset((name, id(data)) for name, data in disk.files.items())


def _describe(life: int, point: CrashPoint, lives: Sequence[Life]) -> str:
    call = lives[life].calls[point.call - 1]
    return f"{point.mode} call {point.call} of process {life + 1} ({call})"
