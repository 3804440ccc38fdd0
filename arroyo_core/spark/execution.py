"""How epochs run: each as a Spark job, or in workers that live on; and why."""

from __future__ import annotations

import time
from enum import StrEnum
from importlib.util import find_spec
from typing import TYPE_CHECKING

from arroyo_core.errors import SetupError
from arroyo_core.pipeline.plan import Plan
from arroyo_core.spark.shuffles import Spark, context_of, is_connect
from arroyo_core.spark.slots import slots_of

if TYPE_CHECKING:
    from pyspark import SparkContext

    from arroyo_core.runtime.live.executor import LiveExecutor
    from arroyo_core.spark.executor import SparkExecutor
    from arroyo_core.spark.inputs import InputGiver

#: How long the executors of a cluster may take to register.
_EXECUTORS_SECONDS = 30.0
_LOOK_SECONDS = 0.1


class Execution(StrEnum):
    """What `execution` in a pipeline, and `--execution`, may be."""

    #: Live on one machine where Spark can, else as jobs.
    AUTO = "auto"
    LIVE = "live"
    JOBS = "jobs"


def make_executor(
    spark: Spark, plan: Plan, execution: Execution, giver: InputGiver | None = None
) -> tuple[SparkExecutor | LiveExecutor, str]:
    """What runs the epochs of a plan on a Spark; and why not live, where that was wanted and cannot be.

    Raises `SetupError` where it was asked for and cannot be.
    """
    from arroyo_core.runtime.live.executor import LiveExecutor
    from arroyo_core.spark.executor import SparkExecutor
    from arroyo_core.spark.live import SparkLauncher
    from arroyo_core.spark.session import is_one_machine

    if giver is not None and execution is Execution.LIVE:
        raise SetupError(
            "live workers are not possible here: the rows of DataFrames come through Spark jobs; use 'execution: auto' "
            "or 'jobs'"
        )
    if execution is Execution.JOBS or giver is not None:
        return SparkExecutor(spark, giver), ""
    is_near = is_one_machine(spark)
    if execution is Execution.AUTO and not is_near:
        # Spark's own shuffle and recovery, and no slots that are kept.
        return SparkExecutor(spark), "each epoch is a Spark job, as Spark may run on several machines"
    obstacle = _obstacle(spark, plan, is_near=is_near)
    if obstacle is None:
        return LiveExecutor(SparkLauncher(context_of(spark), is_one_machine=is_near)), ""
    if execution is Execution.LIVE:
        raise SetupError(f"live workers are not possible here: {obstacle}; use 'execution: auto' or 'jobs'")
    return SparkExecutor(spark), f"each epoch is a Spark job: {obstacle}"


def check_slots(spark: Spark, executor: SparkExecutor | LiveExecutor, plan: Plan) -> None:
    """Raises `SetupError` where a job that runs cannot go on with this plan as it runs now."""
    from arroyo_core.runtime.live.executor import LiveExecutor
    from arroyo_core.spark.session import is_one_machine

    obstacle = _obstacle(spark, plan, is_near=is_one_machine(spark)) if isinstance(executor, LiveExecutor) else None
    if obstacle is not None:
        raise SetupError(f"live workers are not possible with it: {obstacle}")


def _obstacle(spark: Spark, plan: Plan, *, is_near: bool) -> str | None:
    if is_connect(spark):
        return "the tasks of Spark Connect have no way to this driver"
    from arroyo_core.spark.live import is_network_encrypted

    context = context_of(spark)
    if context._conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        return "Spark allocates executors dynamically (spark.dynamicAllocation.enabled)"
    if not is_near and is_network_encrypted(context) and find_spec("cryptography") is None:
        return (
            "Spark encrypts what it sends, and this driver could not make the key for live workers to do so, too: "
            "pip install 'arroyo-core[encryption]'"
        )
    slots = _slots(context, plan.live_slots)
    if slots >= plan.live_slots:
        return None
    reason = f"Spark runs {slots} tasks at once, and the pipeline has {plan.width} subtasks beside each other"
    # Workers keep their slots: a job that commits would wait for one for ever.
    return reason if slots < plan.width else f"{reason}, and a sink that commits by Spark jobs of its own"


def _slots(context: SparkContext, wanted: int) -> int:
    """How many tasks run at once; on a cluster those of the executors, which are given some time to come."""
    slots = slots_of(context.master)
    until = time.monotonic() + _EXECUTORS_SECONDS
    while not slots:
        if context.defaultParallelism >= wanted or time.monotonic() > until:
            return int(context.defaultParallelism)
        time.sleep(_LOOK_SECONDS)
    return slots
