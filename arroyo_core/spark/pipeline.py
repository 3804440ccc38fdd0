"""`Pipeline`: a pipeline file, from Python."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from arroyo_core.errors import SetupError
from arroyo_core.pipeline import plan_pipeline
from arroyo_core.pipeline.plan import Plan
from arroyo_core.plugin import PluginSet, installed_plugins
from arroyo_core.runtime.job import MAX_RESTARTS, Job, JobListener, Listeners
from arroyo_core.runtime.results import JobResult
from arroyo_core.runtime.start import Start, StartOptions, check_start
from arroyo_core.runtime.status import StatusWriter
from arroyo_core.runtime.steps import EpochExecutor
from arroyo_core.runtime.stop import StopSignal
from arroyo_core.runtime.user_code import BundleOpener, open_pickled, store_pickled
from arroyo_core.state import ParquetBackend, get_storage_provider
from arroyo_core.udf import UserFunction, udf

if TYPE_CHECKING:
    from arroyo_core.spark.shuffles import Spark

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
        pickled = [open_pickled(function) for function in self.functions]
        plan = plan_pipeline(
            Path(path),
            plugins=plugins,
            environment=os.environ if environment is None else environment,
            parallelism=parallelism,
            bundles=BundleOpener(allows_unpinned=allow_unpinned, pickled=pickled),
            parameters=parameters,
        )
        return Pipeline(plan, plugins)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A validated pipeline. Making one starts no Spark; `run` does."""

    plan: Plan
    plugins: PluginSet

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
    ) -> JobResult:
        """Run to the end of the data, or until `stop` is requested.

        Goes on from the job's latest checkpoint, unless `start` says otherwise.

        A session or a context that is passed in, or that is active in this process, is used as it is and left
        running; else Spark is started for `master` and stopped afterwards. Without a `master` it is the one that
        spark-submit, `spark-defaults.conf` or the variable MASTER names, and else this machine.

        `execution` is `jobs`, `live` or `auto`, by default what the pipeline file says: docs/execution.md.

        An `executor` runs the epochs instead of Spark, in this process: `LocalExecutor(pipeline.plugins)`.
        """

        def run_on(executor: EpochExecutor) -> JobResult:
            with _scratch() as folder, ExitStack() as resources:
                url = self.plan.checkpoint.url
                status = StatusWriter(get_storage_provider(url), self.plan.job_id) if url is not None else None
                listeners = [each for each in (listener, status) if each is not None]
                job = Job(
                    store_pickled(self.plan),
                    executor,
                    plugins=self.plugins,
                    storage_url=url or folder.as_uri(),
                    listener=Listeners(*listeners),
                    stop=stop,
                    start=start,
                    max_restarts=max_restarts,
                )
                if status is not None:
                    resources.enter_context(status).watch(job.result)
                return job.run()

        if executor is not None:
            return run_on(executor)
        from arroyo_core.spark.execution import Execution, make_executor
        from arroyo_core.spark.session import active_spark, is_one_machine, start_spark, stop_spark

        is_own = spark is None and active_spark() is None
        started = spark or start_spark(
            self.plan.job_id, master=master, conf=conf, is_quiet=is_quiet, workers=self.plan.width
        )
        try:
            if self.plan.checkpoint.url is None and not is_one_machine(started):
                raise SetupError(
                    "this Spark may run on several machines: the pipeline needs a 'checkpoint: {url: ...}' "
                    "that all of them can reach"
                )
            on_spark, obstacle = make_executor(started, self.plan, Execution(execution or self.plan.execution))
            if obstacle:
                logger.warning("%s", obstacle)
            with closing(on_spark):
                return run_on(on_spark)
        finally:
            if is_own:
                stop_spark(started)


@contextmanager
def _scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="arroyo-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
