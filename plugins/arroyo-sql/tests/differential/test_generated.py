"""Queries made at random give what DuckDB gives, or are refused with a place; `make sql-queries` checks thousands."""

from __future__ import annotations

from pathlib import Path

import pytest

from arroyo_core.pipeline.planner import PlannedPipeline
from tests.sql_queries.answers import Rows
from tests.sql_queries.checking import Checked, Checker, Verdict
from tests.sql_queries.engine import Broken, Engine
from tests.sql_queries.generator import make_query
from tests.sql_queries.runs import Tally, check_part
from tests.sql_queries.shrinking import shrink
from tests.sql_queries.syntax import Dialect, Expr, Query, Select, Type

pytestmark = pytest.mark.once

SEED = 1
COUNT = 100


@pytest.fixture(scope="module")
def tally() -> Tally:
    return check_part(SEED, 0, COUNT)


def test_no_query_of_a_fixed_seed_does_harm(tally: Tally) -> None:
    assert [f"{finding.verdict.value}: {finding.sql}\n{finding.text}" for finding in tally.findings] == []


def test_most_queries_are_answered(tally: Tally) -> None:
    assert tally.count == COUNT
    assert tally.verdicts[Verdict.EQUAL] > COUNT * 0.6
    assert tally.verdicts[Verdict.SKIPPED] < COUNT * 0.05


def test_a_query_is_the_same_for_the_same_seed_and_number() -> None:
    texts = [[make_query(seed, number).text(Dialect.OURS) for number in range(40)] for seed in (5, 5, 6)]
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]


@pytest.mark.parametrize(
    ("written", "operator"),
    [
        ("lag(", "std.neighbors"),
        ("lead(", "std.neighbors"),
        ("unnest(", "std.unnest"),
        (" ->> ", "std.project"),
        ("json_get_int(", "std.project"),
        ("seconds' AND ", "std.interval_join"),
    ],
)
def test_queries_of_each_kind_are_made_and_planned(written: str, operator: str, tmp_path: Path) -> None:
    texts = [make_query(SEED, number).text(Dialect.OURS) for number in range(200)]
    engine = Engine(tmp_path)
    plans = [engine.plan(text) for text in texts if written in text][:8]
    planned = [plan for plan in plans if isinstance(plan, PlannedPipeline)]
    assert len(planned) > len(plans) / 2
    assert any(node.operator == operator for plan in planned for node in plan.plan.nodes.values())


def test_a_wrong_answer_is_found_and_made_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an engine that loses a row of each query that calls upper()."""
    checker = Checker(tmp_path)
    run = Engine.run

    def lossy(engine: Engine, text: str) -> object:
        outcome = run(engine, text)
        if isinstance(outcome, Rows) and "upper(" in text:
            return Rows(outcome.names, dict(list(outcome.count.items())[1:]))
        return outcome

    monkeypatch.setattr(Engine, "run", lossy)
    number = next(number for number in range(1_000) if "upper(" in make_query(SEED, number).text(Dialect.OURS))
    query = make_query(SEED, number)
    smallest = shrink(query, lambda each: "upper(" in each.text(Dialect.OURS) and _answers(checker, each))
    assert checker.check(smallest).verdict is Verdict.WRONG
    assert len(smallest.text(Dialect.OURS)) < len(query.text(Dialect.OURS))
    checker.close()


def test_an_error_that_is_not_ours_is_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checker = Checker(tmp_path)
    monkeypatch.setattr(Engine, "plan", lambda engine, text: Broken("KeyError"))
    assert checker.check(make_query(SEED, 0)) == Checked(Verdict.BROKEN, "KeyError")
    checker.close()


def test_a_query_is_made_as_small_as_it_stays_wrong() -> None:
    query = next(
        query
        for number in range(100)
        if isinstance(query := make_query(SEED, number), Select) and query.where is not None and len(query.outputs) > 1
    )
    smallest = shrink(query, lambda each: isinstance(each, Select))
    assert isinstance(smallest, Select)
    assert smallest.where is None
    assert len(smallest.outputs) == 1
    assert not smallest.outputs[0].value.args


def _answers(checker: Checker, query: Query) -> bool:
    return checker.check(query).verdict is Verdict.WRONG


def test_an_expression_knows_whether_it_depends_on_a_row() -> None:
    column = Expr(Type.INT, "t1.a")
    assert Expr(Type.INT, "({0} + 1)", (column,)).has_columns
    assert not Expr(Type.FLOAT, "0.5").has_columns


def test_a_fault_of_an_operator_is_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise AttributeError("no such thing")

    monkeypatch.setattr("arroyo_std.filter.Filter.output_schema", fail)
    outcome = Engine(tmp_path).plan("SELECT n FROM numbers WHERE n > 0")
    assert isinstance(outcome, Broken)
    assert "no such thing" in outcome.text
