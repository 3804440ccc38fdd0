"""The pipeline of the README that reads changes runs as it is written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from arroyo_core.cli.main import main
from tests.mysql_server import PASSWORD, MysqlServer

pytestmark = [pytest.mark.server, pytest.mark.once]

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def block(language: str, words: str) -> str:
    found = [text for text in re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL) if words in text]
    assert len(found) == 1
    return str(found[0])


def test_the_pipeline_of_the_readme_runs_as_it_stands(
    database: MysqlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MYSQL_URL", database.url)
    database.execute(*[text for text in block("sql", "CREATE TABLE").split(";") if text.strip()])
    # It has no end: here it ends with what is there.
    pipeline = block("yaml", "name: spent")
    Path("spent.yaml").write_text(pipeline.replace("table: orders}", "table: orders, until: latest}"))
    assert main(["run", "spent.yaml", "--in-process", "--progress", "none"]) == 0, capsys.readouterr()
    found = database.execute("select customer, cast(total as char), orders from spent order by customer")
    assert [(row[0], float(row[1]), row[2]) for row in found] == [("ann", 15.5, 2), ("bob", 20.0, 1)]
    assert main(["plan", "spent.yaml"]) == 0
    printed = capsys.readouterr()
    assert "one subtask" in printed.out
    assert PASSWORD not in printed.out + printed.err
