"""Runs a query here: a script is planned as any pipeline file is, and its job runs in this process."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
from arroyo_testing.cases.operators import case_plugins, read_captured
from arroyo_testing.cases.rewiring import rewire
from arroyo_testing.cases.running import MEMORY_URL
from arroyo_testing.crash_filesystem import running
from arroyo_testing.inline_pool import InlinePool
from arroyo_testing.lanes import InlineLanes
from arroyo_testing.machine import Disk, Life

from arroyo_core.api.updating import split_updates
from arroyo_core.errors import ArroyoError, InvalidPipelineError
from arroyo_core.pipeline.planner import PlannedPipeline, plan_file
from arroyo_core.pipeline.udfs import BundleLoader
from arroyo_core.plugin import PluginSet
from arroyo_core.runtime.job import Job
from arroyo_core.runtime.local import LocalExecutor

from .answers import Rows, rows_of
from .tables import declare_tables, write_tables

#: What the planner says of an operator that raises what it must not.
FAULT = "this is a fault of"
#: Of a traceback, the innermost ones.
_SHOWN_FRAMES = -5


@dataclass(frozen=True, slots=True)
class Refused:
    """The query is not planned: line and column count from the beginning of the query."""

    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"{self.line}:{self.column} {self.message}"


@dataclass(frozen=True, slots=True)
class Failed:
    """The job failed with an error of ours, as for a value that cannot be cast."""

    message: str


@dataclass(frozen=True, slots=True)
class Broken:
    """Something that must not be: an error that is not ours, or a refusal without a place."""

    text: str


Outcome = Rows | Refused | Failed | Broken


@dataclass(slots=True)
class Engine:
    """Plans and runs queries over the tables, whose files it writes into the folder."""

    folder: Path
    parallelism: int = 1
    #: Rows of an epoch; None runs all of them in one.
    epoch_rows: int | None = None
    plugins: PluginSet = field(default_factory=case_plugins)
    #: Opens the bundles of functions that a script names.
    bundles: BundleLoader | None = None
    _prelude: str = ""

    def __post_init__(self) -> None:
        write_tables(self.folder)
        self._prelude = declare_tables(self.folder) + "\n"

    def run(self, query: str) -> Outcome:
        """What comes of one query, or of a script whose last statement is one; never raises what a query causes."""
        planned = self.plan(query)
        if not isinstance(planned, PlannedPipeline):
            return planned
        try:
            return self._rows(planned)
        except ArroyoError as error:
            return Failed(str(error))
        except Exception:
            return Broken(traceback.format_exc(limit=_SHOWN_FRAMES))

    def plan(self, query: str) -> PlannedPipeline | Refused | Broken:
        """The plan of a script that may read the tables."""
        path = self.folder / "query.sql"
        path.write_text(self._prelude + query, encoding="utf-8")
        try:
            return plan_file(
                path, plugins=self.plugins, environment={}, parallelism=self.parallelism, bundles=self.bundles
            )
        except InvalidPipelineError as invalid:
            return self._refused(invalid, path)
        except Exception:
            return Broken(traceback.format_exc(limit=_SHOWN_FRAMES))

    def _refused(self, invalid: InvalidPipelineError, path: Path) -> Refused | Broken:
        first = invalid.errors[0]
        if FAULT in first.message:
            return Broken(str(invalid))
        at = first.at
        lines = self._prelude.count("\n")
        if at is None or at.file != str(path) or at.line <= lines:
            return Broken(f"a refusal without a place in the query: {invalid}")
        return Refused(at.line - lines, at.column, first.message)

    def _rows(self, planned: PlannedPipeline) -> Rows:
        state, captured = f"{MEMORY_URL}/state", f"{MEMORY_URL}/captured"
        with running(Disk(), Life()):
            plan = rewire(
                planned.plan,
                sinks=planned.sinks,
                scripts={},
                cuts=(),
                taps=(),
                state_url=state,
                capture_url=captured,
            )
            plan = replace(plan, checkpoint=replace(plan.checkpoint, rows=self.epoch_rows))
            executor = LocalExecutor(self.plugins, pool=InlinePool())
            job = Job(plan, executor, plugins=self.plugins, storage_url=state, lanes=InlineLanes(), max_restarts=0)
            assert job.run().is_finished, "the job stopped before its data ended"
            (sink,) = planned.sinks
            parts = list(read_captured(captured, sink).values())
        schema = plan.nodes[sink].input_schemas[0].schema
        return _final_rows([pa.RecordBatch.from_pylist([], schema=schema), *_batches(parts)])


def _batches(tables: list[pa.Table]) -> list[pa.RecordBatch]:
    return [batch for table in tables for batch in table.to_batches()]


def _final_rows(batches: list[pa.RecordBatch]) -> Rows:
    """What is left when everything was added and taken back."""
    sides = []
    for batch in batches:
        added, taken_back = split_updates(batch)
        sides += [(pa.Table.from_batches([added]), 1), (pa.Table.from_batches([taken_back]), -1)]
    return rows_of(sides)
