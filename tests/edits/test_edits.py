"""Every edit of a pipeline gives what DuckDB says, or is refused with words; and the page says which."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

from arroyo_core.state.failures import IncompatibleCheckpointError

from ..lives.places import ROOT, empty_folder
from .aggregate_edits import edits_of_aggregates
from .edit import Edit
from .row_edits import edits_of_rows
from .streams import EditedJob, answer

EDITS: list[Edit] = [*edits_of_aggregates(), *edits_of_rows()]


@pytest.fixture
def folder() -> Iterator[Path]:
    with empty_folder() as path:
        yield path


@pytest.mark.parametrize("edit", [edit for edit in EDITS if edit.is_kept], ids=str)
def test_an_edit_keeps_state(edit: Edit, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    job = EditedJob(folder, edit.former)
    assert job.run(edit.lives).is_finished
    assert edit.answer is not None
    columns, expected = answer(edit.answer)
    assert job.output.net(columns) == expected
    assert edit.says in caplog.text


@pytest.mark.parametrize("edit", [edit for edit in EDITS if not edit.is_kept], ids=str)
def test_an_edit_is_refused(edit: Edit, folder: Path) -> None:
    job = EditedJob(folder, edit.former)
    with pytest.raises(IncompatibleCheckpointError) as caught:
        job.run(edit.lives)
    assert edit.says
    assert edit.says in str(caught.value)
    # Whoever goes back has lost nothing.
    assert job.run([edit.lives[0]]).is_finished


def test_the_page_says_which_edits_keep_state() -> None:
    found: dict[str, dict[str, set[str]]] = {}
    for edit in EDITS:
        found.setdefault(edit.title, {}).setdefault(edit.family, set()).add("kept" if edit.is_kept else "refused")
    table = read_table(ROOT / "docs" / "upgrade.md", "Edit")
    assert set(table) == set(found)
    assert len(table) >= 25
    for title, families in table.items():
        said = {family: {cell} for family, cell in families.items() if cell != "-"}
        assert said == found[title], title


def read_table(page: Path, corner: str) -> dict[str, dict[str, str]]:
    """The cells of the one table of a page that has this word in its corner, by line and column."""
    lines = page.read_text().splitlines()
    (start,) = (place for place, line in enumerate(lines) if line.startswith(f"| {corner} |"))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in takewhile(_is_row, lines[start:])]
    heads = [head.strip("`").removeprefix("std.") for head in rows[0][1:]]
    return {title: dict(zip(heads, cells, strict=True)) for title, *cells in rows[2:]}


def _is_row(line: str) -> bool:
    return line.startswith("|")
