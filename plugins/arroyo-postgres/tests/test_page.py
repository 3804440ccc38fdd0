"""The pipeline of the README runs as it is written, and so does what docs/postgres-cdc.md shows."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from arroyo_core.cli.main import main
from tests.document_pages import ROOT
from tests.postgres_server import DATABASE, PASSWORD, USER, PostgresServer

pytestmark = [pytest.mark.server, pytest.mark.once]

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def block(language: str, words: str, page: str = README) -> str:
    found = [text for text in re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL) if words in text]
    assert len(found) == 1
    return str(found[0])


@pytest.fixture
def orders(server: PostgresServer) -> Iterator[PostgresServer]:
    statements = [text for text in block("sql", "CREATE TABLE").split(";") if text.strip()]
    server.execute(*statements)
    yield server
    # As docs/postgres-cdc.md says, for the slot of that page.
    page = (ROOT / "docs" / "postgres-cdc.md").read_text(encoding="utf-8")
    away = block("sql", "DROP", page).replace("arroyo_orders", "arroyo_totals")
    server.execute(*[text for text in away.split(";") if text.strip()], "drop table orders")
    assert server.execute("select 1 from pg_publication where pubname = 'arroyo_totals'") == []


def run(*arguments: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        assert main([*arguments]) == 0, printed.getvalue()
    return printed.getvalue()


def test_the_pipeline_runs_as_it_is_written(
    orders: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    url = f"postgresql://{USER}:{quote(PASSWORD)}@127.0.0.1:{orders.port}/{DATABASE}"
    monkeypatch.setenv("DATABASE_URL", url)
    pipeline = block("yaml", "name: totals")
    # It has no end: here it ends with what is there.
    Path("totals.yaml").write_text(pipeline.replace("create: true", "until: latest\n      create: true"))
    printed = run("run", "totals.yaml", "--in-process", "--progress", "none")
    assert '"customer":"ann","total":"15.50","orders":2' in printed
    assert '"customer":"bob","total":"20.00","orders":1' in printed
    planned = run("plan", "totals.yaml")
    for text in (printed, planned):
        assert PASSWORD not in text
        assert quote(PASSWORD) not in text
    assert "one subtask" in planned
