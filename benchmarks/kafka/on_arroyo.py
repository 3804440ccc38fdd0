"""Arroyo on Spark: `kafka.source`, the operators of the Nexmark example, and a topic or nothing."""

from __future__ import annotations

import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from arroyo_core import Pipeline
from arroyo_core.spark.session import start_spark

from ..nexmark.queries import QUERIES
from ..nexmark.tasks import MAX_LATENESS_MS
from .cases import AVRO_SCHEMA, COLUMNS, INTERVAL, LATENCY_INTERVAL, NEEDED, SENT_US, WRITING_INTERVAL
from .tasks import TopicTask, TopicTiming

Node = dict[str, Any]


def document_of(task: TopicTask) -> dict[str, Any]:
    """The pipeline file, as data."""
    is_endless = task.case == "latency"
    interval = LATENCY_INTERVAL if is_endless else WRITING_INTERVAL if task.answer else INTERVAL
    return {
        "name": f"bench_{task.case}",
        "parallelism": task.cores,
        "checkpoint": {"url": f"{task.scratch}/state", "interval": interval},
        "nodes": [_source(task, is_endless=is_endless), *_operators(task), _sink(task)],
    }


def _source(task: TopicTask, *, is_endless: bool) -> Node:
    config: Node = {"bootstrap_servers": task.servers, "topic": task.data}
    if task.format == "json":
        config |= {"format": "json", "schema": {name: COLUMNS.get(name, "int64") for name in NEEDED[task.case]}}
    else:
        config |= {"format": {"name": "avro", "schema": AVRO_SCHEMA}}
    if not is_endless:
        config["until"] = "latest"
    if task.case == "q5":
        config |= {"event_time_field": "date_time", "max_lateness": f"{MAX_LATENESS_MS}ms"}
    return {"id": "bids", "operator": "kafka.source", "config": config}


def _operators(task: TopicTask) -> list[Node]:
    """Those of the example between its source and its sink."""
    example = QUERIES["q1" if task.case == "latency" else task.case].pipeline
    nodes: list[Node] = yaml.safe_load(example.read_text())["nodes"][1:-1]
    if task.case == "q5":
        # The source makes watermarks itself, of each partition.
        watermark, counts, *others = nodes
        nodes = [{**counts, "inputs": watermark["inputs"]}, *others]
    if task.case == "latency":
        nodes[0]["config"]["expressions"][SENT_US] = SENT_US
    return nodes


def _sink(task: TopicTask) -> Node:
    node = {"id": "out", "inputs": [_operators(task)[-1]["id"]]}
    if not task.answer:
        return {**node, "operator": "std.blackhole"}
    config = {"bootstrap_servers": task.servers, "topic": task.answer, "format": "json"}
    return {**node, "operator": "kafka.sink", "config": config}


def main() -> None:
    task = TopicTask.read(Path(sys.argv[1]))
    file = Path(task.scratch) / f"{task.case}.yaml"
    file.write_text(yaml.safe_dump(document_of(task), sort_keys=False))
    # As `arroyo run` does: Spark is started for a pipeline that is planned.
    Pipeline.from_yaml(file)
    spark = start_spark("bench", master=f"local[{task.cores}]")
    start = time.perf_counter()
    result = Pipeline.from_yaml(file).run(spark)
    TopicTiming(
        job_s=time.perf_counter() - start,
        epochs=result.epochs,
        rows=result.operators["out"].rows_received,
        versions={name: version(name) for name in ("arroyo-core", "arroyo-kafka", "confluent-kafka", "pyspark")},
    ).write(Path(sys.argv[2]))
    spark.stop()


if __name__ == "__main__":
    main()
