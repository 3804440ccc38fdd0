"""The notebook of examples/ runs from its first cell to its last, in a kernel of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "hot_items.ipynb"


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    folder = tmp_path_factory.mktemp("notebook")
    client = nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    return client.execute()


def shown(executed: Any, source: str) -> dict[str, str]:
    """What the cell shows that has this text, by type; what it prints, as `stdout`."""
    cell = next(cell for cell in executed.cells if cell.cell_type == "code" and source in cell.source)
    found: dict[str, str] = {}
    for output in cell.outputs:
        if output.output_type == "stream":
            found[output.name] = found.get(output.name, "") + output.text
        else:
            found |= output.get("data", {})
    return found


def test_the_notebook_is_kept_without_outputs() -> None:
    """They would differ at each run, and pictures would fill the history."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert [cell for cell in notebook.cells if cell.get("outputs") or cell.get("execution_count")] == []


def test_the_pipeline_is_drawn(executed: Any) -> None:
    assert "data:image/svg+xml;base64," in shown(executed, "pipeline = Pipeline.build(")["text/html"]


def test_mistakes_have_the_number_of_the_cell(executed: Any) -> None:
    printed = shown(executed, "InvalidPipelineError as error")["stdout"]
    assert printed.startswith("Cell In[")
    assert "has no field 'predicat' (did you mean 'predicate'?)" in printed


def test_progress_and_rows_are_shown_as_tables(executed: Any) -> None:
    assert "<table" in shown(executed, "job.progress.epochs < 2")["text/html"]
    rows = shown(executed, 'job.latest(6, "hot")')["text/html"]
    assert "window_start" in rows
    assert rows.count("<tr>") == 7


def test_the_endless_job_is_stopped(executed: Any) -> None:
    assert shown(executed, "endless.start()")["stdout"].strip() == "stopped"
