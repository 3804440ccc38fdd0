"""The plans of the examples are those of `snapshots`: `make sql-snapshots` writes them again after a change."""

from __future__ import annotations

from pathlib import Path

import pytest

from arroyo_core.pipeline import plan_file
from arroyo_core.plugin import installed_plugins
from tests.sql_queries.snapshots import FOLDER, ROOT, compiled, examples, snapshot_of

pytestmark = pytest.mark.once

EXAMPLES = examples()


@pytest.mark.parametrize("example", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_the_plan_of_an_example_is_its_snapshot(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert compiled(example) == snapshot_of(example).read_text(encoding="utf-8")


@pytest.mark.parametrize("example", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_a_snapshot_is_the_pipeline_of_its_script(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    plugins = installed_plugins()
    script = plan_file(example, plugins=plugins, environment={}).plan
    yaml = plan_file(snapshot_of(example), plugins=plugins, environment={}).plan
    assert yaml.edges == script.edges
    for name, node in script.nodes.items():
        assert (yaml.nodes[name].operator, yaml.nodes[name].config) == (node.operator, node.config)


def test_every_snapshot_has_an_example() -> None:
    assert {snapshot_of(example) for example in EXAMPLES} == set(FOLDER.rglob("*.yaml"))
