"""Scripts that are wrong are refused with the place of what is wrong, and a message that says what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sql_queries.case_files import Query, read_queries
from tests.sql_queries.engine import Engine, Refused

pytestmark = pytest.mark.once

FILES = sorted((Path(__file__).parent / "scripts").glob("*.sql"))
SCRIPTS = [script for path in FILES for script in read_queries(path)]
FEWEST = 100


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return Engine(tmp_path_factory.mktemp("tables"))


@pytest.mark.parametrize("script", SCRIPTS, ids=[f"{script.group}-{script.name}" for script in SCRIPTS])
def test_a_wrong_script_is_refused_where_it_is_wrong(script: Query, engine: Engine) -> None:
    assert script.refused is not None
    place, _, message = script.refused.partition(" ")
    outcome = engine.plan(script.sql)
    assert isinstance(outcome, Refused), f"it is not refused: {outcome}"
    assert (f"{outcome.line}:{outcome.column}", outcome.message) == (place, message)


def test_there_are_enough_wrong_scripts() -> None:
    assert len(SCRIPTS) >= FEWEST
