"""Sources and operators that never come back: what fails beside them is told, what makes no progress is cancelled."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from arroyo_core import OperatorError, Pipeline
from arroyo_core.spark.exchanges import FrameExchange, RowExchange

from .waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BLOCKED = """
name: blocked
parallelism: 2
checkpoint: {{interval: 1h}}
nodes:
  - {{id: rows, operator: chaos.stuck, config: {{file: {folder}/processes}}}}
  - {{id: strike, operator: chaos.strike, inputs: [rows], config: {{deed: fail, marker: {folder}/struck, times: 9}}}}
  - {{id: keyed, operator: std.key_by, inputs: [strike], config: {{keys: [n]}}}}
  - {{id: nowhere, operator: std.blackhole, inputs: [keyed]}}
"""


def processes(folder: Path) -> set[int]:
    return {int(line) for line in (folder / "processes").read_text().splitlines()}


@pytest.mark.parametrize("exchange", [FrameExchange, RowExchange])
def test_a_failing_operator_is_reported_while_its_source_never_comes_back(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: type
) -> None:
    argument = spark if exchange is RowExchange else spark.sparkContext
    monkeypatch.setattr("arroyo_core.spark.executor.exchange_for", lambda _: exchange(argument))
    file = tmp_path / "pipeline.yaml"
    file.write_text(BLOCKED.format(folder=tmp_path))
    with pytest.raises(OperatorError, match=r"operator 'strike'.*this row is cursed"):
        Pipeline.from_yaml(file).run(spark)
    # No other task gets a process in which the source still runs.
    stuck = processes(tmp_path)
    assert stuck
    wait_until(lambda: not any(Path(f"/proc/{process}").exists() for process in stuck))
