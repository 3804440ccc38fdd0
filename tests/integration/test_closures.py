"""What an epoch leaves with the driver, where plans are large."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from arroyo_core import Pipeline
from arroyo_core.runtime.job import SilentListener
from arroyo_core.runtime.results import EpochResult, JobResult
from arroyo_core.spark.parcels import INLINE_BYTES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = 700
#: A listing names each file by its whole path.
NAME = "x" * 60
EPOCHS = 20


class Folder(SilentListener):
    """Counts the files of the driver's temporary folder after each epoch."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self.counts: list[int] = []

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        self.counts.append(sum(1 for path in self._folder.rglob("*") if path.is_file()))


def many_files(folder: Path) -> Path:
    """So many files, in folders so deep, that the listing in the plan has more than 1 MB."""
    deep = folder.joinpath(*([NAME] * 30))
    deep.mkdir(parents=True)
    for number in range(FILES):
        pq.write_table(pa.table({"n": [number], "key": [f"{number}"]}), deep / f"{number}-{NAME * 3}.parquet")
    return deep


@pytest.mark.parametrize("inline_bytes", [INLINE_BYTES, 100], ids=["as it is", "all of it broadcast"])
def test_a_large_plan_leaves_no_file_behind_in_every_epoch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inline_bytes: int
) -> None:
    monkeypatch.setattr("arroyo_core.spark.parcels.INLINE_BYTES", inline_bytes)
    document = {
        "name": "listed",
        "parallelism": 2,
        "checkpoint": {"url": str(tmp_path / "state"), "interval": "1h", "rows": FILES // EPOCHS},
        "nodes": [
            {"id": "rows", "operator": "filesystem.source", "config": {"path": str(many_files(tmp_path))}},
            {"id": "keyed", "operator": "std.key_by", "inputs": ["rows"], "config": {"keys": ["key"]}},
            {"id": "nowhere", "operator": "std.blackhole", "inputs": ["keyed"]},
        ],
    }
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(document))
    pipeline = Pipeline.from_yaml(file)
    assert len(pipeline.plan.nodes["rows"].config) > 1 << 20
    before = len(list(Path(spark.sparkContext._temp_dir).rglob("*")))
    watch = Folder(spark.sparkContext._temp_dir)
    result = pipeline.run(spark, listener=watch)
    assert result.source_rows == FILES
    assert len(watch.counts) >= EPOCHS
    assert max(watch.counts) - min(watch.counts) <= 2
    assert len(list(Path(spark.sparkContext._temp_dir).rglob("*"))) == before
