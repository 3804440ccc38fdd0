"""`arroyo preview`: runs a pipeline on a sample in this process, and shows rows of its nodes. Nothing is written.

State is in memory, and a sink is replaced by one that takes rows and does nothing with them. The run is one epoch,
which ends after some rows or some seconds.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pyarrow as pa

from arroyo_console.planning.blackhole import BLACKHOLE, with_blackhole
from arroyo_core.api.policy import current_policy
from arroyo_core.cli.arguments import count
from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.diagnostics import mistake_json
from arroyo_core.cli.exits import FAILURE, MISTAKE, OK
from arroyo_core.cli.options import JSON, add_file, add_format, add_planning, add_untrusted, planning
from arroyo_core.cli.tables import plain_value, print_rows
from arroyo_core.errors import ArroyoError, InvalidPipelineError, SetupError
from arroyo_core.pipeline import PlannedPipeline, plan_file
from arroyo_core.pipeline.mistakes import nearest
from arroyo_core.pipeline.plan import CheckpointSpec, Plan
from arroyo_core.plugin import PluginSet, installed_plugins
from arroyo_core.runtime.events import StopMode
from arroyo_core.runtime.job import SilentListener
from arroyo_core.runtime.latest import decode_latest
from arroyo_core.runtime.lives import JobLives
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.results import EpochResult, JobResult
from arroyo_core.runtime.start import StartOptions
from arroyo_core.runtime.stop import StopSignal

MAX_ROWS = 1_000
MAX_SECONDS = 60
#: Rows that the sources of a preview read, for each row that is shown: filters drop most of them.
READ_PER_SHOWN = 100


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "preview",
        group=CommandGroup.PIPELINES,
        help="run a pipeline on a sample, and show rows of its nodes; nothing is written",
        description="Run a pipeline on a sample in this process, without Spark: the last rows that each node gave. "
        "Sinks are replaced, and no checkpoint is written.",
    )
    add_file(parser)
    parser.add_argument("--node", metavar="ID", help="only rows of this node (default: of all)")
    parser.add_argument("--rows", type=count, default=20, metavar="N", help="of each node (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=count, default=10, metavar="N", help="sources are ended after that (default: %(default)s)"
    )
    add_format(parser)
    add_planning(parser)
    add_untrusted(parser)
    parser.set_defaults(command=preview)


def preview(args: argparse.Namespace) -> int:
    try:
        pipeline = plan_file(args.file, **planning(args))
    except InvalidPipelineError as invalid:
        if args.format != JSON:
            raise
        print(json.dumps({"problems": [mistake_json(error) for error in invalid.errors]}))
        return MISTAKE
    started_s = time.monotonic()
    try:
        latest, is_cut = run_sample(
            pipeline,
            nodes=_nodes(args, pipeline.plan),
            rows=min(args.rows, MAX_ROWS),
            seconds=min(args.seconds, MAX_SECONDS),
        )
    except ArroyoError as error:
        if args.format != JSON:
            raise
        print(json.dumps({"error": pipeline.redact(str(error))}))
        return FAILURE
    if args.format == JSON:
        nodes = [_document(name, table) for name, table in latest.items()]
        document = {"nodes": nodes, "is_cut": is_cut, "duration_s": time.monotonic() - started_s}
        print(json.dumps({**document, "error": _why_empty(latest)}))
        return OK
    if why := _why_empty(latest):
        print(f"{why}\n")
    for name, table in latest.items():
        print(f"{name}: {table.num_rows} rows")
        if table.num_rows:
            print_rows(table.column_names, [[plain_value(cell) for cell in row.values()] for row in table.to_pylist()])
        print()
    return OK


def _why_empty(latest: Mapping[str, pa.Table]) -> str:
    """Which files there are, a source is not told in untrusted mode: it finds none."""
    if not current_policy().is_untrusted or any(table.num_rows for table in latest.values()):
        return ""
    return (
        "no node gave a row: in untrusted mode sources read no files and reach no network; "
        "`arroyo serve --allow-code`, or a preview without --untrusted, lets them"
    )


def _nodes(args: argparse.Namespace, plan: Plan) -> Sequence[str]:
    known = [node.id for node in plan.written_nodes()]
    if args.node is None:
        return known
    if args.node not in known:
        near = nearest(args.node, known)
        hint = f"did you mean {near!r}?" if near else f"it has {', '.join(known)}"
        raise SetupError(f"the pipeline has no node {args.node!r}; {hint}")
    return [args.node]


def run_sample(
    pipeline: PlannedPipeline, *, nodes: Sequence[str], rows: int, seconds: float
) -> tuple[dict[str, pa.Table], bool]:
    """The last rows of each node, and whether the run was ended before its data. Raises what the run raises."""
    plugins = with_blackhole(installed_plugins())
    plan = sample_plan(pipeline, plugins, nodes=nodes, rows=rows, seconds=seconds)
    rows_of = _Rows()
    stop = StopSignal()
    with _ending(stop, seconds):
        _run(plan, plugins, rows_of, stop)
    empty = {name: plan.nodes[name].output_schema.schema.empty_table() for name in nodes}
    return {name: rows_of.table(name, rows) if name in rows_of.found else empty[name] for name in nodes}, (
        not rows_of.is_final
    )


def sample_plan(
    pipeline: PlannedPipeline, plugins: PluginSet, *, nodes: Sequence[str], rows: int, seconds: float
) -> Plan:
    """The plan of a run that writes nothing, and of which the first epoch is enough."""
    plan = pipeline.plan
    replaced = {
        name: replace(node, operator=BLACKHOLE, config=b"", origin=plugins.origin(BLACKHOLE), commits_with_jobs=False)
        if name in pipeline.sinks
        else node
        for name, node in plan.nodes.items()
    }
    return replace(
        plan,
        nodes=replaced,
        execution="jobs",
        latest=dict.fromkeys(nodes, rows),
        checkpoint=CheckpointSpec(interval_ms=int(seconds * 1000), rows=rows * READ_PER_SHOWN),
    )


def _run(plan: Plan, plugins: PluginSet, listener: _Rows, stop: StopSignal) -> None:
    executor = LocalExecutor(plugins)
    try:
        lives = JobLives(
            executor=executor,
            plugins=plugins,
            storage_url=f"memory://preview-{uuid4().hex}",
            has_status=False,
            listener=listener,
            stop=stop,
            max_restarts=0,
        )
        listener.stop = stop
        lives.run(plan, StartOptions())
    finally:
        executor.close()


class _Rows(SilentListener):
    """Keeps the last rows of each node, and stops the job after its first epochs."""

    def __init__(self) -> None:
        self.found: dict[str, list[pa.Table]] = {}
        self.is_final = False
        self.stop: StopSignal | None = None

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        for name, encoded in result.latest.items():
            table = decode_latest(encoded)
            if table is not None:
                self.found.setdefault(name, []).append(table)
        self.is_final = result.is_final
        if self.stop is not None and not result.is_final:
            self.stop.request(StopMode.IMMEDIATE)

    def table(self, name: str, rows: int) -> pa.Table:
        table = pa.concat_tables(self.found[name])
        return table.slice(max(0, table.num_rows - rows))


@contextmanager
def _ending(stop: StopSignal, seconds: float) -> Iterator[None]:
    timer = threading.Timer(seconds, stop.request)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _document(name: str, table: pa.Table) -> dict[str, Any]:
    columns = [{"name": each.name, "type": str(each.type), "is_nullable": each.nullable} for each in table.schema]
    rows = [{key: plain_value(value) for key, value in row.items()} for row in table.to_pylist()]
    return {"node": name, "columns": columns, "rows": rows}
