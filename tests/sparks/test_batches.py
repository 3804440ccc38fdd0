"""`foreachBatch` on Spark 3.5 and 4.0: exact through failures and kills at every step; new checkpoints are refused.

On 4.3 `tests/integration/test_batches.py` does the same.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..integration.batch_driver import PLACES, Blows, kill_at_every_step, run_query
from ..integration.stream_files import FILES, assert_exact, assert_exact_rate, epochs, make_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.skipif(
        not version("pyspark").startswith(("3.5.", "4.0.")),
        reason="tried on Spark 3.5 and 4.0 here, and on 4.3 by tests/integration/test_batches.py",
    ),
]


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.driver.host", "127.0.0.1")
    session = builder.config("spark.ui.enabled", "false").getOrCreate()
    yield session
    session.stop()


def test_failures_between_a_batch_and_sparks_commit_change_nothing(session: SparkSession, tmp_path: Path) -> None:
    make_stream(tmp_path)
    for batch, place in enumerate(PLACES):
        with pytest.raises(Exception, match=f"struck at {place} of batch {batch}"):
            run_query(session, tmp_path, Blows("raise", place, batch))
    run_query(session, tmp_path, Blows("none", "", 0))
    assert epochs(tmp_path) == list(range(1, FILES + 1))
    assert_exact(tmp_path)
    with pytest.raises(Exception, match=r"batch 0 is of query .* has read 'bids' up to batch 6 of query"):
        run_query(session, tmp_path, Blows("none", "", 0), checkpoint="another")
    assert_exact(tmp_path)


def test_failures_of_a_rate_source_change_nothing(session: SparkSession, tmp_path: Path) -> None:
    make_stream(tmp_path)
    for batch, place in enumerate((*PLACES, "after")):
        with pytest.raises(Exception, match=f"struck at {place} of batch {batch}"):
            run_query(session, tmp_path, Blows("raise", place, batch), source="rate")
    assert_exact_rate(tmp_path, len(PLACES) + 1)


def test_kills_between_a_batch_and_sparks_commit_change_nothing(tmp_path: Path) -> None:
    make_stream(tmp_path)
    kill_at_every_step(tmp_path, "files")
    assert epochs(tmp_path) == list(range(1, FILES + 1))
    assert_exact(tmp_path)
