"""Executors that lack arroyo, or everything, and get it with the session: on a cluster, and through Spark Connect."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path

import pytest
from arroyo_pack.archives import write_environment
from arroyo_pack.packages import closure

from .conftest import assert_same_rows
from .servers import connect_server, standalone_cluster
from .test_cluster import on_cluster
from .test_cluster_entry import ENTRY, applications, spark_submit
from .test_exact import DIAMOND, DIAMOND_SQL, write

#: Archives of more than a hundred megabytes are made, sent and unpacked.
pytestmark = pytest.mark.timeout(1200)

ARROYO = Path(sys.executable).with_name("arroyo")

#: What the pipeline needs, and pandas, which Spark's own functions over DataFrames want.
NEEDED = ("arroyo-core", "arroyo-filesystem", "arroyo-std", "pandas")


def make_venv(folder: Path) -> Path:
    """A Python without any packages; its path."""
    venv.create(folder, symlinks=True, with_pip=False)
    return folder / "bin/python"


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> Path:
    return make_venv(tmp_path_factory.mktemp("bare"))


@pytest.fixture(scope="module")
def compiled_only(tmp_path_factory) -> Path:
    """A Python that has what is compiled, pandas with all that it requires, and nothing of arroyo."""
    python = make_venv(tmp_path_factory.mktemp("compiled"))
    (site,) = python.parents[1].glob("lib/python*/site-packages")
    wanted = {package.name for package in closure(NEEDED) if not package.is_pure}
    wanted |= {package.name for package in closure(["pandas"])}
    for name in wanted:
        found = distribution(name)
        for top in {path.parts[0] for path in found.files or () if path.parts[0] != ".."} - {"__pycache__"}:
            (site / top).symlink_to(Path(str(found.locate_file(top))).resolve())
    return python


@pytest.fixture(scope="module")
def packs(tmp_path_factory, bids) -> dict[str, str]:
    """A cache where both archives are: to make them takes seconds, and `arroyo pack` makes what `arroyo run` sends."""
    folder = tmp_path_factory.mktemp("packs")
    folder.chmod(0o700)
    pipeline = write(tmp_path_factory.mktemp("pipeline"), DIAMOND, bids=bids, out=folder)
    variables = {"ARROYO_PACK_CACHE": str(folder)}
    for kind in ("wheels", "env"):
        subprocess.run([ARROYO, "pack", pipeline, "--as", kind], env=os.environ | variables, check=True)
    return variables


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def cluster(folder, bare):
    """A worker whose own Python has nothing; each job has an executor of its own there."""
    environment = {"PYSPARK_PYTHON": str(bare), "PYTHONPATH": ""}
    with standalone_cluster(folder, workers=1, cores=2, environments=[environment]) as cluster:
        yield cluster.url


@pytest.fixture
def diamond(bids, tmp_path) -> Path:
    return on_cluster(write(tmp_path, DIAMOND, bids=bids, out=tmp_path / "out"), tmp_path)


def sentence_of(done: subprocess.CompletedProcess[str]) -> str:
    """What `arroyo` says of a mistake: nothing but one sentence."""
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    (said,) = [x for x in done.stderr.splitlines() if x.startswith("arroyo: ") and not x.startswith("arroyo: shipping")]
    return said


def test_an_environment_comes_to_executors_that_have_nothing(arroyo, cluster, folder, diamond, bids, packs, tmp_path):
    before = applications(folder)
    done = arroyo("run", diamond, "--master", cluster, "--ship", "env", timeout=500, **packs)
    assert done.returncode == 0, done.stderr
    assert "as packed before" in done.stderr
    assert "arroyo: packing" not in done.stderr
    assert_same_rows(tmp_path / "out", DIAMOND_SQL, bids=bids)
    (application,) = applications(folder) - before
    assert list(folder.glob(f"worker-*/{application}/*/arroyo_environment/bin/python")), "executors unpacked it"


def test_wheels_come_to_executors_that_have_what_is_compiled_under_spark_submit_too(
    cluster, compiled_only, diamond, bids, packs, tmp_path
):
    conf = (
        "--conf",
        f"spark.pyspark.driver.python={sys.executable}",
        "--conf",
        f"spark.pyspark.python={compiled_only}",
    )
    done = spark_submit("--master", cluster, *conf, ENTRY, "run", diamond, "--ship", "wheels", cwd=tmp_path, **packs)
    assert done.returncode == 0, done.stdout[-5000:]
    assert_same_rows(tmp_path / "out", DIAMOND_SQL, bids=bids)


def test_wheels_for_executors_without_what_is_compiled_are_refused_before_the_first_epoch(
    arroyo, cluster, bare, diamond, packs, tmp_path
):
    python = ("--conf", f"spark.pyspark.python={bare}")
    done = arroyo("run", diamond, "--master", cluster, *python, "--ship", "wheels", timeout=500, **packs)
    said = sentence_of(done)
    assert re.search(r"executors have no (pyarrow|numpy|protobuf|msgspec) [\d.]+ on 127\.0\.0\.\d+", said), said
    assert said.endswith("--ship wheels cannot bring it, since it has compiled code: --ship env can")
    assert not (tmp_path / "out").exists()


def test_an_environment_whose_python_is_not_there_is_one_sentence(arroyo, cluster, diamond, tmp_path):
    write_environment([], tmp_path / "environment.tar.gz", python="/nosuch/bin/python3")
    ship = ("--ship", "env", "--ship-file", tmp_path / "environment.tar.gz")
    said = sentence_of(arroyo("run", diamond, "--master", cluster, *ship, timeout=500))
    assert "this machine has no /nosuch/bin/python3, which the environment needs" in said


@pytest.fixture(scope="module")
def connect(tmp_path_factory, compiled_only):
    with connect_server(
        tmp_path_factory.mktemp("connect"), PYSPARK_PYTHON=str(compiled_only), PYTHONPATH=""
    ) as connect:
        yield connect.url


@pytest.mark.parametrize("kind", ["wheels", "env"])
def test_a_session_of_spark_connect_brings_them_too(arroyo, connect, diamond, bids, packs, tmp_path, kind):
    done = arroyo("run", diamond, "--master", connect, "--ship", kind, timeout=500, **packs)
    assert done.returncode == 0, done.stderr
    assert_same_rows(tmp_path / "out", DIAMOND_SQL, bids=bids)
