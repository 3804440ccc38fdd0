"""A `Console` whose jobs are values: what pages make of them can be read off."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from arroyo_console.errors import ConflictError, ConsoleError, UnknownError
from arroyo_console.service import Console
from arroyo_console.values import (
    Bottleneck,
    Checkpoint,
    Column,
    Connector,
    Detail,
    EpochPoint,
    Finding,
    Function,
    Graph,
    GraphEdge,
    GraphNode,
    Job,
    JobError,
    JobMetrics,
    JobRun,
    JobSummary,
    Language,
    Letter,
    LetterSummary,
    LogLines,
    NodePreview,
    OperatorCheckpoint,
    OperatorMetrics,
    Page,
    Pipeline,
    PipelineVersion,
    Plugin,
    Preview,
    Problem,
    ReplayResult,
    ServerInfo,
    SettingDoc,
    State,
    StateChange,
    SubtaskMetrics,
    TableInfo,
    TableRows,
)

NOW_US = time.time_ns() // 1000
TEXT = "name: shop\nnodes:\n  - {id: orders, operator: kafka.source}\n"


def a_pipeline(name: str = "shop", *, number: int = 1, state: State = State.RUNNING, **of_job: Any) -> Pipeline:
    has_run = state is not State.CREATED
    job = JobSummary(
        id=f"job-{number}",
        pipeline_id=f"p{number}",
        name=name,
        state=state,
        checkpoint_url="s3://shop/state",
        epoch=41 if has_run else None,
        committed_us=NOW_US - 3_000_000 if has_run else None,
        rows_per_s=12_345.6 if has_run else None,
        backlog=1_200 if has_run else None,
        watermark_lag_s=4.2 if has_run else None,
        restarts=1,
        parallelism=2,
        started_us=NOW_US - 7_200_000_000,
        pid=4711,
    )
    return Pipeline(
        id=f"p{number}",
        name=name,
        language=Language.YAML,
        text=TEXT,
        version=2,
        parallelism=2,
        created_us=NOW_US - 86_400_000_000,
        updated_us=NOW_US - 86_400_000_000,
        job=replace(job, **of_job),
    )


def a_graph(count: int = 4, *, suffix: str = "") -> Graph:
    """A chain of nodes, with a second source into the middle."""
    names = [f"{name}{suffix}" for name in ("orders", "customers", "joined", "counts")]
    operators = ["kafka.source", "postgres.cdc_source", "std.join", "std.tumbling_window"]
    names += [f"step_{at}{suffix}" for at in range(count - 4)]
    operators += ["std.filter"] * (count - 4)
    nodes = [
        GraphNode(
            id=name,
            operator=operator,
            parallelism=2,
            chain=at,
            wave=at,
            is_source=at < 2,
            is_sink=at == count - 1,
            details=(Detail(label="topic", text=f"shop{suffix}"),),
        )
        for at, (name, operator) in enumerate(zip(names, operators, strict=True))
    ]
    edges = [GraphEdge(source=names[0], target=names[2], routing="shuffle", keys=("customer",))]
    edges += [GraphEdge(source=names[at], target=names[at + 1], routing="shuffle") for at in range(1, count - 1)]
    return Graph(name="shop", nodes=tuple(nodes), edges=tuple(edges))


class FakeConsole(Console):
    """Its pipelines are in `all`; what was asked of it is counted in `calls`, changes are in `changes`."""

    def __init__(self, *pipelines: Pipeline, evil: str = "") -> None:
        self.all = {each.id: each for each in pipelines}
        #: Is part of every text of a job.
        self.evil = evil
        self.calls: Counter[str] = Counter()
        self.changes: list[tuple[str, dict[str, Any]]] = []
        self.refuses: ConsoleError | None = None
        self.graph_of: Callable[[str], Graph] = lambda _: a_graph(suffix=evil)
        self.job_graph_size = 4
        self._lock = threading.Lock()

    def _count(self, name: str) -> None:
        with self._lock:
            self.calls[name] += 1
        if self.refuses is not None:
            raise self.refuses

    def info(self) -> ServerInfo:
        return ServerInfo(
            version="0.1.0", is_supervisor=True, supervisor="here", allows_code=False, master="local[*]",
            languages=("yaml", "sql"),
        )  # fmt: skip

    def pipelines(self, *, search: str = "", limit: int = 50, after: str | None = None) -> Page[Pipeline]:
        self._count("pipelines")
        found = [each for each in self.all.values() if search in each.name]
        first = int(after or 0)
        following = str(first + limit) if first + limit < len(found) else None
        return Page(items=tuple(found[first : first + limit]), total=len(found), next=following)

    def pipeline(self, pipeline_id: str) -> Pipeline:
        self._count("pipeline")
        if pipeline_id not in self.all:
            raise UnknownError(f"there is no pipeline {pipeline_id!r}")
        return self.all[pipeline_id]

    def create_pipeline(self, text: str, language: Language, **_: Any) -> Pipeline:
        self._count("create_pipeline")
        made = replace(a_pipeline("made", number=len(self.all) + 1, state=State.STARTING), text=text, language=language)
        self.all[made.id] = made
        return made

    def change_pipeline(self, pipeline_id: str, **changes: Any) -> Pipeline:
        self._count("change_pipeline")
        self.changes.append((pipeline_id, {name: value for name, value in changes.items() if value is not None}))
        return self.all[pipeline_id]

    def restart_pipeline(self, pipeline_id: str, **how: Any) -> Pipeline:
        self._count("restart_pipeline")
        self.changes.append((pipeline_id, how))
        return self.all[pipeline_id]

    def delete_pipeline(self, pipeline_id: str) -> None:
        self._count("delete_pipeline")
        if self.all[pipeline_id].job.state.is_active:
            raise ConflictError("it runs: stop it first")
        del self.all[pipeline_id]

    def pipeline_versions(self, pipeline_id: str) -> tuple[PipelineVersion, ...]:
        now = self.all[pipeline_id]
        return tuple(
            PipelineVersion(version=version, language=now.language, text=now.text + self.evil, created_us=NOW_US)
            for version in (2, 1)
        )

    def graph(self, text: str, language: Language) -> Graph:
        self._count("graph")
        return self.graph_of(text)

    def preview(self, text: str, language: Language, **_: Any) -> Preview:
        self._count("preview")
        columns = (Column(name=f"customer{self.evil}", type="string"), Column(name="total", type="int64"))
        rows = tuple({f"customer{self.evil}": f"Ann{self.evil}", "total": at} for at in range(3))
        return Preview(nodes=(NodePreview(node=f"counts{self.evil}", columns=columns, rows=rows),))

    def job(self, job_id: str) -> Job:
        self._count("job")
        return Job(
            summary=self._of_job(job_id).job,
            runs=(
                JobRun(id="r2", number=2, version=2, started_us=NOW_US - 60_000_000, pid=4711, is_restart=True),
                JobRun(
                    id="r1", number=1, version=1, started_us=NOW_US - 3_600_000_000, ended_us=NOW_US - 61_000_000,
                    pid=4242, exit_code=-9, reason=f"killed by a signal{self.evil}",
                ),
            ),
            changes=(StateChange(at_us=NOW_US - 60_000_000, state=State.RESTARTING, reason=f"killed{self.evil}"),),
        )  # fmt: skip

    def _of_job(self, job_id: str) -> Pipeline:
        return next(each for each in self.all.values() if each.job.id == job_id)

    def job_graph(self, job_id: str) -> Graph:
        self._count("job_graph")
        return a_graph(self.job_graph_size, suffix=self.evil)

    def job_metrics(self, job_id: str, *, history: int = 120) -> JobMetrics:
        self._count("job_metrics")
        if self._of_job(job_id).job.epoch is None:
            return JobMetrics(job_id=job_id)
        graph = a_graph(self.job_graph_size, suffix=self.evil)
        operators = tuple(
            OperatorMetrics(
                node=node.id,
                rows_in=0 if node.is_source else 20_000,
                rows_out=0 if node.is_sink else 20_000,
                rows_in_per_s=0 if node.is_source else 10_000.0,
                rows_out_per_s=0 if node.is_sink else 10_000.0,
                busy_share=0.92 if at == 2 else 0.1,
                state_bytes=5_000_000 * at,
                watermark_lag_s=4.2 if at else None,
                warnings=(f"late{self.evil}",) if at == 3 else (),
                counters={f"late_rows{self.evil}": 7} if at == 3 else {},
                subtasks=tuple(
                    SubtaskMetrics(
                        subtask=number, rows_in=1, rows_out=1, rows_in_per_s=5_000.0, rows_out_per_s=5_000.0,
                        bytes_in=1, bytes_out=1, busy_share=0.5,
                    )
                    for number in range(2)
                ),
            )
            for at, node in enumerate(graph.nodes)
        )  # fmt: skip
        points = tuple(
            EpochPoint(
                epoch=at + 1,
                at_us=NOW_US - (41 - at) * 2_000_000,
                duration_s=2.0 + 0.1 * (at % 5),
                rows=20_000,
                rows_per_s=10_000 + 400.0 * (at % 7),
                checkpoint_bytes=200_000 + 1000 * at,
                checkpoint_s=0.02 * (1 + at % 3),
                commit_s=0.01,
                state_bytes=10_000_000 + 100_000 * at,
                backlog=max(0, 4_000 - 100 * at),
                watermark_lag_s=4.0 + at % 3,
            )
            for at in range(41)
        )
        bottleneck = Bottleneck(
            node=graph.nodes[2].id, kind="operator", busy_share=0.92, since_us=NOW_US - 300_000_000,
            explanation=f"Give it more subtasks.{self.evil}",
        )  # fmt: skip
        return JobMetrics(
            job_id=job_id, epoch=41, operators=operators, history=points[-history:], bottleneck=bottleneck
        )

    def job_errors(self, job_id: str, **_: Any) -> tuple[JobError, ...]:
        trace = f"Traceback (most recent call last):\n  File 'x.py', line 1\nValueError: bad{self.evil}"
        found = JobError(
            at_us=NOW_US - 60_000_000, message=f"the price is negative{self.evil}", traceback=trace,
            node=f"joined{self.evil}", subtask=1, epoch=40, run=1, is_recovered=True,
        )  # fmt: skip
        return (found,)

    def job_log(self, job_id: str, *, offset: int | None = None, **_: Any) -> LogLines:
        self._count("job_log")
        lines = (f"epoch 40 20,000 rows in{self.evil}", f"epoch 41 20,000 rows in{self.evil}") if offset is None else ()
        return LogLines(lines=lines, offset=100, run=2)

    def job_output(self, job_id: str, **_: Any) -> LogLines:
        return LogLines(lines=(f'{{"customer": "Ann{self.evil}"}}',), offset=10, run=2)

    def checkpoints(self, job_id: str, **_: Any) -> tuple[Checkpoint, ...]:
        if self._of_job(job_id).job.epoch is None:
            return ()
        whole = [
            Checkpoint(
                epoch=epoch, finished_us=NOW_US - (41 - epoch) * 2_000_000, duration_s=2.0, checkpoint_s=0.05,
                is_committed=True, generation=1, bytes_written=200_000, bytes_reused=9_000_000, files=12,
            )
            for epoch in range(41, 31, -1)
        ]  # fmt: skip
        return (*whole, Checkpoint(epoch=31, error=f"the file is cut{self.evil}"))

    def checkpoint(self, job_id: str, epoch: int) -> Checkpoint:
        found = next(each for each in self.checkpoints(job_id) if each.epoch == epoch)
        wrote = OperatorCheckpoint(
            node=f"counts{self.evil}", parallelism=2, bytes_written=200_000, bytes_reused=9_000_000, files_written=2,
            files_reused=10, duration_s=0.05, tables=(f"a{self.evil}",),
        )  # fmt: skip
        return replace(found, operators=(wrote,))

    def tables(self, job_id: str, *, epoch: int | None = None) -> tuple[TableInfo, ...]:
        return (
            TableInfo(
                node="counts", table="a", kind=f"expiring_keyed_time_table{self.evil}", files=3, rows=240,
                bytes=88_000, version=1,
            ),
        )  # fmt: skip

    def table_rows(self, job_id: str, node: str, table: str, **asked: Any) -> TableRows:
        self.changes.append(("table_rows", {"node": node, "table": table, **asked}))
        columns = (Column(name=f"customer{self.evil}", type="string"), Column(name="total", type="int64"))
        rows = ({f"customer{self.evil}": f"Ann{self.evil}", "total": 7},)
        return TableRows(node=node, table=table, epoch=asked["epoch"], columns=columns, rows=rows, total=240)

    def table_difference(self, job_id: str, node: str, table: str, **asked: Any) -> TableRows:
        self.changes.append(("table_difference", {"node": node, "table": table, **asked}))
        rows = ({"_change": "-", "customer": "Ann", "total": 6}, {"_change": "+", "customer": "Ann", "total": 7})
        return TableRows(node=node, table=table, epoch=asked["epoch"], before_epoch=asked["before"], rows=rows, total=2)

    def letters(self, job_id: str) -> tuple[LetterSummary, ...]:
        return (
            LetterSummary(
                url="s3://shop/letters", pipeline="shop", node=f"joined{self.evil}", operator="std.join", letters=3,
                open=2, replayed=1, first="2026-11-19T10:00:00Z", last="2026-11-19T11:00:00Z",
                newest_error=f"negative{self.evil}",
            ),
        )  # fmt: skip

    def letters_of(self, job_id: str, **_: Any) -> tuple[Letter, ...]:
        row = {f"price{self.evil}": f"-1{self.evil}"}
        return (
            Letter(
                state="open", node=f"joined{self.evil}", time="2026-11-19T11:00:00Z", error=f"negative{self.evil}",
                epoch=40, subtask=1, position=f"offset 7{self.evil}", row=row,
            ),
        )  # fmt: skip

    def replay_letters(self, job_id: str, **asked: Any) -> ReplayResult:
        self.changes.append(("replay_letters", asked))
        return ReplayResult(is_dry_run=asked["is_dry_run"], lines=(f"would replay 2 letters{self.evil}",))

    def connectors(self, *, kind: str | None = None) -> tuple[Connector, ...]:
        return (self.connector("std.filter"), replace(self.connector("kafka.source"), kind="source"))

    def connector(self, name: str) -> Connector:
        settings = (SettingDoc(name="predicate", type="string", text=f"Which rows stay.{self.evil}", is_required=True),)
        return Connector(
            name=name, kind="operator", distribution="arroyo-std", version="0.1.0",
            summary=f"Keeps some rows.{self.evil}", text=f"More of it.{self.evil}", settings=settings,
            schema={"description": self.evil}, example=f"operator: {name}{self.evil}",
        )  # fmt: skip

    def functions(self) -> tuple[Function, ...]:
        return (
            Function(
                name="distance", signature=f"distance(a, b){self.evil}", distribution="arroyo-udf-geo", version="0.1.0",
                text=f"How far.{self.evil}",
            ),
        )  # fmt: skip

    def plugins(self) -> tuple[Plugin, ...]:
        return (Plugin(name="std", distribution="arroyo-std", version="0.1.0", error=self.evil),)

    def pipeline_schema(self) -> dict[str, object]:
        return {"properties": {"name": {"description": f"The name.{self.evil}"}}}

    def doctor(self) -> tuple[Finding, ...]:
        return (
            Finding(check="java", level="ok", message=f"Java 17{self.evil}"),
            Finding(check="memory", level="warning", message="little is left", fix=f"Stop something.{self.evil}"),
        )


def problems_at(line: int, message: str) -> Graph:
    return Graph(problems=(Problem(message=message, line=line, column=3, suggestion="kafka.source"),))
