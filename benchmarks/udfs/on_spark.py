"""The same functions over the same Parquet files by a pipeline and by PySpark's own kinds of UDF, in one session."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import yaml
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import DoubleType, StringType

from arroyo_core import Pipeline
from arroyo_core.spark.session import create_session
from arroyo_core.udf import ScalarUdf, async_udf, udf

from . import functions
from .data import write_files

PARALLELISM = 2
ROUNDS = 5
ROWS = 4_000_000
ASYNC_ROWS = 20_000
CONCURRENCY = 100

Seconds = dict[str, list[float]]


def scalar(scale: float) -> Seconds:
    plain = sql.udf(functions.slug, StringType(), useArrow=False)
    optimized = sql.udf(functions.slug, StringType(), useArrow=True)
    return _beside(
        udf(functions.slug),
        ["title"],
        {
            "a plain PySpark UDF": lambda frame: frame.select(plain("title")),
            "a PySpark UDF with useArrow": lambda frame: frame.select(optimized("title")),
        },
        scale,
    )


def vectorised(scale: float) -> Seconds:
    arrow: Callable[..., Column] = sql.arrow_udf(_distance, DoubleType())
    plain = sql.udf(functions.distance_of_one, DoubleType(), useArrow=False)
    declared = udf(name="distance", arguments=[pa.float64(), pa.float64()], returns=pa.float64())(functions.distance)
    return _beside(
        declared,
        ["lat", "lon"],
        {
            "a PySpark Arrow UDF": lambda frame: frame.select(arrow("lat", "lon")),
            "a plain PySpark UDF of one row": lambda frame: frame.select(plain("lat", "lon")),
        },
        scale,
    )


def asynchronous(scale: float) -> Seconds:
    """One subtask, so that the calls under way are those of one event loop."""
    rows = max(2_000, int(ASYNC_ROWS * scale))
    declared = async_udf(concurrency=CONCURRENCY)(functions.look_up)
    config = {"function": "look_up", "arguments": ["number"], "as": "x"}
    spark = create_session("bench", master=f"local[{PARALLELISM}]")
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(Path(folder) / "rows", rows=rows, files=1)
        file = _pipeline(Path(folder), files, {"operator": "std.async_udf", "config": config}, parallelism=1)
        seconds = []
        for number in range(ROUNDS):
            start = time.perf_counter()
            assert Pipeline.udf(declared).from_yaml(file).run(spark).is_finished
            if number:
                seconds.append(time.perf_counter() - start)
    spark.stop()
    ideal = rows / CONCURRENCY * functions.LATENCY_S
    return {f"std.async_udf, {rows:,} calls of 20 ms, 100 at a time": seconds, "as long as the calls take": [ideal]}


def _distance(lat: pa.Array, lon: pa.Array) -> pa.Array:
    return functions.distance(lat, lon)


def _beside(
    function: ScalarUdf, arguments: list[str], others: dict[str, Callable[[DataFrame], DataFrame]], scale: float
) -> Seconds:
    """Each side once a round; the first round starts workers, and does not count."""
    spark = create_session("bench", master=f"local[{PARALLELISM}]")
    rows = max(20_000, int(ROWS * scale))
    ours = f"`@udf` in a pipeline, {rows:,} rows"
    seconds: Seconds = {ours: [], **{name: [] for name in others}}
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(Path(folder) / "rows", rows=rows)
        node = {
            "operator": "std.project",
            "config": {"expressions": {"x": f"{function.name}({', '.join(arguments)})"}},
        }
        file = _pipeline(Path(folder), files, node)
        for number in range(ROUNDS):
            found = {ours: _time(lambda: Pipeline.udf(function).from_yaml(file).run(spark))}
            for name, select in others.items():
                found[name] = _time(lambda select=select: _drain(spark, select, files))
            for name, value in found.items():
                if number:
                    seconds[name].append(value)
    spark.stop()
    return seconds


def _drain(spark: SparkSession, select: Callable[[DataFrame], DataFrame], files: Path) -> None:
    select(spark.read.parquet(str(files))).write.format("noop").mode("overwrite").save()


def _time(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _pipeline(folder: Path, files: Path, node: dict[str, object], *, parallelism: int = PARALLELISM) -> Path:
    source = {"id": "rows", "operator": "filesystem.source", "config": {"path": str(files), "format": "parquet"}}
    nodes = [source, {"id": "called", "inputs": ["rows"], **node}]
    nodes.append({"id": "nowhere", "operator": "std.blackhole", "inputs": ["called"]})
    file = folder / "pipeline.yaml"
    file.write_text(yaml.safe_dump({"name": "bench_udf", "parallelism": parallelism, "nodes": nodes}, sort_keys=False))
    return file
