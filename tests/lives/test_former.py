"""Jobs that a former version began go on, at any parallelism, as if nothing had happened."""

from __future__ import annotations

import shutil
import zipfile
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

from arroyo_core.state.failures import IncompatibleCheckpointError

from .answers import differences, read_parquet
from .former import load_outputs, make_orders, run, save_outputs
from .places import empty_folder

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture
def folder(monkeypatch):
    with empty_folder() as path:
        monkeypatch.chdir(path)
        make_orders()
        load_outputs()
        yield path


@cache
def whole(fixture: str) -> dict[str, pa.Table]:
    """What the pipeline of a fixture gives that nobody kills, by output."""
    with empty_folder() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        load_outputs()
        shutil.copy(FIXTURES / fixture / "pipeline.yaml", folder)
        assert run().is_finished
        save_outputs()
        return {path.name: read_parquet(path) for path in (folder / "out").iterdir()}


def check_goes_on(folder, fixture, *, parallelism):
    """Run the pipeline of a fixture from the state in it, and compare with a whole run."""
    expected = whole(fixture)
    shutil.copy(FIXTURES / fixture / "pipeline.yaml", folder)
    with zipfile.ZipFile(FIXTURES / fixture / "left.zip") as left:
        left.extractall(folder)
    load_outputs()
    before = sum(read_parquet(path).num_rows for path in (folder / "out").iterdir())
    assert run(parallelism=parallelism, epochs=2) is None
    assert run(parallelism=parallelism).is_finished
    save_outputs()
    for name, rows in expected.items():
        assert differences(rows, [(read_parquet(folder / "out" / name), 1)]) == []
    assert before < sum(rows.num_rows for rows in expected.values()), "there was nothing left to do"


@pytest.mark.parametrize("parallelism", [3, 2, 4])
def test_a_job_whose_progress_all_subtasks_read_goes_on(folder, parallelism):
    check_goes_on(folder, "global-progress", parallelism=parallelism)


@pytest.mark.parametrize("parallelism", [2, 3])
def test_a_job_whose_defaults_stood_in_the_code_of_its_operators_goes_on(folder, parallelism):
    check_goes_on(folder, "omitted-defaults", parallelism=parallelism)


@pytest.mark.parametrize("parallelism", [2, 3])
def test_a_job_of_the_core_that_had_everything_in_it_goes_on(folder, parallelism):
    check_goes_on(folder, "before-distributions", parallelism=parallelism)


@pytest.mark.parametrize("parallelism", [2, 3])
def test_a_job_whose_tables_had_fixed_columns_goes_on(folder, parallelism):
    check_goes_on(folder, "fixed-columns", parallelism=parallelism)


@pytest.mark.parametrize("parallelism", [2, 3, 1])
def test_a_job_that_watched_a_folder_and_forgot_no_file_goes_on(folder, parallelism):
    check_goes_on(folder, "watched-files", parallelism=parallelism)


def test_aggregates_of_a_version_that_did_not_record_their_columns_are_edited_after_a_checkpoint(folder):
    text = (FIXTURES / "fixed-columns" / "pipeline.yaml").read_text()
    edited = text.replace("{function: sum, column: id, as: ids}", "{function: max, column: id, as: newest}")
    assert edited != text
    with zipfile.ZipFile(FIXTURES / "fixed-columns" / "left.zip") as left:
        left.extractall(folder)
    load_outputs()
    (folder / "pipeline.yaml").write_text(edited)
    with pytest.raises(
        IncompatibleCheckpointError, match=r"written by an earlier version, .* run the pipeline as it was"
    ):
        run()
    (folder / "pipeline.yaml").write_text(text)
    assert run(epochs=1) is None
    (folder / "pipeline.yaml").write_text(edited)
    assert run().is_finished
