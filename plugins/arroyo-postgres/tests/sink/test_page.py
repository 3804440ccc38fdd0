"""The pipelines of README.md and docs/postgres.md are planned, and that of the README runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from arroyo_core.cli.main import main
from arroyo_core.pipeline import plan_text
from arroyo_core.plugin import installed_plugins
from tests.postgres_server import DATABASE, PASSWORD, USER

from .support import Database

pytestmark = [pytest.mark.server, pytest.mark.once]

PLUGIN = Path(__file__).parents[2]
ROOT = PLUGIN.parents[1]


BEFORE = """
- {id: numbers, operator: impulse.source, config: {count: 1}}
- id: orders
  operator: std.project
  inputs: [numbers]
  config: {expressions: {customer: cast(counter as bigint), amount: "1.5"}}
""".splitlines()
AFTER = [
    "- {id: end, operator: std.blackhole, inputs: [rich]}",
    "- {id: other, operator: std.blackhole, inputs: [events]}",
]


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```yaml\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.M | re.S)


@pytest.fixture
def url(database: Database, monkeypatch: pytest.MonkeyPatch) -> str:
    found = f"postgresql://{USER}:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{database.server.port}/{DATABASE}"
    monkeypatch.setenv("DATABASE_URL", found)
    return found


def test_the_pipeline_of_the_readme_runs_as_it_stands(database, url, tmp_path, monkeypatch, capsys):
    (text,) = [block for block in blocks(PLUGIN / "README.md") if block.startswith("# digits.yaml")]
    (tmp_path / "digits.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    database.execute("create table names (id bigint primary key, name text)", "insert into names values (0, 'zero')")
    assert main(["run", "digits.yaml", "--in-process"]) == 0, capsys.readouterr()
    assert database.execute("select digit, name, n, total from totals order by digit") == [
        (digit, "zero" if digit == 0 else None, 100, sum(range(digit, 1000, 10))) for digit in range(10)
    ]
    assert "only" not in capsys.readouterr().out


def test_the_nodes_of_the_page_can_be_planned(database, url):
    database.execute(
        "create table customers (id bigint, name text, city text)", "create table events (created_at timestamptz)"
    )
    sinks = iter(range(10))
    nodes = [
        re.sub(r"id: out$", lambda _: f"id: out{next(sinks)}", block, flags=re.M)
        for block in blocks(ROOT / "docs" / "postgres.md")
        if block.startswith("- id")
    ]
    text = "\n".join(["name: page", "nodes:", *BEFORE, *nodes, *AFTER])
    plan = plan_text(text, plugins=installed_plugins(), environment={"DATABASE_URL": url})
    assert {"postgres.sink", "std.lookup_join"} <= {node.operator for node in plan.nodes.values()}
