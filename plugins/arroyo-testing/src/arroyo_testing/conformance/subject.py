"""An operator under test, with its case: makes instances, runs scripts, gathers what came out."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from arroyo_core.api import ArrowOperator, ArroyoSchema, ConstructedOperator, Registry, SourceOperator, Watermark
from arroyo_core.errors import ArroyoError
from arroyo_testing.conformance.cases import Config, OperatorCase, SourceCase, Stream
from arroyo_testing.conformance.configs import maker
from arroyo_testing.conformance.faults import ConformanceError, failure_of
from arroyo_testing.conformance.memory import Remembered, changes, instance_memory
from arroyo_testing.conformance.observed import Look, ObservedOperator
from arroyo_testing.conformance.rows import Outcome, difference
from arroyo_testing.conformance.script import Advance, Checkpoint, Crash, Feed, Restart, Script, Tick, make_script
from arroyo_testing.parallel import ParallelHarness


@contextmanager
def empty_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="arroyo-conformance-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def resolve(config: Config, folder: Path) -> dict[str, Any]:
    return dict(config(folder) if callable(config) else config)


@dataclass(slots=True)
class Run:
    """What one script gave, and what instances remembered that their successors did not."""

    outcome: Outcome
    forgotten: dict[str, tuple[str, str]] = field(default_factory=dict)


class Subject:
    """The operator of a case, in one folder. Everything that fails on the way is a `ConformanceError`."""

    def __init__(self, case: OperatorCase | SourceCase, registry: Registry, folder: Path) -> None:
        self.case = case
        self.registry = registry
        self.config = resolve(case.config, folder)
        constructor = registry.constructors.get(case.operator)
        if constructor is None:
            raise ConformanceError(
                f"the plugin registers no operator {case.operator!r}; it has {', '.join(registry.constructors)}"
            )
        self.constructor = constructor
        self._make: Callable[[], ConstructedOperator] | None = None

    @property
    def name(self) -> str:
        """What its author calls it: the class, where there is one."""
        return self.case.operator

    def make(self) -> ConstructedOperator:
        if self._make is None:
            try:
                self._make = maker(self.case.operator, self.config, self.constructor, self.registry)
            except ArroyoError as error:
                raise ConformanceError(f"{self.case.operator} refuses the config of its case: {error}") from error
        return self._make()


class OperatorSubject(Subject):
    """An operator that is not a source."""

    def __init__(self, case: OperatorCase, registry: Registry, folder: Path) -> None:
        super().__init__(case, registry, folder)
        self.case: OperatorCase = case
        self.streams = case.streams
        self._expected: Outcome | None = None

    @property
    def name(self) -> str:
        return type(self.operator()).__name__

    def operator(self) -> ArrowOperator:
        made = self.make().operator
        if made is None:
            raise ConformanceError(f"{self.case.operator} is a source: declare it as a SourceCase")
        return made

    @property
    def schemas(self) -> list[ArroyoSchema]:
        return [stream.schema for stream in self.streams]

    def output_schema(self) -> ArroyoSchema:
        try:
            return self.operator().output_schema(self.schemas)
        except ArroyoError as error:
            raise ConformanceError(f"{self.name} refuses the inputs of its case: {error}") from error

    def script(self, streams: Sequence[Stream] | None = None) -> list[Any]:
        return list(make_script(self.streams if streams is None else streams))

    def expected(self) -> Outcome:
        """The result of all rows in one epoch, in the largest batches, at parallelism 1."""
        if self._expected is None:
            self._expected = self.run(self.script()).outcome
        return self._expected

    def run(
        self,
        script: Script,
        *,
        parallelism: int = 1,
        streams: Sequence[Stream] | None = None,
        look: Look = lambda output, batch: None,
        doing: str = "while it processes its rows",
    ) -> Run:
        """One life: all steps, the end of the data, the last checkpoint."""
        schemas = [stream.schema for stream in self.streams if streams is None] or [s.schema for s in streams or ()]
        try:
            harness = ParallelHarness(
                lambda: ObservedOperator(self.operator(), look), inputs=schemas, parallelism=parallelism
            )
            with harness:
                run = _Runner(harness)
                run.follow(script)
                outcome = run.finish(self.case.ignore)
                if self.case.latest_by:
                    outcome.keep_latest(self.case.latest_by, self.case.removed_by)
                return Run(outcome, run.forgotten)
        except ArroyoError as error:
            raise failure_of(self.name, doing, error) from error

    def compare(self, expected: Outcome, got: Outcome, *, is_ordered: bool | None = None) -> str | None:
        return difference(expected, got, is_ordered=self.case.is_ordered if is_ordered is None else is_ordered)


class SourceSubject(Subject):
    """A source."""

    def __init__(self, case: SourceCase, registry: Registry, folder: Path) -> None:
        super().__init__(case, registry, folder)
        self.case: SourceCase = case

    @property
    def name(self) -> str:
        return type(self.source()).__name__

    def source(self) -> SourceOperator:
        made = self.make().source
        if made is None:
            raise ConformanceError(f"{self.case.operator} is not a source: declare it as an OperatorCase or a SinkCase")
        return made


class _Runner:
    """Follows a script on a harness."""

    def __init__(self, harness: ParallelHarness) -> None:
        self._harness = harness
        self.forgotten: dict[str, tuple[str, str]] = {}

    def follow(self, script: Script) -> None:
        for step in script:
            match step:
                case Feed(index, batch):
                    self._harness.process(batch, index)
                case Advance(index, event_time_us):
                    self._harness.watermark(Watermark.event_time(event_time_us), index)
                case Tick():
                    self._harness.tick()
                case Restart(parallelism):
                    self._restart(parallelism)
                case Checkpoint():
                    self._harness.checkpoint()
                    self._harness.go_on()
                case Crash():
                    self._harness.crash()

    def finish(self, ignore: Any) -> Outcome:
        self._harness.end_of_data()
        self._harness.checkpoint()
        outcome = Outcome()
        outcome.add(None, self._harness.output, ignore=ignore)
        for name in self._harness.side_names:
            outcome.add(name, self._harness.side_output(name), ignore=ignore)
        return outcome

    def _restart(self, parallelism: int | None) -> None:
        self._harness.checkpoint()
        before = self._remembered()
        self._harness.restore(parallelism)
        for name, (old, new) in changes(before, self._remembered()).items():
            self.forgotten.setdefault(name, (old, new))

    def _remembered(self) -> Remembered:
        operator = self._harness.operators[0]
        return instance_memory(operator.inner if isinstance(operator, ObservedOperator) else operator)


def empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)
