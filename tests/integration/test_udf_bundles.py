"""Bundles of user functions on real Spark: shipped by themselves, pinned, cached, noticed when changed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from .conftest import assert_same_rows
from .object_store import object_store
from .servers import standalone_cluster

MODULE = '''
from arroyo_core.udf import udf

__version__ = "{version}"


@udf
def label(channel: str, price: int | None) -> str:
    """Names a bid.

    >>> label("a", 5)
    'a{mark}5'
    """
    return f"{{channel}}{mark}{{price}}"
'''
PIPELINE = """
name: labelled
parallelism: 2
checkpoint: {{url: {state}, rows: 60000, keep: 100}}
{udfs}
nodes:
  - id: bids
    operator: filesystem.source
    config: {{path: {bids}, format: parquet}}
  - id: labelled
    operator: std.project
    inputs: [bids]
    config: {{expressions: {{auction: auction, label: "{function}(channel, price)"}}}}
  - id: out
    operator: filesystem.sink
    inputs: [labelled]
    config: {{path: {out}, format: parquet}}
"""
SQL = "select auction, channel || '{mark}' || coalesce(price::varchar, 'None') as label from bids"


@pytest.fixture
def build(arroyo, tmp_path):
    """Build a version of the bundle with the command line; gives the path of the zip."""

    def make(version: str, mark: str) -> Path:
        source = tmp_path / "labels.py"
        source.write_text(MODULE.format(version=version, mark=mark))
        done = arroyo("udf", "build", source, "-o", tmp_path / "dist")
        assert done.returncode == 0, done.stderr
        return Path(done.stdout.splitlines()[0])

    return make


def write(folder: Path, *, udfs: str, bids: Path, function: str = "label") -> Path:
    path = folder / "pipeline.yaml"
    text = PIPELINE.format(state=folder / "state", udfs=udfs, bids=bids, out=folder / "out", function=function)
    path.write_text(text)
    return path


def test_two_workers_download_a_bundle_once_each_and_restart_without_the_store(
    arroyo, build, bids, tmp_path, tmp_path_factory, monkeypatch
):
    monkeypatch.setenv("ARROYO_UDF_CACHE", str(tmp_path / "driver-cache"))
    with object_store() as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        bundle = build("1.0", ":")
        pushed = arroyo("udf", "push", bundle, f"{store.url}/udfs")
        assert pushed.returncode == 0, pushed.stderr
        shutil.rmtree(tmp_path / "dist")
        (tmp_path / "labels.py").unlink()
        listed = arroyo("udf", "ls", f"{store.url}/udfs")
        assert "label(channel: string, price: int64?) -> string" in listed.stdout
        path = write(tmp_path, udfs=pushed.stdout, bids=bids)
        folder = tmp_path_factory.mktemp("cluster")
        with standalone_cluster(folder) as cluster:
            store.gets.clear()
            done = arroyo("run", path, "--master", cluster.url)
            assert done.returncode == 0, done.stderr
            assert_same_rows(tmp_path / "out", SQL.format(mark=":"), bids=bids)
            downloads = {name: count for name, count in store.gets.items() if name.endswith(".zip")}
            # The driver, and each of the workers.
            assert downloads == {f"/acme/udfs/{bundle.name}": 3}
            for number in range(2):
                assert len(list((folder / f"udf-cache-{number}").glob("*.artifact"))) == 1
            shown = arroyo("checkpoints", "show", tmp_path / "state", "--format", "json")
            (recorded,) = json.loads(shown.stdout)["udfs"]
            assert recorded.startswith("labels 1.0 (sha256 ")

            store.stop()
            shutil.rmtree(tmp_path / "out")
            again = arroyo("run", path, "--master", cluster.url, "--from-epoch", 1)
            assert again.returncode == 0, again.stderr
            assert list((tmp_path / "out").rglob("*.parquet"))


def test_a_changed_bundle_is_refused_before_spark_starts_then_accepted(arroyo, build, bids, tmp_path, monkeypatch):
    monkeypatch.setenv("ARROYO_UDF_CACHE", str(tmp_path / "cache"))
    old = build("1.0", ":")
    path = write(tmp_path, udfs=f"udfs: [{{url: {old}}}]", bids=bids)
    done = arroyo("run", path, "--master", "local[2]")
    assert done.returncode == 0, done.stderr

    new = build("1.1", "=")
    path = write(tmp_path, udfs=f"udfs: [{{url: {new}}}]", bids=bids)
    refused = arroyo("run", path, "--master", "local[2]", "--from-epoch", 1)
    assert refused.returncode == 2
    assert "labels: was 1.0 (sha256 " in refused.stderr
    assert "--accept-udf-change labels" in refused.stderr
    assert "starting Spark" not in refused.stderr
    compared = arroyo("plan", path, "--against", tmp_path / "state")
    assert compared.returncode == 2
    assert "only with --accept-udf-change labels" in compared.stdout

    shutil.rmtree(tmp_path / "out")
    accepted = arroyo("run", path, "--master", "local[2]", "--from-epoch", 1, "--accept-udf-change", "labels")
    assert accepted.returncode == 0, accepted.stderr
    shown = json.loads(arroyo("checkpoints", "show", tmp_path / "state", "--format", "json").stdout)
    assert shown["udfs"][0].startswith("labels 1.1 (sha256 ")
    assert shown["accepted_udf_changes"][0].startswith("labels: 1.0 ")


def test_a_function_of_the_program_and_two_versions_of_a_bundle(spark, build, bids, tmp_path, monkeypatch):
    from arroyo_core import Pipeline

    monkeypatch.setenv("ARROYO_UDF_CACHE", str(tmp_path / "cache"))
    one, two = build("1.0", ":"), build("2.0", "=")
    mark = "<{}>"

    def framed(text: str) -> str:
        return mark.format(text)

    path = write(
        tmp_path,
        udfs=f"udfs: [{{url: {one}, as: v1}}, {{url: {two}, as: v2}}]",
        bids=bids,
        function="framed(v1.label(channel, price) || v2.label",
    )
    path.write_text(path.read_text().replace("v2.label(channel, price)", "v2.label(channel, price))"))
    result = Pipeline.udf(framed).from_yaml(path).run(spark)
    assert result.is_finished
    price = "coalesce(price::varchar, 'None')"
    label = f"'<' || channel || ':' || {price} || channel || '=' || {price} || '>'"
    assert_same_rows(tmp_path / "out", f"select auction, {label} as label from bids", bids=bids)
    (stored,) = (tmp_path / "state/labelled/udfs").iterdir()
    assert stored.suffix == ".pickle"
