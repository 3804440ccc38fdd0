"""How epochs run: each as a Spark job, or in workers that live on; and why."""

from __future__ import annotations

import time
from enum import StrEnum
from typing import TYPE_CHECKING

from arroyo_core.errors import SetupError
from arroyo_core.pipeline.plan import Plan
from arroyo_core.spark.shuffles import Spark, context_of, is_connect
from arroyo_core.spark.slots import slots_of

if TYPE_CHECKING:
    from pyspark import SparkContext

    from arroyo_core.runtime.live.executor import LiveExecutor
    from arroyo_core.spark.executor import SparkExecutor

#: How long the executors of a cluster may take to register.
_EXECUTORS_SECONDS = 30.0
_LOOK_SECONDS = 0.1


class Execution(StrEnum):
    """What `execution` in a pipeline, and `--execution`, may be."""

    #: Live on one machine where Spark can, else as jobs.
    AUTO = "auto"
    LIVE = "live"
    JOBS = "jobs"


def make_executor(spark: Spark, plan: Plan, execution: Execution) -> tuple[SparkExecutor | LiveExecutor, str]:
    """What runs the epochs of a plan on a Spark; and why not live, where that was wanted and cannot be.

    Raises `SetupError` where it was asked for and cannot be.
    """
    from arroyo_core.runtime.live.executor import LiveExecutor
    from arroyo_core.spark.executor import SparkExecutor
    from arroyo_core.spark.live import SparkLauncher
    from arroyo_core.spark.session import is_one_machine

    if execution is Execution.JOBS:
        return SparkExecutor(spark), ""
    is_near = is_one_machine(spark)
    if execution is Execution.AUTO and not is_near:
        # Spark's own shuffle and recovery, and no slots that are kept.
        return SparkExecutor(spark), "each epoch is a Spark job, as Spark may run on several machines"
    obstacle = _obstacle(spark, plan)
    if obstacle is None:
        return LiveExecutor(SparkLauncher(context_of(spark), is_one_machine=is_near)), ""
    if execution is Execution.LIVE:
        raise SetupError(f"live workers are not possible here: {obstacle}; use 'execution: auto' or 'jobs'")
    return SparkExecutor(spark), f"each epoch is a Spark job: {obstacle}"


def _obstacle(spark: Spark, plan: Plan) -> str | None:
    if is_connect(spark):
        return "the tasks of Spark Connect have no way to this driver"
    context = context_of(spark)
    if context._conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        return "Spark allocates executors dynamically (spark.dynamicAllocation.enabled)"
    slots = _slots(context, plan.width)
    if slots < plan.width:
        return f"Spark runs {slots} tasks at once, and the pipeline has {plan.width} subtasks beside each other"
    return None


def _slots(context: SparkContext, wanted: int) -> int:
    """How many tasks run at once; on a cluster those of the executors, which are given some time to come."""
    slots = slots_of(context.master)
    until = time.monotonic() + _EXECUTORS_SECONDS
    while not slots:
        if context.defaultParallelism >= wanted or time.monotonic() > until:
            return int(context.defaultParallelism)
        time.sleep(_LOOK_SECONDS)
    return slots
