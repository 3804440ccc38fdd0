"""Queries give what DuckDB gives, or are refused with a place: never other rows, and never an error that is not ours.

Those that are refused say so in their files, so that one that becomes possible is seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sql_queries.answers import Duck, Rows, difference
from tests.sql_queries.case_files import Query, read_queries
from tests.sql_queries.checking import EPOCH_ROWS
from tests.sql_queries.engine import Engine, Failed, Outcome, Refused
from tests.sql_queries.tables import make_tables

pytestmark = pytest.mark.once

FILES = sorted((Path(__file__).parent / "queries").glob("*.sql"))
QUERIES = [query for path in FILES for query in read_queries(path)]
#: Some of those that give rows: each epoch restores the state of the one before.
IN_EPOCHS = [query for query in QUERIES if query.refused is None and query.fails is None][::12]
#: Hand-written ones alone.
FEWEST = 300


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return Engine(tmp_path_factory.mktemp("tables"), parallelism=2)


@pytest.fixture(scope="module")
def duck() -> Iterator[Duck]:
    duck = Duck(make_tables())
    yield duck
    duck.close()


@pytest.mark.parametrize("query", QUERIES, ids=[f"{query.group}-{query.name}" for query in QUERIES])
def test_a_query_gives_the_rows_of_duckdb_or_is_refused_with_a_place(query: Query, engine: Engine, duck: Duck) -> None:
    outcome = engine.run(query.sql)
    if query.refused is not None:
        _check_refused(outcome, query.refused)
    elif query.fails is not None:
        assert isinstance(outcome, Failed), outcome
        assert query.fails in outcome.message
    else:
        assert isinstance(outcome, Rows), str(outcome)
        expected = duck.answer(query.duckdb)
        assert expected.count, "a query without any answer proves nothing"
        assert difference(expected, outcome) is None, difference(expected, outcome)


@pytest.mark.parametrize("query", IN_EPOCHS, ids=[f"{query.group}-{query.name}" for query in IN_EPOCHS])
def test_a_query_gives_the_same_rows_in_epochs_of_few_rows(query: Query, tmp_path: Path, duck: Duck) -> None:
    outcome = Engine(tmp_path, parallelism=2, epoch_rows=EPOCH_ROWS).run(query.sql)
    assert isinstance(outcome, Rows), str(outcome)
    assert difference(duck.answer(query.duckdb), outcome) is None


def test_there_are_enough_queries_and_few_are_refused() -> None:
    assert len(QUERIES) >= FEWEST
    assert sum(query.refused is not None for query in QUERIES) < len(QUERIES) / 5


def _check_refused(outcome: Outcome, expected: str) -> None:
    assert isinstance(outcome, Refused), f"it is not refused any more: {outcome}"
    place, _, message = expected.partition(" ")
    assert f"{outcome.line}:{outcome.column}" == place, str(outcome)
    assert message in outcome.message
