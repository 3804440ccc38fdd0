"""Arroyo on Spark: the pipeline file that `arroyo run` takes, in a session like the one it starts."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import yaml
from cases import COLUMNS, COMPRESSION, EUROS_PER_DOLLAR, MIN_PRICE, PARALLELISM, Task, Timing

from arroyo_core import Pipeline
from arroyo_core.spark.session import create_session


def pipeline(task: Task) -> dict[str, object]:
    """The pipeline file, as data."""
    nodes: list[dict[str, object]] = [
        _node("bids", "filesystem.source", path=task.data, format="parquet", columns=list(COLUMNS)),
        _node("expensive", "std.filter", "bids", predicate=f"price >= {MIN_PRICE}"),
        _node("priced", "std.project", "expensive", expressions=_expressions()),
    ]
    if task.is_shuffled:
        nodes.append(_node("by_auction", "std.key_by", "priced", keys=["auction"]))
    last = str(nodes[-1]["id"])
    nodes.append(_node("files", "filesystem.sink", last, path=task.answer, format="parquet", compression=COMPRESSION))
    return {
        "name": f"bench_{task.case}",
        "parallelism": PARALLELISM,
        "checkpoint": {"url": f"{task.scratch}/state"},
        "nodes": nodes,
    }


def _expressions() -> dict[str, str]:
    names = {name: name for name in ("auction", "bidder", "euros", "channel", "date_time")}
    return names | {"euros": f"price * {EUROS_PER_DOLLAR}"}


def _node(node_id: str, operator: str, *inputs: str, **config: object) -> dict[str, object]:
    node: dict[str, object] = {"id": node_id, "operator": operator, "config": config}
    return node | {"inputs": list(inputs)} if inputs else node


def main() -> None:
    task = Task.read(Path(sys.argv[1]))
    file = Path(task.scratch) / f"{task.case}.yaml"
    file.write_text(yaml.safe_dump(pipeline(task), sort_keys=False))
    session = create_session("bench", master=f"local[{PARALLELISM}]")
    start = time.perf_counter()
    result = Pipeline.from_yaml(file).run(session)
    Timing(job_s=time.perf_counter() - start, epochs=result.epochs).write(Path(sys.argv[2]))
    session.stop()


if __name__ == "__main__":
    main()
