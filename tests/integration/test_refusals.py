"""What Spark would refuse again is not tried again."""

from __future__ import annotations

from pathlib import Path

from .conftest import Arroyo

PIPELINE = """
name: refused
parallelism: 2
nodes:
  - {id: ticks, operator: impulse.source, config: {count: 10}}
  - {id: nowhere, operator: std.blackhole, inputs: [ticks]}
"""


def test_a_setting_that_is_too_small_ends_the_job_at_once_with_advice(arroyo: Arroyo, tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(PIPELINE)
    done = arroyo("run", file, "--master", "local[2]", "--conf", "spark.driver.maxResultSize=1b")
    assert done.returncode != 0
    assert "raise spark.driver.maxResultSize" in done.stderr
    assert "last checkpoint in" not in done.stderr
