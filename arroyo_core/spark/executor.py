"""Runs an epoch as one Spark job: a `mapInArrow` per wave, a shuffle of frames between two."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from arroyo_core.errors import ArroyoError, ExternalError
from arroyo_core.graph.plan import Plan
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.runtime.frames import FRAME_DDL
from arroyo_core.runtime.request import EpochRequest
from arroyo_core.spark.worker import wave_function

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkJobError(ExternalError):
    """The Spark job died for a reason that no operator reported: lost executors, a killed JVM."""


class SparkExecutor:
    """Uses the DataFrame API only, so that classic Spark and Spark Connect are alike."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def run_epoch(self, plan: Plan, request: EpochRequest) -> list[pb.ChainReport]:
        from pyspark.errors import PySparkException
        from pyspark.sql import functions as sql

        width = plan.wave_parallelism(0)
        frames = self._spark.range(0, width, 1, width).mapInArrow(wave_function(plan, 0, request), FRAME_DDL)
        for wave in range(1, plan.wave_count):
            width = plan.wave_parallelism(wave)
            # A frame that only passes through may be meant for a wider wave.
            partition = sql.col("target") % sql.lit(width)
            frames = frames.repartitionById(width, partition).mapInArrow(wave_function(plan, wave, request), FRAME_DDL)
        try:
            rows = frames.collect()
        except PySparkException as error:
            raise _without_java(error) from error
        return [pb.ChainReport.FromString(bytes(row["payload"])) for row in rows]


def _without_java(error: Exception) -> ArroyoError:
    """What a person needs of Spark's error: the Python traceback if there is one, else its first line."""
    text = str(error)
    traceback = re.search(
        r"Traceback \(most recent call last\):.*?(?=\n\s+at [\w.$]+\(|\n SQLSTATE|\Z)", text, re.DOTALL
    )
    if traceback:
        return SparkJobError(f"a Spark task failed:\n{traceback[0].rstrip()}")
    reason = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    return SparkJobError(f"the Spark job failed: {reason}")
