"""From a test as written to what is done and expected, against the plan of its pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import pyarrow as pa
import pyarrow.types as pt

from arroyo_core.api import ArroyoSchema
from arroyo_core.errors import Location
from arroyo_core.pipeline.document import YamlMap
from arroyo_core.pipeline.mistakes import Mistakes, nearest
from arroyo_core.pipeline.plan import Plan
from arroyo_testing.cases.cells import Row, array_of, narrow_row
from arroyo_testing.cases.operators import ScriptItem, encode_batches
from arroyo_testing.cases.reading import read_rows
from arroyo_testing.cases.rewiring import Outlet, outlets_of, sources_of
from arroyo_testing.cases.spec import (
    AdvanceTimeStep,
    CaseSpec,
    CheckpointStep,
    CrashMoment,
    CrashStep,
    EndStep,
    ExpectSpec,
    ExpectStep,
    IdleStep,
    NodeName,
    RestartStep,
    RowsStep,
    WatermarkStep,
)


class Death(StrEnum):
    """How a process of the job ends."""

    #: The data ends.
    FINISH = "finish"
    STOP = "stop"
    #: Before the epoch is published.
    UNPUBLISHED = "unpublished"
    #: Between publication and commit.
    UNCOMMITTED = "uncommitted"


@dataclass(frozen=True, slots=True, kw_only=True)
class LifePlan:
    """One process of the job: from wherever its checkpoint says, to the step `end`."""

    parallelism: int
    #: The steps after which an epoch ends; the last one ends the script, and only the last life gets there.
    cuts: tuple[int, ...]
    end: int
    death: Death


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Rows, or a number of rows, that must come out of a node between two steps."""

    outlet: Outlet
    at: Location
    schema: pa.Schema
    #: Exclusive and inclusive; counted from 1.
    first: int
    last: int
    #: Which of the expectations of the test this is, in words.
    where: str
    columns: tuple[str, ...] = ()
    #: Of the columns; a struct has only the fields that are compared.
    types: tuple[pa.DataType, ...] = ()
    rows: tuple[Row, ...] | None = None
    count: int | None = None
    is_ordered: bool = False
    path: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledCase:
    """All that a run of a test needs to know beside the pipeline."""

    spec: CaseSpec
    scripts: Mapping[str, tuple[ScriptItem, ...]]
    lives: tuple[LifePlan, ...]
    #: The time after each step that is a cut; and before the first.
    times_us: Mapping[int, int]
    expected: tuple[Expected, ...]

    @property
    def taps(self) -> tuple[Outlet, ...]:
        return tuple(dict.fromkeys(each.outlet for each in self.expected))

    @property
    def end(self) -> int:
        return self.lives[-1].end


def compile_case(spec: CaseSpec, plan: Plan, *, sinks: Iterable[str], mistakes: Mistakes) -> CompiledCase:
    """Check what a test says about nodes, columns and types; mistakes are recorded where they are written."""
    return _Compiler(spec, plan, frozenset(sinks), mistakes).compile()


@dataclass(slots=True)
class _Compiler:
    spec: CaseSpec
    plan: Plan
    sinks: frozenset[str]
    mistakes: Mistakes
    items: dict[str, list[ScriptItem]] = field(default_factory=dict)
    expected: list[Expected] = field(default_factory=list)
    outlets: dict[str, tuple[Outlet, ArroyoSchema]] = field(default_factory=dict)
    #: Where the rows of each expectation of a step begin.
    since: dict[str, int] = field(default_factory=dict)

    def compile(self) -> CompiledCase:
        self.outlets = outlets_of(self.plan, self.sinks)
        sources = sources_of(self.plan)
        real = {name.text for name in self.spec.real_sources if self.check_source(name, sources)}
        self.items = {name: [] for name in sources if name not in real}
        end = len(self.spec.steps) + 1
        times_us = _times(self.spec, end)
        for number, step in enumerate(self.spec.steps, start=1):
            match step:
                case RowsStep(batches):
                    for name, rows in batches:
                        self.add_rows(number, name, rows)
                case WatermarkStep(watermarks_us):
                    for name, time_us in watermarks_us:
                        self.add_item(name, ScriptItem(step=number, watermark_us=time_us))
                case IdleStep(names):
                    for name in names:
                        self.add_item(name, ScriptItem(step=number, is_idle=True))
                case EndStep(names):
                    for name in names:
                        self.add_item(name, ScriptItem(step=number, is_end=True))
                case AdvanceTimeStep():
                    for items in self.items.values():
                        items.append(ScriptItem(step=number, time_us=times_us[number]))
                case ExpectStep(specs):
                    for expect in specs:
                        first = self.since.get(expect.node.text, 0)
                        self.expect(expect, first, number, f"step {number}")
                        self.since[expect.node.text] = number
        for expect in self.spec.expected:
            self.expect(expect, 0, end, "the whole run")
        return CompiledCase(
            spec=self.spec,
            scripts={name: tuple(items) for name, items in self.items.items()},
            lives=derive_lives(self.spec, end),
            times_us=times_us,
            expected=tuple(self.expected),
        )

    def add_rows(self, step: int, name: NodeName, rows: Sequence[YamlMap]) -> None:
        if not self.check_scripted(name):
            return
        schema = self.plan.nodes[name.text].output_schema.schema
        read = read_rows(rows, schema, node=name.text, mistakes=self.mistakes)
        if not read:
            return
        columns = [array_of([row[place] for row in read], column.type) for place, column in enumerate(schema)]
        batch = pa.RecordBatch.from_arrays(columns, schema=schema)
        self.add_item(name, ScriptItem(step=step, rows=encode_batches([batch])))

    def add_item(self, name: NodeName, item: ScriptItem) -> None:
        if not self.check_scripted(name):
            return
        items = self.items[name.text]
        if any(each.is_end for each in items):
            self.mistakes.add(f"the data of {name.text!r} has ended before this step", at=name.at, value=name.text)
            return
        items.append(item)

    def check_scripted(self, name: NodeName) -> bool:
        if name.text in self.items:
            return True
        if not self.check_source(name, sources_of(self.plan)):
            return False
        self.mistakes.add(f"{name.text!r} is a real source in this test, and makes its own rows", at=name.at)
        return False

    def check_source(self, name: NodeName, sources: Iterable[str]) -> bool:
        known = tuple(sources)
        if name.text in known:
            return True
        what = "is not a source" if name.text in self.plan.nodes else "is not a node of the pipeline"
        self.mistakes.add_unknown(f"{name.text!r} {what}", at=name.at, name=name.text, choices=known)
        return False

    def expect(self, spec: ExpectSpec, first: int, last: int, where: str) -> None:
        found = self.outlets.get(spec.node.text)
        if found is None:
            self.add_unknown_outlet(spec.node)
            return
        outlet, schema = found
        columns: tuple[str, ...] = ()
        types: tuple[pa.DataType, ...] = ()
        rows = None
        if spec.rows is not None:
            written = {entry.key for row in spec.rows for entry in row.entries}
            # Those that are written: a test says nothing about the others.
            columns = tuple(name for name in schema.names if name in written)
            read = read_rows(spec.rows, schema.schema, node=spec.node.text, mistakes=self.mistakes, columns=columns)
            whole = [schema.schema.field(name).type for name in columns]
            types = tuple(
                _named_fields(data_type, name, spec.rows) for name, data_type in zip(columns, whole, strict=True)
            )
            rows = tuple(narrow_row(row, whole, types) for row in read)
        self.expected.append(
            Expected(
                outlet=outlet,
                at=spec.at,
                schema=schema.schema,
                first=first,
                last=last,
                where=where,
                columns=columns,
                types=types,
                rows=rows,
                count=spec.count,
                is_ordered=spec.is_ordered,
                path=spec.path,
            )
        )

    def add_unknown_outlet(self, name: NodeName) -> None:
        node, dot, output = name.text.partition(".")
        sides = [text for text, (outlet, _) in self.outlets.items() if outlet.node == node and outlet.output]
        if dot and node in self.outlets:
            message = f"{node!r} has no output {output!r} beside its main one"
            near = nearest(name.text, sides)
            self.mistakes.add(message, at=name.at, value=name.text, allowed=sides, suggestion=near)
            return
        message = f"{name.text!r} is not a node of the pipeline"
        self.mistakes.add_unknown(message, at=name.at, name=name.text, choices=self.outlets)


def _named_fields(data_type: pa.DataType, column: str, rows: Sequence[YamlMap]) -> pa.DataType:
    """A struct with those fields that any of the rows names: a test says nothing about the others."""
    if not pt.is_struct(data_type):
        return data_type
    values = [entry.value for row in rows for entry in row.entries if entry.key == column]
    named = {entry.key for value in values if isinstance(value, YamlMap) for entry in value.entries}
    kept = [field for field in data_type if field.name in named]
    return pa.struct(kept) if kept else data_type


def derive_lives(spec: CaseSpec, end: int) -> tuple[LifePlan, ...]:
    """The processes of a test, one after the other.

    Rows are an epoch of their own: a watermark gets through an exchange no later than at the end of an epoch, so
    only then does what is late not depend on chance. What a crash lost comes again.
    """
    lives: list[LifePlan] = []
    cuts: list[int] = []
    parallelism = spec.parallelism
    #: Whether a source has done anything since the last cut.
    is_begun = False
    for number, step in enumerate(spec.steps, start=1):
        match step:
            case RowsStep():
                if is_begun:
                    cuts.append(number - 1)
                is_begun = True
            case WatermarkStep() | IdleStep() | EndStep():
                is_begun = True
            case CheckpointStep() | ExpectStep():
                cuts.append(number)
                is_begun = False
            case AdvanceTimeStep():
                # An epoch without rows: those before it are processed before time passes.
                cuts += [number - 1, number] if is_begun else [number]
                is_begun = False
            case CrashStep(moment):
                is_lost = moment is CrashMoment.BEFORE_PUBLISH
                death = Death.UNPUBLISHED if is_lost else Death.UNCOMMITTED
                lives.append(LifePlan(parallelism=parallelism, cuts=(*cuts, number, end), end=number, death=death))
                if not is_lost:
                    cuts.append(number)
                    is_begun = False
            case RestartStep(width):
                cuts.append(number)
                is_begun = False
                lives.append(LifePlan(parallelism=parallelism, cuts=(*cuts, end), end=number, death=Death.STOP))
                parallelism = width or parallelism
    lives.append(LifePlan(parallelism=parallelism, cuts=(*cuts, end), end=end, death=Death.FINISH))
    return tuple(lives)


def _times(spec: CaseSpec, end: int) -> dict[int, int]:
    now_us = spec.start_time_us
    times = {0: now_us}
    for number, step in enumerate(spec.steps, start=1):
        if isinstance(step, AdvanceTimeStep):
            now_us += step.duration_us
        times[number] = now_us
    times[end] = now_us
    return times
