"""docs/iceberg.md and the README run as they are written, in one process."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from arroyo_core.cli.main import main
from tests.document_pages import ROOT, read_commands, read_steps

pytestmark = pytest.mark.once

README = ROOT / "plugins" / "arroyo-iceberg" / "README.md"


def run(line: str) -> str:
    """What a command prints, to stdout and stderr together."""
    name, *arguments = shlex.split(line)
    assert name == "arroyo", line
    if arguments[0] == "run":
        arguments.append("--in-process")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        assert main(arguments) == 0, printed.getvalue()
    return printed.getvalue()


def test_the_page_runs_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for step in read_steps(ROOT / "docs" / "iceberg.md"):
        assert step.reason is None
        if step.name is not None:
            (tmp_path / step.name).write_text(step.text, encoding="utf-8")
        elif step.kind == "console":
            for command in read_commands(step.text):
                command.check(run(command.line))
        else:
            assert step.kind == "python"
            exec(compile(step.text, "iceberg.md", "exec"), names)


def test_the_pipeline_of_the_readme_runs_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    monkeypatch.chdir(tmp_path)
    (step,) = [step for step in read_steps(README) if step.name]
    (tmp_path / str(step.name)).write_text(step.text, encoding="utf-8")
    run(f"arroyo run {step.name}")
    table = SqlCatalog("default", uri="sqlite:///catalog.db").load_table("shop.ticks")
    assert table.scan().count() == 4000
    for line in re.findall(r"^    (arroyo iceberg .*?)(?:  #.*)?$", README.read_text(encoding="utf-8"), flags=re.M):
        run(line)
