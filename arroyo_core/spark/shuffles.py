"""The two ways of moving frames through Spark: as elements of an RDD, and as rows of a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from arroyo_core.pipeline.plan import Plan
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.runtime.acceptance import decode_report
from arroyo_core.runtime.frames import Frame
from arroyo_core.runtime.local import reports_of
from arroyo_core.runtime.request import EpochRequest
from arroyo_core.spark.frame_batches import FRAME_DDL
from arroyo_core.spark.inputs import TARGET, EpochInputs, InputGiver, gathered, given_inputs
from arroyo_core.spark.parcels import ParcelOffice, Told
from arroyo_core.spark.releases import batch_limits, loaded, partitioned, release_of
from arroyo_core.spark.worker import arrow_function, frame_function, no_frames, record_function

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext
    from pyspark.sql import DataFrame, SparkSession

#: What runs epochs: a context is enough, unless it is on the other side of Spark Connect.
Spark: TypeAlias = "SparkSession | SparkContext"

KRYO = "org.apache.spark.serializer.KryoSerializer"
#: Of a thread: the pool of its jobs.
POOL = "spark.scheduler.pool"

#: What a stage is called where it is made, for the thread that sets it.
_CALL_SITE = "callSite.short"


class Exchange(Protocol):
    """Runs an epoch as one Spark job."""

    def run(self, plan: Plan, request: EpochRequest) -> list[pb.ChainReport]: ...

    def tag(self, tag: str, description: str, *, pool: str) -> None:
        """Name the jobs of this thread for `cancel`, for Spark's own pages, and for its scheduler.

        Where Spark schedules fairly, pools get the same share of its cores, however long the jobs of one take.
        """
        ...

    def cancel(self, tag: str) -> None: ...

    def progress(self, tag: str) -> str:
        """How many tasks of the last job of that name have begun and ended, in words."""
        ...

    def close(self) -> None:
        """No epoch follows: leave nothing with Spark."""
        ...


def exchange_for(spark: Spark) -> Exchange:
    """The faster one wherever it can be had.

    Spark Connect has no RDDs. With Java's serialisation, each open shuffle file would keep its last hundred objects
    in memory, of some megabytes each.
    """
    # `getConf` would copy all settings out of the JVM, which takes 20 ms.
    if is_connect(spark) or context_of(spark)._conf.get("spark.serializer") != KRYO:
        return RowExchange(session_of(spark))
    return FrameExchange(context_of(spark))


def is_connect(spark: Spark) -> bool:
    """Whether it is a session of Spark Connect, on a server."""
    return ".connect." in type(spark).__module__


def context_of(spark: Spark) -> SparkContext:
    """The context of a session, which must not be one of Spark Connect."""
    return getattr(spark, "sparkContext", spark)


def session_of(spark: Spark) -> SparkSession:
    """A session of a context."""
    # The thin client has no contexts to tell it from.
    if is_connect(spark):
        return spark
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    return SparkSession(spark) if isinstance(spark, SparkContext) else spark


def run_empty_job(context: SparkContext, width: int, *, is_live: bool) -> None:
    """A job with the shape of an epoch's, or of live workers, and with nothing to do."""
    context.setJobDescription("arroyo: start Python workers")
    try:
        seed = context.parallelize([], width)
        if is_live:
            seed.barrier().mapPartitions(no_frames).collect()
        else:
            shuffled(seed.mapPartitions(no_frames), width).mapPartitions(no_frames).collect()
    finally:
        # It is this thread's, for all jobs to come.
        context.setLocalProperty("spark.job.description", None)


class FrameExchange:
    """A `mapPartitions` for each wave, a shuffle of pickled frames between two: Spark plans and compiles nothing."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._office = ParcelOffice(context)
        self._seeds: dict[int, RDD[Frame]] = {}

    def run(self, plan: Plan, request: EpochRequest) -> list[pb.ChainReport]:
        last = plan.wave_count - 1
        with self._office.telling(plan, request) as told:
            frames = self._seed(plan.wave_parallelism(0))
            for wave in range(last):
                width = plan.wave_parallelism(wave + 1)
                with called(self._context, f"wave_{wave}"):
                    frames = shuffled(frames.mapPartitions(record_function(told[wave], wave, width)), width)
            with called(self._context, f"wave_{last}"):
                return reports_of(collect(frames.mapPartitions(frame_function(told[last], last))))

    def close(self) -> None:
        self._office.close()

    def tag(self, tag: str, description: str, *, pool: str) -> None:
        self._context.addJobTag(tag)
        _describe(self._context, description, pool)

    def cancel(self, tag: str) -> None:
        self._context.cancelJobsWithTag(tag)

    def progress(self, tag: str) -> str:
        return stages_of(self._context, tag)

    def _seed(self, width: int) -> RDD[Frame]:
        """Empty partitions that start the sources."""
        if width not in self._seeds:
            self._seeds[width] = self._context.parallelize([], width)
        return self._seeds[width]


@contextmanager
def called(context: SparkContext, name: str) -> Iterator[None]:
    """Stages of what is made within have this name in Spark's pages, and not that of a line of ours."""
    context.setLocalProperty(_CALL_SITE, name)
    try:
        yield
    finally:
        context.setLocalProperty(_CALL_SITE, None)


def collect(frames: RDD[Frame]) -> list[Frame]:
    """As `RDD.collect`, which would name the last stage after the line that calls it."""
    served = frames.context._jvm.PythonRDD.collectAndServe(frames._jrdd.rdd())
    return loaded(served, frames._jrdd_deserializer)


def shuffled(records: RDD[bytes], width: int) -> RDD[Frame]:
    """The frames of `records_of`, in `width` partitions. As `RDD.partitionBy`, which would gather them by number."""
    from pyspark import RDD
    from pyspark.serializers import BatchedSerializer

    context = records.context
    jvm = context._jvm
    records._bypass_serializer = True
    pairs = jvm.PairwiseRDD(records._jrdd.rdd()).asJavaPairRDD()
    moved = pairs.partitionBy(jvm.PythonPartitioner(width, 0))
    return RDD(jvm.PythonRDD.valueOfPair(moved), context, BatchedSerializer(context._unbatched_serializer))


def _describe(context: SparkContext, description: str, pool: str) -> None:
    context.setJobDescription(description)
    context.setLocalProperty(POOL, pool)


def stages_of(context: SparkContext, tag: str) -> str:
    """What Spark knows of the stages, which are our waves, of the last job with a tag."""
    jobs = list(context._jsc.sc().statusTracker().getJobIdsForTag(tag))
    tracker = context.statusTracker()
    job = tracker.getJobInfo(max(jobs)) if jobs else None
    if job is None:
        return ""
    stages = [tracker.getStageInfo(number) for number in sorted(job.stageIds)]
    return ", ".join(
        f"wave {wave}: {stage.numCompletedTasks} of {stage.numTasks} tasks have ended"
        f" ({stage.numActiveTasks} run, {stage.numFailedTasks} failed)"
        for wave, stage in enumerate(stages)
        if stage is not None
    )


class RowExchange:
    """A `mapInArrow` for each wave, a shuffle of rows between two: the DataFrame API only, which Connect has too."""

    def __init__(self, spark: SparkSession, giver: InputGiver | None = None) -> None:
        """With a `giver`, the first wave reads DataFrames."""
        self._spark = spark
        self._giver = giver
        #: That of the server, for Spark Connect: a client may be newer.
        self._release = release_of(spark.version)
        self._context = None if is_connect(spark) else spark.sparkContext
        self._office = ParcelOffice(self._context)
        #: What Spark Connect has told about the running epoch.
        self._told = ""
        self._is_told = is_connect(spark) and hasattr(spark, "registerProgressHandler")
        if self._is_told:
            spark.registerProgressHandler(self._on_progress)

    def run(self, plan: Plan, request: EpochRequest) -> list[pb.ChainReport]:
        if self._giver is None:
            return self._run(plan, request, None)
        try:
            return self._run(plan, request, self._giver.give(plan, request))
        finally:
            self._giver.end()

    def _run(self, plan: Plan, request: EpochRequest, inputs: EpochInputs | None) -> list[pb.ChainReport]:
        session = (inputs.session if inputs is not None else None) or self._spark
        limits = batch_limits.within(session, self._release, has_rows=inputs is not None)
        with self._office.telling(plan, request) as told, limits:
            frames = self._first_wave(session, plan, told[0], inputs)
            for wave in range(1, plan.wave_count):
                # A frame that only passes through may be meant for a wider wave.
                moved = partitioned(frames, TARGET, width=plan.wave_parallelism(wave), release=self._release)
                frames = moved.mapInArrow(arrow_function(told[wave], wave), FRAME_DDL)
            return [decode_report(bytes(row["payload"])) for row in frames.collect()]

    def _first_wave(self, spark: SparkSession, plan: Plan, told: Told, inputs: EpochInputs | None) -> DataFrame:
        width = plan.wave_parallelism(0)
        if inputs is None:
            return spark.range(0, width, 1, width).mapInArrow(arrow_function(told, 0), FRAME_DDL)
        rows = partitioned(gathered(spark, plan, inputs), TARGET, width=width, release=self._release)
        return rows.mapInArrow(arrow_function(told, 0, given_inputs(plan, inputs)), FRAME_DDL)

    def close(self) -> None:
        self._office.close()
        if self._is_told:
            self._spark.removeProgressHandler(self._on_progress)

    def tag(self, tag: str, description: str, *, pool: str) -> None:
        # Tags of a session are Connect's; elsewhere Spark 3.5 has those of contexts only.
        if self._context is None:
            self._spark.addTag(tag)
        else:
            self._context.addJobTag(tag)
            _describe(self._context, description, pool)

    def cancel(self, tag: str) -> None:
        if self._giver is not None:
            self._giver.cancel()
        if self._context is None:
            self._spark.interruptTag(tag)
        else:
            self._context.cancelJobsWithTag(tag)

    def progress(self, tag: str) -> str:
        waiting = self._giver.waiting() if self._giver is not None else ""
        if waiting:
            return waiting
        return self._told if self._context is None else stages_of(self._context, tag)

    def _on_progress(
        self, stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool
    ) -> None:
        """Called by the client of Spark Connect, now and then."""
        known = list(stages or ())
        ended = sum(stage.num_completed_tasks for stage in known)
        self._told = f"{ended} of {sum(stage.num_tasks for stage in known)} tasks have ended, {inflight_tasks} run"
