"""The ways to read output that docs/read-output.md shows see whole epochs only, also when a driver dies in a commit."""

import json
from collections import Counter
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow.dataset as ds
import pytest
from arroyo_testing.lanes import InlineLanes

from arroyo_core.cli.main import main
from arroyo_core.pipeline import plan_text
from arroyo_core.plugin import installed_plugins
from arroyo_core.runtime.job import Job
from arroyo_core.runtime.local import LocalExecutor

from ..document_pages import ROOT, read_steps

STEPS = [step for step in read_steps(ROOT / "docs/read-output.md") if step.service is None]


class Died(BaseException):
    """The driver is gone."""


@pytest.fixture
def job(tmp_path, monkeypatch):
    """Runs the job of the page, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    (pipeline,) = [step.text for step in STEPS if step.name == "auctions.yaml"]
    plugins = installed_plugins()

    def run():
        plan = plan_text(pipeline, plugins=plugins, environment={})
        job = Job(plan, LocalExecutor(plugins), plugins=plugins, storage_url="state", lanes=InlineLanes())
        with closing(job):
            return job.run()

    return run


def read_by_duckdb():
    """Rows by category."""
    query, _ = [step.text for step in STEPS if step.kind == "sql"]
    return Counter({category: rows for category, rows, _ in duckdb.sql(query).fetchall()})


def read_by_pyarrow():
    code, _ = [step.text for step in STEPS if step.kind == "python"]
    names = {}
    exec(compile(code, "read-output.md", "exec"), names)
    assert len(names["frame"]) == names["rows"].num_rows
    return Counter(names["rows"].column("category").to_pylist())


def read_compacted_by_duckdb():
    _, query = [step.text for step in STEPS if step.kind == "sql"]
    return Counter({category: rows for category, rows, _ in duckdb.sql(query).fetchall()})


def read_compacted_by_pyarrow(rows):
    _, code = [step.text for step in STEPS if step.kind == "python"]
    names = {"json": json, "Path": Path, "ds": ds, "rows": rows}
    exec(compile(code, "read-output.md", "exec"), names)
    return Counter(names["again"].column("category").to_pylist())


READERS = [read_by_duckdb, read_by_pyarrow]


@pytest.mark.parametrize("read", READERS)
def test_a_driver_that_dies_between_two_moves_shows_whole_epochs_only(job, read, monkeypatch):
    import arroyo_filesystem.commit

    move, seen = arroyo_filesystem.commit._move_local, []

    def move_until(location, file):
        if file.final.rpartition("/")[2].startswith("part-00003-"):
            if len(seen) == 3:
                # What readers saw when two epochs were complete and the third was half there.
                raise Died
            seen.append(file)
        move(location, file)

    with monkeypatch.context() as patch:
        patch.setattr("arroyo_filesystem.commit._move_local", move_until)
        with pytest.raises(Died):
            job()
    by_folder = ds.dataset("out", format="parquet", partitioning="hive").to_table()
    by_manifest = read()
    assert by_manifest.total() == 2000
    assert by_folder.num_rows == 2000 + sum(file.rows for file in seen) < 3000
    assert job().is_finished
    assert read().total() == 4800
    assert ds.dataset("out", format="parquet", partitioning="hive").to_table().num_rows == 4800
    assert read() == READERS[1 - READERS.index(read)]()


def test_after_a_compaction_readers_see_each_row_once_also_while_replaced_files_are_still_there(job, monkeypatch):
    import arroyo_filesystem.compaction

    assert job().is_finished
    before = read_by_duckdb()
    rows = ds.dataset("out", format="parquet", partitioning="hive").to_table()
    files = sum(1 for _ in Path("out").rglob("part-*"))

    def die(self, paths):
        if paths:
            raise Died

    with monkeypatch.context() as patch:
        patch.setattr(arroyo_filesystem.compaction.Compaction, "_delete", die)
        with pytest.raises(Died):
            main(["files", "compact", "out", "--older-than", "0s"])
    assert ds.dataset("out", format="parquet", partitioning="hive").to_table().num_rows == 2 * rows.num_rows
    assert read_compacted_by_duckdb() == read_compacted_by_pyarrow(rows) == before
    assert main(["files", "compact", "out", "--older-than", "0s"]) == 0
    assert sum(1 for _ in Path("out").rglob("part-*")) < files / 2
    assert ds.dataset("out", format="parquet", partitioning="hive").to_table().num_rows == rows.num_rows
    assert read_compacted_by_duckdb() == read_compacted_by_pyarrow(rows) == before
