from __future__ import annotations

import os

import pytest
from arroyo_console.errors import ConsoleError, TooManyError
from arroyo_console.planning import texts
from arroyo_console.planning.texts import Texts, TextSettings, graph_of, graph_of_run
from arroyo_console.values import Language


@pytest.fixture
def looked_at(tmp_path):
    return Texts(scratch=tmp_path / "scratch", settings=TextSettings(), environment=os.environ)


def test_more_texts_than_may_wait_are_refused_at_once(looked_at, monkeypatch):
    monkeypatch.setattr(texts, "PATIENCE_S", 0.01)
    for _ in range(texts.PROCESSES):
        looked_at._slots.acquire()
    with pytest.raises(TooManyError, match="ask again later"):
        looked_at.graph("name: a", Language.YAML)
    for _ in range(texts.PROCESSES + texts.WAITING):
        looked_at._queue.acquire()
    monkeypatch.setattr(texts, "PATIENCE_S", 1e6)
    with pytest.raises(TooManyError, match="ask again later"):
        looked_at.graph("name: a", Language.YAML)


def test_a_text_is_removed_after_it_was_looked_at_and_only_this_user_could_read_it(looked_at, tmp_path):
    with looked_at.written("SELECT 1", Language.SQL) as path:
        assert path.name == "pipeline.sql"
        assert path.stat().st_mode & 0o077 == 0
        assert path.read_text() == "SELECT 1"
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_plan_that_is_known_is_not_made_again(looked_at, monkeypatch):
    asked = []
    monkeypatch.setattr(
        Texts, "_run", lambda self, *args, **options: asked.append(args) or {"plan": None, "problems": []}
    )
    for text in ("name: a", "name: a", "name: b", "name: a"):
        looked_at.graph(text, Language.YAML)
    assert len(asked) == 2


def test_what_prints_no_document_is_an_error_with_its_last_line(looked_at, tmp_path):
    with pytest.raises(ConsoleError, match="there is no command"):
        looked_at._json(["nothing-of-the-kind"], seconds=60)
    with pytest.raises(ConsoleError, match="not done within"):
        looked_at._json(["plugins"], seconds=0.001)


def test_a_secret_in_a_text_that_cannot_be_planned_is_a_problem_too():
    text = "name: a\nnodes: [}\n# https://me:hunter2-and-more@host\n"
    (problem,) = texts._secrets_in(text, ())
    assert (problem.line, "hunter2" in problem.message) == (3, False)


def test_graphs_of_plans_and_of_runs_have_the_same_shape():
    node = {"id": "a", "operator": "std.x", "parallelism": 2, "is_source": True, "is_sink": True}
    plan = {
        "name": "p",
        "nodes": [node],
        "edges": [],
        "chains": [{"id": 0, "nodes": ["a"], "parallelism": 2, "wave": 0}],
    }
    (of_run,) = graph_of_run(plan).nodes
    shown = {
        "details": [{"label": "url", "text": "s3://me:hunter2-and-more@b"}],
        "guarantee": {"level": "x", "reason": "y"},
    }
    output = {"output": {"columns": [{"name": "c", "type": "int64", "nullable": False}], "event_time": None}}
    (of_plan,) = graph_of({"plan": {**plan, "nodes": [{**node, **shown, **output}]}}).nodes
    assert (of_run.chain, of_run.wave, of_run.parallelism) == (of_plan.chain, of_plan.wave, of_plan.parallelism)
    assert "hunter2" not in of_plan.details[0].text
