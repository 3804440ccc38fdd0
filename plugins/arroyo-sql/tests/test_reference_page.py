from pathlib import Path

import pytest
from arroyo_sql.planner.session import Session
from arroyo_sql.reference import TABLES, write

from arroyo_core.plugin import installed_plugins

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "sql-reference.md"


def test_the_tables_of_the_page_are_those_of_the_code():
    page = PAGE.read_text(encoding="utf-8")
    assert all(f"<!-- made: {name} -->" in page for name in TABLES)
    assert write(page) == page, "make docs-reference writes it again"


def test_a_table_that_nobody_makes_is_noticed():
    with pytest.raises(KeyError):
        write("<!-- made: nothing -->\n<!-- end -->")


def test_every_function_of_the_page_can_be_called():
    """Its name at least: what is wrong with a call without arguments is never that there is no such function."""
    session = Session(installed_plugins().registry)
    lines = PAGE.read_text(encoding="utf-8").partition("## Functions")[2].splitlines()
    names = {line.split("`")[1].partition("(")[0] for line in lines if line.startswith("| `") and "(" in line}
    assert len(names) > 150
    assert {name for name in names if "Invalid function" in _refusal(session, name)} == set()


def _refusal(session: Session, name: str) -> str:
    try:
        session.query(f"SELECT {name}()")
    except Exception as error:  # DataFusion raises bare ones
        return str(error)
    return ""
