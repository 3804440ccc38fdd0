"""A real local Spark, a plugin that breaks things on purpose, and a way to compare with DuckDB."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ..installed import installed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHAOS = Path(__file__).parent / "chaos_plugin"


@pytest.fixture(scope="session", autouse=True)
def _chaos_on_path() -> Iterator[None]:
    """The plugin `chaos` is installed for this session and for every process it starts."""
    with installed(CHAOS):
        yield


@pytest.fixture(scope="session")
def spark(_chaos_on_path: None) -> Iterator[SparkSession]:
    from arroyo_core.spark.session import create_session

    session = create_session("tests", master="local[2]")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def bids(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200,000 bids in four Parquet files, some without a price."""
    folder = tmp_path_factory.mktemp("bids")
    random = np.random.default_rng(7)
    for number in range(4):
        size = 50_000
        price = random.integers(1, 10_000, size)
        table = pa.table(
            {
                "auction": random.integers(1000, 1100, size),
                "bidder": random.integers(1, 5000, size),
                "price": pa.array(price, mask=price % 97 == 0),
                "channel": pa.array([f"channel-{n}" for n in range(20)]).take(pa.array(random.integers(0, 20, size))),
                "date_time": pa.array(np.arange(size) * 1000 + number, pa.timestamp("us", "UTC")),
            }
        )
        pq.write_table(table, folder / f"bids-{number}.parquet", row_group_size=10_000)
    return folder


Arroyo = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def arroyo(tmp_path: Path) -> Arroyo:
    """Runs the command `arroyo` in an empty folder, as a user would."""

    def call(*arguments: object, timeout: float = 300, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(Path(sys.executable).with_name("arroyo")), *map(str, arguments)],
            cwd=tmp_path,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return call


def assert_same_rows(folder: Path, expected: str, **tables: Path) -> int:
    """The Parquet files below `folder` hold exactly the rows of the query; returns their number."""
    with duckdb.connect() as db:
        for name, path in tables.items():
            db.execute(f"create view {name} as select * from read_parquet('{path}/*.parquet')")
        db.execute(f"create view got as select * from read_parquet('{folder}/part-*.parquet')")
        db.execute(f"create view expected as {expected}")
        missing = db.execute("select * from expected except all select * from got limit 5").fetchall()
        extra = db.execute("select * from got except all select * from expected limit 5").fetchall()
        assert (missing, extra) == ([], [])
        count = db.execute("select count(*) from got").fetchone()
        assert count is not None
        return int(count[0])
