"""User functions that fail, end their process, or never return, on real Spark: the job fails, and says why."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

from arroyo_core import Pipeline
from arroyo_core.errors import ArroyoError, Domain, error_domain
from arroyo_core.udf import ScalarUdf, async_udf, udf

PIPELINE = """
name: failing
parallelism: 2
nodes:
  - id: bids
    operator: filesystem.source
    config: {{path: {bids}, format: parquet}}
  - id: called
    operator: std.project
    inputs: [bids]
    config: {{expressions: {{x: "{function}(auction)"}}, on_error: {on_error}}}
  - {{id: nowhere, operator: std.blackhole, inputs: [called]}}
"""


@udf
def broken(auction: int) -> int:
    if auction == 1042:
        raise LookupError(f"auction {auction} is unknown")
    return auction


@udf
def leaving(auction: int) -> int:
    sys.exit(3)


@udf(timeout="1s")
def sleeping(auction: int) -> int:
    # For ever: only the timeout ends it.
    time.sleep(3600)
    return auction


@udf
def killing(auction: int) -> int:
    os._exit(9)


@async_udf(concurrency=1000)
async def tenfold(auction: int) -> int:
    # As a service would take, so that calls are under way together.
    await asyncio.sleep(0.001)
    return auction * 10


def run(spark, bids: Path, folder: Path, function: ScalarUdf, on_error: str = "fail"):
    path = folder / "pipeline.yaml"
    path.write_text(PIPELINE.format(bids=bids, function=function.name, on_error=on_error))
    return Pipeline.udf(function).from_yaml(path).run(spark, max_restarts=1)


def test_an_exception_arrives_with_the_users_traceback(spark, bids, tmp_path):
    with pytest.raises(ArroyoError) as caught:
        run(spark, bids, tmp_path, broken)
    text = str(caught.value)
    assert "operator 'called'" in text
    assert "UDF 'broken' of pickle broken" in text
    assert "LookupError: auction 1042 is unknown; called with auction=1042" in text
    assert "in broken" in text
    assert "arroyo_core/udf/scalar.py" not in text
    assert error_domain(caught.value) is Domain.USER


def test_failing_rows_give_null_and_are_counted(spark, bids, tmp_path):
    result = run(spark, bids, tmp_path, broken, on_error="null")
    assert result.is_finished
    assert result.operators["called"].rows_sent == 200_000


@pytest.mark.parametrize(
    ("function", "message"),
    [(leaving, r"it called sys.exit\(3\)"), (sleeping, "it did not return within 1s")],
    ids=["sys.exit", "never returns"],
)
def test_a_function_that_ends_or_never_ends_fails_the_job(spark, bids, tmp_path, function, message):
    start = time.monotonic()
    with pytest.raises(ArroyoError, match=message):
        run(spark, bids, tmp_path, function)
    assert time.monotonic() - start < 120


def test_a_function_that_kills_its_process_fails_the_job(spark, bids, tmp_path):
    start = time.monotonic()
    with pytest.raises(ArroyoError, match="a Python worker died in every attempt of a task"):
        run(spark, bids, tmp_path, killing)
    assert time.monotonic() - start < 240
    # The session is still of use.
    assert run(spark, bids, tmp_path, broken, on_error="null").is_finished


def test_calls_that_wait_run_on_spark(spark, bids, tmp_path):
    path = tmp_path / "waiting.yaml"
    config = "{function: tenfold, arguments: [auction], as: x}"
    path.write_text(
        PIPELINE.format(bids=bids, function="", on_error="fail")
        .replace("std.project", "std.async_udf")
        .replace('{expressions: {x: "(auction)"}, on_error: fail}', config)
    )
    result = Pipeline.udf(tenfold).from_yaml(path).run(spark)
    assert result.is_finished
    assert result.operators["called"].rows_sent == 200_000
