"""Jobs that a former version began go on, at any parallelism, as if nothing had happened."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest

from .answers import differences, read_parquet
from .former import make_orders, run
from .places import empty_folder

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture
def folder(monkeypatch):
    monkeypatch.setenv("ARROYO_STATE_CACHE", "off")
    with empty_folder() as path:
        monkeypatch.chdir(path)
        make_orders()
        yield path


@pytest.mark.parametrize("parallelism", [3, 2, 4])
def test_a_job_whose_progress_all_subtasks_read_goes_on(folder, parallelism):
    shutil.copy(FIXTURES / "global-progress" / "pipeline.yaml", folder)
    expected = {}
    assert run().is_finished
    for name in ("joined", "largest"):
        expected[name] = read_parquet(folder / "out" / name)
    shutil.rmtree(folder / "out")
    shutil.rmtree(folder / "state")
    with zipfile.ZipFile(FIXTURES / "global-progress" / "left.zip") as left:
        left.extractall(folder)
    before = sum(read_parquet(folder / "out" / name).num_rows for name in expected)
    assert run(parallelism=parallelism, epochs=2) is None
    assert run(parallelism=parallelism).is_finished
    for name, rows in expected.items():
        assert differences(rows, [(read_parquet(folder / "out" / name), 1)]) == []
    assert before < sum(rows.num_rows for rows in expected.values()), "there was nothing left to do"
