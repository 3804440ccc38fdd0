"""SQL that would take the process down, or for ever."""

from __future__ import annotations

import pyarrow as pa
import pytest
from arroyo_std.sql import Expression, check_expressions
from arroyo_std.sql_query import check_query

from arroyo_core.api import Registry
from arroyo_core.errors import ConfigError

SCHEMA = pa.schema({"a": pa.int64()})


def check(sql: str) -> None:
    check_expressions([Expression(name="x", sql=sql, field="predicate")], SCHEMA, Registry())


@pytest.mark.parametrize("sql", ["+".join(["a"] * 20_000), " and ".join(["a > 1"] * 5_000), "- " * 3_000 + "a"])
def test_too_many_operators_are_refused_before_they_reach_the_parser(sql: str) -> None:
    with pytest.raises(ConfigError, match="ARROYO_MAX_EXPRESSION_OPERATORS") as caught:
        check(sql)
    assert caught.value.field == "predicate"
    with pytest.raises(ConfigError, match="ARROYO_MAX_EXPRESSION_OPERATORS") as caught:
        check_query(f"select {sql} as x from input", SCHEMA, Registry())
    assert caught.value.field == "query"


def test_brackets_that_are_too_deep_are_said_so() -> None:
    with pytest.raises(ConfigError, match="nested too deep"):
        check("(" * 10_000 + "a" + ")" * 10_000)


def test_sql_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARROYO_MAX_EXPRESSION_CHARS", "10")
    with pytest.raises(ConfigError, match="at most 10 characters"):
        check("a + 1 + 1 + 1")


def test_a_long_list_and_a_long_text_are_no_chain() -> None:
    check(f"a in ({', '.join(str(number) for number in range(5_000))})")
    check(f"'{'+' * 5_000}' = 'x'")
