"""docs/delta.md and the README run as they are written."""

from __future__ import annotations

import contextlib
import io
import shlex
from pathlib import Path
from typing import Any

import pytest

from arroyo_core.cli.main import main
from tests.document_pages import ROOT, read_commands, read_steps

pytestmark = pytest.mark.once


def run(line: str) -> str:
    """What a command prints, to stdout and stderr together."""
    _, *arguments = shlex.split(line)
    if arguments[0] == "run":
        arguments.append("--in-process")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        assert main(arguments) == 0, printed.getvalue()
    return printed.getvalue()


@pytest.mark.parametrize("page", ["docs/delta.md", "plugins/arroyo-delta/README.md"])
def test_a_page_runs_as_it_is_written(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "page"}
    steps = read_steps(ROOT / page)
    assert {"yaml", "console", "python"} <= {step.kind for step in steps}
    for step in steps:
        assert step.reason is None
        if step.name is not None:
            (tmp_path / step.name).write_text(step.text, encoding="utf-8")
        elif step.kind == "console":
            for command in read_commands(step.text):
                command.check(run(command.line))
        else:
            assert step.kind == "python"
            exec(compile(step.text, page, "exec"), names)
