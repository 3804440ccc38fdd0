"""Arroyo on Spark: the pipelines of `examples/nexmark` over the dataset, on Spark as `arroyo run` starts it."""

from __future__ import annotations

import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml
from arroyo_nexmark.tables import TABLES

from arroyo_core import Pipeline
from arroyo_core.spark.session import start_spark

from ..modules import ROOT
from .queries import Q12_BY_EVENT_TIME, QUERIES
from .tasks import COMPRESSION, MAX_LATENESS_MS, Task, Timing

Node = dict[str, Any]


class _Loader(yaml.SafeLoader):
    """Takes `on`, which joins have, for a word, as pipeline files do."""


_Loader.yaml_implicit_resolvers = {
    letter: [item for item in items if letter not in "oO" or item[0] != "tag:yaml.org,2002:bool"]
    for letter, items in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_TYPES = {"int64": "int64", "string": "string"}


def document_of(task: Task, text: str | None = None) -> dict[str, Any]:
    """A pipeline as data: with files for the generator, and a checkpoint URL. Nothing else is changed.

    `text` is YAML, by default that of the example.
    """
    document: dict[str, Any] = yaml.load(text or QUERIES[task.case].pipeline.read_text(), _Loader)
    document["parallelism"] = task.cores
    document["checkpoint"] = {**document["checkpoint"], "url": f"{task.scratch}/state"}
    if task.case == Q12_BY_EVENT_TIME:
        document["nodes"] = _by_event_time(document["nodes"])
    document["nodes"] = [_adapted(node, task) for node in document["nodes"]]
    return document


def _by_event_time(nodes: list[Node]) -> list[Node]:
    """q12 with the windows of the other queries."""
    lateness = {"max_lateness": f"{MAX_LATENESS_MS}ms"}
    watermark: Node = {"id": "bids_in_time", "operator": "std.watermark", "inputs": ["bids"], "config": lateness}
    changed = []
    for node in nodes:
        if node["operator"] == "std.tumbling_window":
            config = {name: value for name, value in node["config"].items() if name != "time"}
            node = {**node, "inputs": ["bids_in_time"], "config": config}
        changed.append(node)
    return [changed[0], watermark, *changed[1:]]


def _adapted(node: Node, task: Task) -> Node:
    config = node.get("config", {})
    if node["operator"] == "nexmark.source":
        return {**node, "operator": "filesystem.source", "config": _source(config, task)}
    if node["operator"] == "filesystem.sink":
        return {**node, "config": _sink(config, task)}
    if node["operator"] == "std.lookup_join":
        return {**node, "config": {**config, "table": {"path": str(ROOT / config["table"]["path"])}}}
    return node


def is_csv(task: Task) -> bool:
    return task.format != "parquet"


def _source(generator: Node, task: Task) -> Node:
    """The files of the table that the generator makes, and of its columns those that are asked for."""
    schema = TABLES[generator["table"]].schema
    columns = generator.get("fields", schema.names)
    format = "csv" if is_csv(task) else "parquet"
    config: Node = {"path": f"{task.data}/{generator['table']}", "format": format, "columns": list(columns)}
    if "date_time" in columns:
        config["event_time_field"] = "date_time"
    if is_csv(task):
        config["schema"] = {field.name: _TYPES.get(str(field.type), "timestamp") for field in schema}
    return config


def _sink(config: Node, task: Task) -> Node:
    """Changes stay changes: as Parquet they keep the column that tells which rows are taken back."""
    if is_csv(task):
        changes = config["format"] == "debezium_json"
        return {"path": task.answer, "format": "debezium_json" if changes else "csv"}
    kept = {"updating": "keep_meta"} if config["format"] == "debezium_json" else {}
    return {**config, "path": task.answer, "format": "parquet", "compression": COMPRESSION, **kept}


def answer_format(document: dict[str, Any]) -> str:
    (written,) = {node["config"]["format"] for node in document["nodes"] if node["operator"] == "filesystem.sink"}
    return {"parquet": "parquet", "csv": "csv_named", "debezium_json": "debezium"}[written]


def main(execution: str = "jobs") -> None:
    task = Task.read(Path(sys.argv[1]))
    document = document_of(task)
    file = Path(task.scratch) / f"{task.case}.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    # As `arroyo run` does: Spark is started for a pipeline that is planned. Planning imports the plugins, as other
    # engines are imported before they are timed.
    Pipeline.from_yaml(file)
    spark = start_spark("bench", master=f"local[{task.cores}]", is_live=execution == "live")
    start = time.perf_counter()
    result = Pipeline.from_yaml(file).run(spark, execution=execution)
    Timing(
        job_s=time.perf_counter() - start,
        epochs=result.epochs,
        answer=answer_format(document),
        versions={name: version(name) for name in ("arroyo-core", "pyspark", "pyarrow")},
    ).write(Path(sys.argv[2]))
    spark.stop()


if __name__ == "__main__":
    main()
