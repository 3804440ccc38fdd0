"""Every edit of a script gives what DuckDB says, or is refused with words; and the page says which."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from arroyo_core.pipeline import plan_pipeline
from arroyo_core.runtime.start import StartOptions
from arroyo_core.state.failures import IncompatibleCheckpointError

from ..lives.places import ROOT, empty_folder
from .sql_edit import ORDERS, SqlEdit, Verdict
from .sql_edits import sql_edits
from .streams import EditedJob, answer
from .test_edits import read_table

EDITS = list(sql_edits())


class EditedScript(EditedJob):
    """A job whose script is another one in each of its lives."""

    def __init__(self, folder: Path, edit: SqlEdit) -> None:
        super().__init__(folder / "state", edit.former, outputs=edit.outputs)
        self._file = folder / "edited.sql"

    def plan(self, nodes: Any, *, parallelism: int = 2) -> Any:
        self._file.write_text(nodes)
        plan = plan_pipeline(self._file, plugins=self.plugins, environment={}, parallelism=parallelism)
        checkpoint = dataclasses.replace(plan.checkpoint, url=str(self._folder), interval_ms=1)
        return dataclasses.replace(plan, checkpoint=checkpoint)


@pytest.fixture
def folder() -> Iterator[Path]:
    with empty_folder() as path:
        yield path


@pytest.mark.parametrize("edit", [edit for edit in EDITS if edit.verdict is Verdict.KEPT], ids=str)
def test_an_edit_of_a_script_keeps_state(edit: SqlEdit, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    job = EditedScript(folder, edit)
    assert job.run(edit.lives).is_finished
    _check(job, edit)
    assert edit.says in caplog.text


@pytest.mark.parametrize("edit", [edit for edit in EDITS if edit.verdict is not Verdict.KEPT], ids=str)
def test_an_edit_of_a_script_is_refused(edit: SqlEdit, folder: Path) -> None:
    job = EditedScript(folder, edit)
    with pytest.raises(IncompatibleCheckpointError) as caught:
        job.run(edit.lives)
    assert edit.says
    assert edit.says in str(caught.value)
    can_drop = edit.verdict is Verdict.DROP
    options = StartOptions(allow_drop=True) if can_drop else StartOptions(allow_changes=edit.nodes)
    # Whoever says so goes on; whoever does not may go back, and has lost nothing.
    assert job.run([edit.lives[1]], options=options).is_finished
    if edit.answers:
        _check(job, edit)


@pytest.mark.parametrize("edit", [edit for edit in EDITS if edit.verdict is not Verdict.KEPT], ids=str)
def test_whoever_takes_a_refused_edit_back_has_lost_nothing(edit: SqlEdit, folder: Path) -> None:
    job = EditedScript(folder, edit)
    with pytest.raises(IncompatibleCheckpointError):
        job.run(edit.lives)
    assert job.run([edit.lives[0]]).is_finished


def _check(job: EditedScript, edit: SqlEdit) -> None:
    for name, query in edit.answers.items():
        columns, expected = answer(query)
        assert job.outputs[name].net(columns) == expected, name


def test_files_stay_where_they_are_when_the_path_of_a_sink_changes(folder: Path) -> None:
    edit = SqlEdit(title="the path of a sink", subject="no state", lives=[_to_files(folder, name) for name in "ab"])
    assert EditedScript(folder, edit).run(edit.lives).is_finished
    rows = f"read_json(['{folder}/a/**/*.jsonl', '{folder}/b/**/*.jsonl'], filename = true)"
    found = duckdb.sql(f"SELECT n, filename LIKE '%/a/%' FROM {rows} ORDER BY n").fetchall()
    _, expected = answer("SELECT n, part = 1 FROM orders")
    assert sorted(found) == sorted(expected.elements())


def _to_files(folder: Path, name: str) -> str:
    options = f"connector = 'filesystem', type = 'sink', path = '{folder}/{name}', format = 'json'"
    return f"{ORDERS}CREATE TABLE files WITH ({options});\nINSERT INTO files SELECT n, v FROM orders;\n"


def test_the_page_says_which_edits_of_scripts_keep_state() -> None:
    found: dict[str, set[str]] = {"the path of a sink": {Verdict.KEPT.value}}
    for edit in EDITS:
        found.setdefault(edit.title, set()).add(edit.verdict.value)
    said = {title: {cells["State"]} for title, cells in read_table(ROOT / "docs" / "sql.md", "Edit").items()}
    assert len(said) >= 20
    assert said == found
