"""A program of a user of Spark Connect: a DataFrame in and to a table, a chain applied, state out.

python connect_frames.py FOLDER URL
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from arroyo_core import Pipeline, SetupError
from arroyo_core.spark import StateSource, apply

COPIED = """
name: copied
parallelism: 2
checkpoint: {{url: {folder}/copied, interval: 10s}}
nodes:
  - id: bids
    operator: spark.input
    config: {{schema: {{auction: int64, price: int64, channel: string, date_time: timestamp}}}}
  - id: out
    operator: spark.sink
    inputs: [bids]
    config:
      table: copied_bids
      format: parquet
      mode: overwrite
      staging: {folder}/staging
      # Not in the working directory of the server.
      options: {{path: {folder}/table}}
"""


def copy(spark: Any, folder: Path, bids: Any) -> bool:
    """Whether `spark.sink` makes a table of the server's catalog, with all rows, each once."""
    path = folder / "copied.yaml"
    path.write_text(COPIED.format(folder=folder))
    Pipeline.from_yaml(path).run(spark, inputs={"bids": bids})
    # The job has ended: its DataFrame is not written again.
    Pipeline.from_yaml(path).run(spark, inputs={"bids": bids})
    copied, given = spark.table("copied_bids"), bids.select("auction", "price", "channel", "date_time")
    rows = copied.count()
    return rows == 200_000 and copied.exceptAll(given).count() == 0 and given.exceptAll(copied).count() == 0


def main(folder: Path, url: str) -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote(url).getOrCreate()
    bids = spark.read.parquet(str(folder / "bids"))
    result = Pipeline.from_yaml(folder / "windows" / "pipeline.yaml").run(spark, inputs={"bids": bids})
    print("windows", result.epochs, result.source_rows)
    print("copied", copy(spark, folder, bids))
    dear = apply(bids, [{"operator": "std.filter", "config": {"predicate": "price > 100"}}])
    print("applied", dear.count() == bids.filter("price > 100").count())
    try:
        Pipeline.from_yaml(folder / "windows" / "pipeline.yaml").on_batch(input="bids")(bids, 0)
    except SetupError as error:
        print("stream", "does not run on Spark Connect" in str(error))
    spark.dataSource.register(StateSource)
    state = spark.read.format("arroyo_state").option("table", "bids.given")
    print("state", state.load(str(folder / "windows" / "state")).count())
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
