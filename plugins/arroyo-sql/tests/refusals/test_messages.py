"""Every message of the planner is that of some script, with its place: no message is there that nobody has read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sql_queries.case_files import read_queries
from tests.sql_queries.engine import Broken, Engine

from .messages import planner_messages

pytestmark = pytest.mark.once

TESTS = Path(__file__).parents[1]
FOLDERS = (TESTS / "refusals" / "scripts", TESTS / "differential" / "queries")
MESSAGES = list(planner_messages())
SAID = [
    query.refused.partition(" ")[2]
    for folder in FOLDERS
    for path in sorted(folder.glob("*.sql"))
    for query in read_queries(path)
    if query.refused is not None
]
#: What no query is known to bring about: DataFusion, or a check before it, refuses what would.
BEHIND_OTHERS = {
    "FILTER and ORDER BY of {}() are not planned: filter the rows before",
    "{}() does not take these arguments: {}",
    "the operator {} cannot be computed here: write a function",
    "GROUP BY needs a column or an aggregate",
    "cast it to TEXT first, or compute it with functions",
    "columns of type {} cannot be joined: join by parts of them",
    "the table that is looked up has no column {}",
    "{} cannot be planned for a stream: write SELECT with FROM, JOIN, WHERE, GROUP BY and UNION",
    "windows of rows need an event time: declare WATERMARK FOR a column of the table",
    "the column {} cannot be read here: give it a name in a subquery",
    "a cast cannot be computed here: compute it in a subquery",
    "conditions and limits inside of a table's scan are not planned: write them in a query around it",
    "{} has no event time: declare WATERMARK FOR one of its columns",
    "{} is a table in memory, and nothing is inserted into it before it is read",
}
#: Of a script as a whole, below.
OF_SCRIPTS = {"the script has no query: add an INSERT INTO, or a SELECT"}


def test_the_messages_are_found() -> None:
    assert len(MESSAGES) > 100


@pytest.mark.parametrize("message", MESSAGES, ids=[message.place for message in MESSAGES])
def test_a_message_is_that_of_a_script(message) -> None:
    is_said = any(message.pattern.search(said) for said in SAID)
    is_known = message.shown in BEHIND_OTHERS | OF_SCRIPTS
    assert is_said or is_known, f"no script in {FOLDERS[0]} has it: {message.shown}"
    assert not (is_said and is_known), "a script has it now: take it out of the list"


def test_no_message_is_listed_that_is_not_there_any_more() -> None:
    assert {message.shown for message in MESSAGES} >= BEHIND_OTHERS | OF_SCRIPTS


def test_a_script_without_a_query_says_so(tmp_path) -> None:
    outcome = Engine(tmp_path).plan("CREATE VIEW v AS SELECT id FROM orders;")
    assert isinstance(outcome, Broken)
    assert ":1:1: the script has no query: add an INSERT INTO, or a SELECT" in outcome.text


def test_no_refusal_is_without_words_of_what_to_do() -> None:
    """Of those that DataFusion or an operator finds, too: none is its own text of types."""
    raw = ("Utf8", "Int64", "Float64", "Unsupported", "not implemented", "in another way", "Internal error")
    assert [said for said in SAID if any(word in said for word in raw)] == []
