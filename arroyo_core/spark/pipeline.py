"""`Pipeline`: a pipeline file, from Python."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from arroyo_core.errors import SetupError
from arroyo_core.pipeline.builder.stream import Stream, declare_job
from arroyo_core.pipeline.inline import InlineText
from arroyo_core.pipeline.mistakes import Mistakes, nearest
from arroyo_core.pipeline.plan import Plan
from arroyo_core.pipeline.planner import PlannedPipeline, plan_job, plan_text_shown, read_text
from arroyo_core.pipeline.rendering import render_document
from arroyo_core.pipeline.views.html import draw_svg, picture, render_html
from arroyo_core.plugin import PluginSet, installed_plugins
from arroyo_core.runtime.display import node_notes
from arroyo_core.runtime.given import check_given
from arroyo_core.runtime.handle import JobHandle, JobProgress
from arroyo_core.runtime.job import MAX_RESTARTS, JobListener, Listeners, SilentListener
from arroyo_core.runtime.latest import sinks_of
from arroyo_core.runtime.lives import JobLives
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.rescale import RescaleSignal
from arroyo_core.runtime.results import JobResult
from arroyo_core.runtime.start import Start, StartOptions, check_start
from arroyo_core.runtime.steps import EpochExecutor
from arroyo_core.runtime.stop import StopSignal
from arroyo_core.runtime.user_code import BundleOpener, open_pickled
from arroyo_core.state import ParquetBackend, get_storage_provider
from arroyo_core.udf import UserFunction, udf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from arroyo_core.spark.batches import BatchFeed
    from arroyo_core.spark.inputs import InputGiver
    from arroyo_core.spark.shuffles import Spark

#: How many of the last rows of a node a started job keeps, unless it is told otherwise.
PREVIEW_ROWS = 100
MAX_PREVIEW_ROWS = 10_000

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PipelineFunctions:
    """Functions of this program, for a pipeline that is about to be read."""

    functions: tuple[UserFunction, ...] = ()

    def udf(self, function: UserFunction | Callable[..., Any]) -> PipelineFunctions:
        """One function more; a plain one is taken as with `@udf`."""
        declared = function if isinstance(function, UserFunction) else udf(function)
        return PipelineFunctions((*self.functions, declared))

    def from_yaml(
        self,
        path: str | os.PathLike[str],
        *,
        parallelism: int | None = None,
        environment: Mapping[str, str] | None = None,
        allow_unpinned: bool = False,
        parameters: Mapping[str, str | int | float | bool] = MappingProxyType({}),
    ) -> Pipeline:
        """As `Pipeline.from_yaml`; the file calls the functions by their names."""
        plugins = installed_plugins()
        # As they are now: a pipeline that is rescaled must not take up what has changed since.
        text = read_text(path if isinstance(path, InlineText) else Path(path), Mistakes())
        known = dict(os.environ if environment is None else environment)
        bundles = self._bundles(allow_unpinned=allow_unpinned)

        def plan_with(parallelism: int | None) -> PlannedPipeline:
            return plan_text_shown(
                text,
                file=str(path),
                plugins=plugins,
                environment=known,
                parallelism=parallelism,
                bundles=bundles,
                parameters=parameters,
            )

        return Pipeline.of(plan_with, plugins, parallelism)

    def build(
        self,
        *ends: Stream,
        name: str,
        parallelism: int | None = None,
        checkpoint: Mapping[str, object] | str | os.PathLike[str] | None = None,
        udfs: Sequence[Mapping[str, object]] | None = None,
        execution: str | None = None,
        environment: Mapping[str, str] | None = None,
        allow_unpinned: bool = False,
    ) -> Pipeline:
        """As `Pipeline.build`; expressions call the functions by their names."""
        settings = {
            "name": name,
            "parallelism": parallelism,
            "checkpoint": {"url": checkpoint} if isinstance(checkpoint, str | os.PathLike) else checkpoint,
            "udfs": udfs,
            "execution": execution,
        }
        job = declare_job(ends, settings)
        plugins = installed_plugins()
        known = dict(os.environ if environment is None else environment)
        bundles = self._bundles(allow_unpinned=allow_unpinned)

        def plan_with(parallelism: int | None) -> PlannedPipeline:
            return plan_job(job, plugins=plugins, environment=known, parallelism=parallelism, bundles=bundles)

        return Pipeline.of(plan_with, plugins)

    def _bundles(self, *, allow_unpinned: bool) -> BundleOpener:
        pickled = [open_pickled(function) for function in self.functions]
        return BundleOpener(allows_unpinned=allow_unpinned, pickled=pickled)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A validated pipeline. Making one starts no Spark; `run` does."""

    plan: Plan
    plugins: PluginSet
    #: Plans it again for another parallelism; None where that cannot be.
    replan: Callable[[int], Plan] | None = None
    #: What may be shown of it; None for a plan that was made elsewhere.
    planned: PlannedPipeline | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls, plan_with: Callable[[int | None], PlannedPipeline], plugins: PluginSet, parallelism: int | None = None
    ) -> Pipeline:
        """A pipeline that `plan_with` plans, for any parallelism; None for its own."""
        planned = plan_with(parallelism)
        return cls(planned.plan, plugins, lambda wished: plan_with(wished).plan, planned)

    @classmethod
    def from_yaml(
        cls,
        path: str | os.PathLike[str],
        *,
        parallelism: int | None = None,
        environment: Mapping[str, str] | None = None,
        allow_unpinned: bool = False,
        parameters: Mapping[str, str | int | float | bool] = MappingProxyType({}),
    ) -> Pipeline:
        """Read and check a pipeline file; raises `InvalidPipelineError` with every mistake in it.

        Imports the bundles that the file names. With `allow_unpinned` remote ones need no sha256.
        `parameters` are values for the parameters that the file declares.
        """
        return PipelineFunctions().from_yaml(
            path,
            parallelism=parallelism,
            environment=environment,
            allow_unpinned=allow_unpinned,
            parameters=parameters,
        )

    @classmethod
    def udf(cls, function: UserFunction | Callable[..., Any]) -> PipelineFunctions:
        """Use a function of this program: `Pipeline.udf(clean).udf(parse).from_yaml("pipeline.yaml")`.

        It is pickled, kept below the checkpoint url by its digest, and runs on executors of the same Python version.
        """
        return PipelineFunctions().udf(function)

    @classmethod
    def build(
        cls,
        *ends: Stream,
        name: str,
        parallelism: int | None = None,
        checkpoint: Mapping[str, object] | str | os.PathLike[str] | None = None,
        udfs: Sequence[Mapping[str, object]] | None = None,
        execution: str | None = None,
        environment: Mapping[str, str] | None = None,
        allow_unpinned: bool = False,
    ) -> Pipeline:
        """Plan streams and all that they read: `Pipeline.build(hot, name="hot_items", checkpoint="./state")`.

        `ends` are the streams behind sinks. The settings are the keys of a pipeline file; a `checkpoint` may be just
        its url. Raises `InvalidPipelineError` with every mistake, each with the line of the program that made it.
        """
        return PipelineFunctions().build(
            *ends,
            name=name,
            parallelism=parallelism,
            checkpoint=checkpoint,
            udfs=udfs,
            execution=execution,
            environment=environment,
            allow_unpinned=allow_unpinned,
        )

    def to_yaml(self) -> str:
        """A pipeline file that plans the same. Functions of this program are called in it, and are not part of it.

        It holds no values of the environment: `${NAME}` stays as it was written.
        """
        if self.planned is None:
            raise SetupError("the pipeline has no file: it was made of a plan")
        return render_document(self.planned.written.root)

    def check_start(self, start: StartOptions | None = None) -> Start | None:
        """Compare the pipeline with its checkpoints; needs no Spark and changes nothing.

        Returns how `run` would start, or None for a pipeline without a checkpoint url. Raises what `run` would
        raise when it starts: for options that cannot be met, and for state that would be lost.
        """
        if self.plan.checkpoint.url is None:
            return None
        backend = ParquetBackend(get_storage_provider(self.plan.checkpoint.url), self.plan.job_id)
        return check_start(backend, self.plan, self.plugins, start or StartOptions())

    def run(
        self,
        spark: Spark | None = None,
        *,
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
        listener: JobListener | None = None,
        stop: StopSignal | None = None,
        start: StartOptions | None = None,
        max_restarts: int = MAX_RESTARTS,
        is_quiet: bool = True,
        executor: EpochExecutor | None = None,
        execution: str | None = None,
        rescale: RescaleSignal | None = None,
        inputs: Mapping[str, DataFrame | str] | None = None,
    ) -> JobResult:
        """Run to the end of the data, or until `stop` is requested.

        Goes on from the job's latest checkpoint, unless `start` says otherwise.

        A session or a context that is passed in, or that is active in this process, is used as it is and left
        running; else Spark is started for `master` and stopped afterwards. Without a `master` it is the one that
        spark-submit, `spark-defaults.conf` or the variable MASTER names, and else this machine.

        `execution` is `jobs`, `live` or `auto`, by default what the pipeline file says: docs/execution.md.

        `rescale` is asked for another parallelism while the pipeline runs: it goes on from a checkpoint with it, on
        the same Spark. Nodes that have a `parallelism` of their own keep it.

        An `executor` runs the epochs instead of Spark, in this process: `LocalExecutor(pipeline.plugins)`.

        `inputs` are DataFrames, or names of tables, for the nodes `spark.input` of the pipeline: docs/dataframes.md.
        """
        if executor is None or (isinstance(executor, LocalExecutor) and not executor.gives_rows):
            check_given(self.plan, self.plugins, inputs or {})

        def run_on(
            executor: EpochExecutor,
            check: Callable[[Plan], None] = lambda _: None,
            prepare: Callable[[Plan], None] = lambda _: None,
            spark_ui: str = "",
        ) -> JobResult:
            with _scratch() as folder:
                lives = JobLives(
                    executor=executor,
                    plugins=self.plugins,
                    storage_url=self.plan.checkpoint.url or folder.as_uri(),
                    has_status=self.plan.checkpoint.url is not None,
                    listener=listener or SilentListener(),
                    stop=stop or StopSignal(),
                    rescale=rescale or RescaleSignal(),
                    max_restarts=max_restarts,
                    spark_ui=spark_ui,
                    replan=self.replan,
                    check=check,
                    prepare=prepare,
                )
                return lives.run(self.plan, start or StartOptions())

        if executor is not None:
            return run_on(executor)
        from arroyo_core.runtime.live.executor import LiveExecutor
        from arroyo_core.spark.execution import Execution, check_slots, make_executor
        from arroyo_core.spark.releases import check_pyspark
        from arroyo_core.spark.session import active_spark, is_one_machine, start_spark, stop_spark, ui_address

        check_pyspark()
        is_own = spark is None and active_spark() is None
        chosen = Execution(execution or self.plan.execution)
        started = spark or start_spark(
            self.plan.job_id,
            master=master,
            conf=conf,
            is_quiet=is_quiet,
            workers=self.plan.width,
            is_live=chosen is not Execution.JOBS,
        )
        try:
            if self.plan.checkpoint.url is None and not is_one_machine(started):
                raise SetupError(
                    "this Spark may run on several machines: the pipeline needs a 'checkpoint: {url: ...}' "
                    "that all of them can reach"
                )
            giver = self._giver(started, inputs) if inputs else None
            on_spark, obstacle = make_executor(started, self.plan, chosen, giver)
            if obstacle:
                logger.warning("%s", obstacle)
            with closing(on_spark):
                prepare = on_spark.prepare if isinstance(on_spark, LiveExecutor) else lambda _: None
                return run_on(on_spark, lambda plan: check_slots(started, on_spark, plan), prepare, ui_address(started))
        finally:
            if is_own:
                stop_spark(started)

    def start(
        self,
        spark: Spark | None = None,
        *,
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
        listener: JobListener | None = None,
        start: StartOptions | None = None,
        max_restarts: int = MAX_RESTARTS,
        executor: EpochExecutor | None = None,
        execution: str | None = None,
        rescale: RescaleSignal | None = None,
        preview: Iterable[str] | None = None,
        preview_rows: int = PREVIEW_ROWS,
    ) -> JobHandle:
        """Run in a thread of this process, and return at once; all else is as with `run`.

        `JobHandle.latest` shows rows of the nodes in `preview`, by default of all sinks: the last `preview_rows` that
        each subtask gave in an epoch come back with its report. An empty `preview` keeps none.
        """
        # Here: which session is active, each thread is told for itself.
        from arroyo_core.spark.session import active_spark

        spark = spark if spark is not None or executor is not None else active_spark()
        shown = self._with_preview(sinks_of(self.plan) if preview is None else list(preview), preview_rows)

        def run(watcher: JobListener, stop: StopSignal) -> JobResult:
            return shown.run(
                spark,
                master=master,
                conf=conf,
                listener=watcher if listener is None else Listeners(watcher, listener),
                stop=stop,
                start=start,
                max_restarts=max_restarts,
                executor=executor,
                execution=execution,
                rescale=rescale,
            )

        return JobHandle(shown.plan, run, draw=self._draw_progress)

    def _repr_html_(self) -> str | None:
        return None if self.planned is None else render_html(self.planned, self.plugins)

    def _repr_svg_(self) -> str | None:
        return None if self.planned is None else draw_svg(self.planned, self.plugins)

    def _draw_progress(self, progress: JobProgress) -> str:
        """The graph with what its nodes have done."""
        if self.planned is None:
            return ""
        notes = node_notes(progress, self.plan)
        heading = f"{progress.state}, epoch {progress.epoch}, {progress.source_rows:,} rows"
        svg = draw_svg(self.planned, self.plugins, heading=heading, notes=notes)
        return picture(svg) if svg else ""

    def _with_preview(self, nodes: Sequence[str], rows: int) -> Pipeline:
        known = [node.id for node in self.plan.written_nodes()]
        for name in nodes:
            if name not in known:
                near = nearest(name, known)
                hint = f"did you mean {near!r}?" if near else f"it has {', '.join(known)}"
                raise SetupError(f"preview: the pipeline has no node {name!r}; {hint}")
        if not 1 <= rows <= MAX_PREVIEW_ROWS:
            raise SetupError(f"preview_rows must be between 1 and {MAX_PREVIEW_ROWS}, not {rows}")
        latest = dict.fromkeys(nodes, rows)
        replan = self.replan
        return replace(
            self,
            plan=replace(self.plan, latest=latest),
            replan=None if replan is None else lambda wished: replace(replan(wished), latest=latest),
        )

    def on_batch(
        self,
        *,
        input: str,
        query: str | None = None,
        start: StartOptions | None = None,
        max_restarts: int = MAX_RESTARTS,
    ) -> BatchFeed:
        """For `stream.writeStream.foreachBatch(...)`: each batch is an epoch of this pipeline, exactly once.

        `input` is the node `spark.input` that the rows are for. `query` names the stream, where it is not to be told
        by the id of its query. Close what it returns when the query has ended, or let the process end. See
        docs/dataframes.md.
        """
        from arroyo_core.spark.batches import batch_feed

        return batch_feed(self.plan, self.plugins, node_id=input, query=query, start=start, max_restarts=max_restarts)

    def _giver(self, spark: Spark, inputs: Mapping[str, DataFrame | str]) -> InputGiver:
        from arroyo_core.spark.inputs import WholeInputs, as_frame, check_frames
        from arroyo_core.spark.shuffles import session_of

        session = session_of(spark)
        frames = {name: as_frame(session, value) for name, value in inputs.items()}
        check_frames(self.plan, frames)
        return WholeInputs(frames, self.plugins)


@contextmanager
def _scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="arroyo-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
