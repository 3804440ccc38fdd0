"""A pipeline with state on this release of Spark: its rows are the same on each, however they came about.

`tox -e spark35` and its like run this on older releases; with the tests on Spark it runs on the newest.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import requires, version
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement

from arroyo_core import Pipeline
from arroyo_core.runtime.job import SilentListener
from arroyo_core.runtime.results import EpochResult, JobResult
from arroyo_core.runtime.stop import StopSignal
from arroyo_core.spark.releases import BATCH_ROWS
from arroyo_core.spark.session import create_session, start_spark
from arroyo_core.spark.shuffles import FrameExchange, RowExchange, Spark, exchange_for

from ..integration.servers import connect_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What older releases of pyspark are warned of, and we cannot change: modules that Python has deprecated since, sockets
# that are closed when they are collected.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

FOLDER = Path(__file__).parent
#: One for all releases.
EXPECTED = (FOLDER / "expected.jsonl").read_text().splitlines()
MASTER = "local[2]"
EPOCHS = 7


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The pipeline, with folders of its own."""
    path = tmp_path / "pipeline.yaml"
    path.write_text((FOLDER / "pipeline.yaml").read_text().replace("./", f"{tmp_path}/"))
    return path


def rows(file: Path) -> list[str]:
    parts = (file.parent / "out").glob("part-*")
    return sorted(line for part in parts for line in part.read_text().splitlines())


class StopAfter(SilentListener):
    def __init__(self, epochs: int) -> None:
        self.stop = StopSignal()
        self._epochs = epochs

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        if job.epochs == self._epochs:
            self.stop.request()


def run_in_two(file: Path, spark: Spark, execution: str) -> None:
    """Stopped after an epoch, or a few where these overlap, and gone on with at another parallelism."""
    listener = StopAfter(1)
    first = Pipeline.from_yaml(file).run(spark, listener=listener, stop=listener.stop, execution=execution)
    assert not first.is_finished
    second = Pipeline.from_yaml(file, parallelism=1).run(spark, execution=execution)
    assert second.is_finished
    assert second.resumed_from is not None
    assert rows(file) == EXPECTED


@pytest.fixture(scope="class")
def session() -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(MASTER).config("spark.driver.host", "127.0.0.1")
    session = builder.config("spark.ui.enabled", "false").getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="class")
def context() -> Iterator[Spark]:
    context = start_spark("releases", master=MASTER)
    yield context
    context.stop()


def test_what_is_installed_fits_together_and_is_of_this_row() -> None:
    """Beside a pyspark of a fixed release the wheels were installed, and nothing was replaced."""
    extras = {"arroyo-core": ("", "spark", "connect")}
    for name in ("arroyo-core", "arroyo-std", "arroyo-filesystem", "arroyo-nexmark", "pyspark"):
        for line in requires(name) or []:
            requirement = Requirement(line)
            if requirement.marker and not any(map(requirement.marker.evaluate, _environments(extras.get(name, ("",))))):
                continue
            assert requirement.specifier.contains(version(requirement.name), prereleases=True), (name, line)
    row = re.fullmatch(r"spark(\d)(\d)", os.environ.get("TOX_ENV_NAME", ""))
    if row:
        assert version("pyspark").startswith(f"{row[1]}.{row[2]}.")


def _environments(extras: Iterable[str]) -> list[dict[str, str]]:
    return [{"extra": extra} for extra in extras]


def test_the_command_runs_it(file: Path) -> None:
    command = [str(Path(sys.executable).with_name("arroyo")), "run", str(file), "--master", MASTER]
    done = subprocess.run(
        [*command, "--execution", "jobs"], capture_output=True, text=True, check=False, env=os.environ, timeout=280
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert f"releases finished: {EPOCHS} epochs" in done.stderr
    assert rows(file) == EXPECTED


class TestSessionOfTheUser:
    """As a notebook has it: with Spark's own settings, plans that adapt among them, and frames as rows."""

    def test_its_rows_are_moved_as_a_data_frame(self, session: SparkSession, file: Path) -> None:
        assert isinstance(exchange_for(session), RowExchange)
        session.conf.set(BATCH_ROWS, "5000")
        result = Pipeline.from_yaml(file).run(session, execution="jobs")
        assert result.is_finished
        assert rows(file) == EXPECTED
        assert session.conf.get(BATCH_ROWS) == "5000", "its settings are left as they were"

    def test_it_is_stopped_and_goes_on(self, session: SparkSession, file: Path) -> None:
        run_in_two(file, session, "jobs")


class TestContextOfArroyo:
    @pytest.mark.parametrize("execution", ["jobs", "live"])
    def test_it_is_stopped_and_goes_on(self, context: Spark, file: Path, execution: str) -> None:
        assert isinstance(exchange_for(context), FrameExchange)
        run_in_two(file, context, execution)


def test_spark_connect_runs_it(file: Path, tmp_path: Path) -> None:
    with connect_server(tmp_path) as connect:
        session = create_session("releases", master=connect.url)
        try:
            run_in_two(file, session, "jobs")
        finally:
            session.stop()
