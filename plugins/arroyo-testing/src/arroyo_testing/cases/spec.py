"""The shape of tests: the `tests` of a pipeline file, or of a file beside it.

What they say about nodes and columns is checked when they are run, against the plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from arroyo_core.errors import Location
from arroyo_core.pipeline.document import Entry, Scalar, YamlList, YamlMap, YamlValue, describe, shown
from arroyo_core.pipeline.mistakes import Mistakes, nearest
from arroyo_core.pipeline.values import read_duration_us, read_int, read_string
from arroyo_testing.cases.times import read_time_us

MAX_PARALLELISM = 4096
#: Where the clock of a test starts: 2026-01-01T00:00:00Z.
START_TIME_US = 1_767_225_600_000_000
_MAX_ROWS = 10**9
_DEEDS = ("rows", "steps", "expect", "error")

CASE_KEYS = ("name", "parallelism", "environment", "time", "sources", "rows", "steps", "expect", "error")
STEP_KEYS = (
    "rows",
    "watermark",
    "idle",
    "end",
    "checkpoint",
    "expect",
    "crash",
    "restart",
    "rescale",
    "advance_time",
)
_EXPECT_KEYS = ("any_order", "in_order", "count")
_REAL = "real"


class CrashMoment(StrEnum):
    """When the process dies; rows since the last checkpoint have been processed by then."""

    #: The epoch is lost, and run again.
    BEFORE_PUBLISH = "before_publish"
    #: The epoch exists, and its output is not visible yet.
    BEFORE_COMMIT = "before_commit"


@dataclass(frozen=True, slots=True)
class NodeName:
    """A node, or one of its side outputs, as a test names it."""

    text: str
    at: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectSpec:
    """What must have come out of a node. Either `rows` or `count` is given."""

    node: NodeName
    #: Of the rows or the count.
    at: Location
    rows: tuple[YamlMap, ...] | None = None
    count: int | None = None
    is_ordered: bool = False
    #: The keys and positions that lead to the list of rows, from the root of the file.
    path: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True)
class RowsStep:
    """Rows come out of sources, one batch each."""

    batches: tuple[tuple[NodeName, tuple[YamlMap, ...]], ...]


@dataclass(frozen=True, slots=True)
class WatermarkStep:
    """Sources promise that no earlier event follows."""

    watermarks_us: tuple[tuple[NodeName, int], ...]


@dataclass(frozen=True, slots=True)
class IdleStep:
    """Sources have nothing for now, and hold nobody up."""

    sources: tuple[NodeName, ...]


@dataclass(frozen=True, slots=True)
class EndStep:
    """The data of sources ends before that of the others."""

    sources: tuple[NodeName, ...]


@dataclass(frozen=True, slots=True)
class CheckpointStep:
    """The epoch ends, is published and committed."""


@dataclass(frozen=True, slots=True)
class ExpectStep:
    """What came out since the last such step; ends the epoch."""

    expected: tuple[ExpectSpec, ...]


@dataclass(frozen=True, slots=True)
class CrashStep:
    moment: CrashMoment


@dataclass(frozen=True, slots=True)
class RestartStep:
    """A graceful stop, and a start at `parallelism`, or at the one before."""

    parallelism: int | None = None


@dataclass(frozen=True, slots=True)
class AdvanceTimeStep:
    """The epoch ends, and the clock moves."""

    duration_us: int


Step: TypeAlias = (
    RowsStep
    | WatermarkStep
    | IdleStep
    | EndStep
    | CheckpointStep
    | ExpectStep
    | CrashStep
    | RestartStep
    | AdvanceTimeStep
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSpec:
    """One test as written."""

    name: str
    at: Location
    steps: tuple[Step, ...]
    #: Of the whole run.
    expected: tuple[ExpectSpec, ...] = ()
    #: Not that of the pipeline: with one subtask, what is late does not depend on who is first.
    parallelism: int = 1
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    start_time_us: int = START_TIME_US
    real_sources: tuple[NodeName, ...] = ()
    #: The pipeline must fail, and say this.
    error: str | None = None


def read_cases(entry: Entry, mistakes: Mistakes) -> tuple[CaseSpec, ...]:
    """The tests of a file; whatever is wrong with their shape is recorded."""
    value = entry.value
    if not isinstance(value, YamlList):
        mistakes.add(f"'{entry.key}' must be a list of tests, not {describe(value)}", at=value.at, value=shown(value))
        return ()
    cases = [
        _Reader(mistakes, (entry.key, number)).case(item, f"{entry.key}[{number}]")
        for number, item in enumerate(value.items)
    ]
    taken: dict[str, Location] = {}
    for case in cases:
        first = taken.setdefault(case.name, case.at)
        if first is not case.at:
            mistakes.add(f"two tests are called {case.name!r}: the first is in line {first.line}", at=case.at)
    return tuple(cases)


@dataclass(frozen=True, slots=True)
class _Reader:
    mistakes: Mistakes
    path: tuple[str | int, ...]

    def case(self, value: YamlValue, place: str) -> CaseSpec:
        fields = self.fields(value, place, CASE_KEYS, required=("name",))
        name, at = self.name(fields.get("name"), place, value)
        steps: list[Step] = []
        if rows := self.optional(fields, "rows"):
            steps.append(self.rows(rows))
        if written := self.optional(fields, "steps"):
            steps += self.steps(written)
        expected = self.optional(fields, "expect")
        error = self.optional(fields, "error")
        time = self.optional(fields, "time")
        is_read = isinstance(value, YamlMap) and len(value.entries) == len(fields)
        if is_read and fields.keys().isdisjoint(_DEEDS):
            self.mistakes.add(f"the test {name!r} does nothing: it has no rows, steps or expect", at=at)
        return CaseSpec(
            name=name,
            at=at,
            steps=tuple(steps),
            expected=self.expected(expected, (*self.path, "expect")) if expected else (),
            parallelism=self.parallelism(self.optional(fields, "parallelism"), "'parallelism'") or 1,
            environment=self.environment(self.optional(fields, "environment")),
            start_time_us=(read_time_us(time, "'time'", self.mistakes) if time else None) or START_TIME_US,
            real_sources=self.real_sources(self.optional(fields, "sources")),
            error=read_string(error, "'error'", self.mistakes) if error else None,
        )

    def fields(
        self, value: YamlValue, what: str, keys: Sequence[str], *, required: Sequence[str] = ()
    ) -> dict[str, Entry]:
        if not isinstance(value, YamlMap):
            message = f"{what} must be a mapping with the keys {', '.join(keys)}, not {describe(value)}"
            self.mistakes.add(message, at=value.at, value=shown(value))
            return {}
        unknown = [entry for entry in value.entries if entry.key not in keys]
        for entry in unknown:
            self.mistakes.add_unknown(f"{what} has no key {entry.key!r}", at=entry.key_at, name=entry.key, choices=keys)
        meant = {nearest(entry.key, keys) for entry in unknown}
        for key in required:
            if value.entry(key) is None and key not in meant:
                self.mistakes.add(f"{what} needs the key {key!r}", at=value.at)
        return {entry.key: entry for entry in value.entries if entry.key in keys}

    def optional(self, fields: Mapping[str, Entry], key: str) -> YamlValue | None:
        entry = fields.get(key)
        if entry is None or (isinstance(entry.value, Scalar) and entry.value.is_null):
            return None
        return entry.value

    def name(self, entry: Entry | None, place: str, case: YamlValue) -> tuple[str, Location]:
        if entry is None:
            return place, case.at
        return read_string(entry.value, "'name'", self.mistakes) or place, entry.value.at

    def parallelism(self, value: YamlValue | None, what: str) -> int | None:
        if value is None:
            return None
        return read_int(value, what, self.mistakes, least=1, greatest=MAX_PARALLELISM)

    def environment(self, value: YamlValue | None) -> Mapping[str, str]:
        found = {}
        for entry in self.entries(value, "'environment'", "names and texts"):
            text = read_string(entry.value, f"{entry.key!r}", self.mistakes)
            if text is not None:
                found[entry.key] = text
        return found

    def real_sources(self, value: YamlValue | None) -> tuple[NodeName, ...]:
        found = []
        for entry in self.entries(value, "'sources'", "sources, each 'real'"):
            text = read_string(entry.value, f"{entry.key!r}", self.mistakes)
            if text == _REAL:
                found.append(NodeName(entry.key, entry.key_at))
            elif text is not None:
                self.mistakes.add(
                    f"a source is 'real', or has its rows in steps; it cannot be {text!r}",
                    at=entry.value.at,
                    value=text,
                    allowed=(_REAL,),
                )
        return tuple(found)

    def entries(self, value: YamlValue | None, what: str, of: str) -> Sequence[Entry]:
        if value is None:
            return ()
        if not isinstance(value, YamlMap):
            self.mistakes.add(f"{what} must be a mapping of {of}, not {describe(value)}", at=value.at)
            return ()
        return value.entries

    def steps(self, value: YamlValue) -> list[Step]:
        if not isinstance(value, YamlList):
            self.mistakes.add(f"'steps' must be a list of steps, not {describe(value)}", at=value.at)
            return []
        path = (*self.path, "steps")
        steps = [_Reader(self.mistakes, (*path, number)).step(item) for number, item in enumerate(value.items)]
        return [step for step in steps if step is not None]

    def step(self, value: YamlValue) -> Step | None:
        """A word such as `checkpoint`, or a mapping with the step as its one key."""
        if isinstance(value, Scalar):
            return self.bare_step(value)
        if isinstance(value, YamlMap) and len(value.entries) != 1:
            keys = ", ".join(entry.key for entry in value.entries)
            self.mistakes.add(
                f"a step has one key, not {len(value.entries)} ({keys}): write '- ' before each", at=value.at
            )
            return None
        fields = self.fields(value, "a step", STEP_KEYS)
        for key, entry in fields.items():
            if isinstance(entry.value, Scalar) and entry.value.is_null:
                return self.bare_step(
                    Scalar(at=entry.key_at, text=key, written=key, is_plain=True),
                )
            return self.full_step(key, entry.value)
        return None

    def bare_step(self, value: Scalar) -> Step | None:
        match value.text:
            case "checkpoint":
                return CheckpointStep()
            case "crash":
                return CrashStep(CrashMoment.BEFORE_PUBLISH)
            case "restart":
                return RestartStep()
            case key if key in STEP_KEYS:
                self.mistakes.add(f"the step {key!r} needs a value: {_FORMS[key]}", at=value.at, value=key)
            case key:
                self.mistakes.add_unknown(f"there is no step {key!r}", at=value.at, name=key, choices=STEP_KEYS)
        return None

    def full_step(self, key: str, value: YamlValue) -> Step | None:
        match key:
            case "rows":
                return self.rows(value)
            case "watermark":
                return self.watermark(value)
            case "idle":
                return IdleStep(self.names(value, "'idle'"))
            case "end":
                return EndStep(self.names(value, "'end'"))
            case "expect":
                return ExpectStep(self.expected(value, (*self.path, "expect")))
            case "crash":
                return self.crash(value)
            case "rescale":
                width = self.parallelism(value, "'rescale'")
                return RestartStep(width) if width is not None else None
            case "advance_time":
                duration_us = read_duration_us(value, "'advance_time'", self.mistakes)
                return AdvanceTimeStep(duration_us) if duration_us is not None else None
        self.mistakes.add(f"the step {key!r} has no value: write '- {key}'", at=value.at, value=shown(value))
        return None

    def rows(self, value: YamlValue) -> RowsStep:
        entries = self.entries(value, "'rows'", "sources and their rows")
        return RowsStep(
            tuple(
                (NodeName(entry.key, entry.key_at), self.row_list(entry.value, f"the rows of {entry.key!r}"))
                for entry in entries
            )
        )

    def row_list(self, value: YamlValue, what: str) -> tuple[YamlMap, ...]:
        if not isinstance(value, YamlList):
            self.mistakes.add(f"{what} must be a list, not {describe(value)}", at=value.at, value=shown(value))
            return ()
        for item in value.items:
            if not isinstance(item, YamlMap):
                self.mistakes.add(
                    f"a row must be a mapping of columns and values, not {describe(item)}",
                    at=item.at,
                    value=shown(item),
                )
        return tuple(item for item in value.items if isinstance(item, YamlMap))

    def watermark(self, value: YamlValue) -> WatermarkStep:
        found = []
        for entry in self.entries(value, "'watermark'", "sources and times"):
            time_us = read_time_us(entry.value, f"the watermark of {entry.key!r}", self.mistakes)
            if time_us is not None:
                found.append((NodeName(entry.key, entry.key_at), time_us))
        return WatermarkStep(tuple(found))

    def names(self, value: YamlValue, what: str) -> tuple[NodeName, ...]:
        items = value.items if isinstance(value, YamlList) else (value,)
        found = [(read_string(item, what, self.mistakes), item.at) for item in items]
        return tuple(NodeName(text, at) for text, at in found if text is not None)

    def crash(self, value: YamlValue) -> CrashStep | None:
        moment = read_string(value, "'crash'", self.mistakes)
        if moment is None:
            return None
        choices = tuple(CrashMoment)
        if moment not in choices:
            self.mistakes.add_unknown(f"nothing crashes {moment!r}", at=value.at, name=moment, choices=choices)
            return None
        return CrashStep(CrashMoment(moment))

    def expected(self, value: YamlValue, path: tuple[str | int, ...]) -> tuple[ExpectSpec, ...]:
        entries = self.entries(value, "'expect'", "nodes and what comes out of them")
        found = [self.expectation(entry, (*path, entry.key)) for entry in entries]
        return tuple(spec for spec in found if spec is not None)

    def expectation(self, entry: Entry, path: tuple[str | int, ...]) -> ExpectSpec | None:
        node = NodeName(entry.key, entry.key_at)
        what = f"what is expected of {entry.key!r}"
        if not isinstance(entry.value, YamlMap):
            return ExpectSpec(node=node, at=entry.value.at, rows=self.row_list(entry.value, what), path=path)
        fields = self.fields(entry.value, what, _EXPECT_KEYS)
        if len(fields) != 1:
            if len(fields) == len(entry.value.entries):
                self.mistakes.add(f"{what} is one of {', '.join(_EXPECT_KEYS)}", at=entry.value.at)
            return None
        ((key, inner),) = fields.items()
        if key == "count":
            count = read_int(inner.value, f"the count of {entry.key!r}", self.mistakes, least=0, greatest=_MAX_ROWS)
            return (
                ExpectSpec(node=node, at=inner.value.at, count=count, path=(*path, key)) if count is not None else None
            )
        return ExpectSpec(
            node=node,
            at=inner.value.at,
            rows=self.row_list(inner.value, what),
            is_ordered=key == "in_order",
            path=(*path, key),
        )


_FORMS: Mapping[str, str] = {
    "rows": "{source: [{column: value}]}",
    "watermark": "{source: 2026-03-01T09:15:00Z}",
    "idle": "[source]",
    "end": "[source]",
    "expect": "{node: [{column: value}]}",
    "rescale": "a number of subtasks",
    "advance_time": "a duration such as 10s",
}
