from __future__ import annotations

import pyarrow as pa
import pytest
from arroyo_std.sql import Expression, check_expressions

from arroyo_core.api import Registry
from arroyo_core.errors import ConfigError
from arroyo_core.udf import udf

SCHEMA = pa.schema(
    {
        "price": pa.int64(),
        "Name": pa.string(),
        "time": pa.timestamp("us", tz="UTC"),
        "tags": pa.list_(pa.int64()),
        'odd"name': pa.int64(),
    }
)


def check(sql: str, registry: Registry | None = None) -> pa.DataType:
    expression = Expression(name="out", sql=sql, field="predicate")
    return check_expressions([expression], SCHEMA, registry or Registry()).schema.field(0).type


MISTAKES = [
    ("price >", "not a SQL expression: expected: an expression, found: the end of the text"),
    ("price > 1; select 1", "not a SQL expression: expected: end of expression, found: ; at character 10"),
    ("price, Name", "not a SQL expression: expected: end of expression, found: , at character 6"),
    ("price\n+ *", "not a SQL expression: expected: an expression, found: * at line 2, character 3"),
    ("price > 1 order by 1", "not a SQL expression: expected: end of expression, found: order at character 11"),
    ("'abc", "not a SQL expression: unterminated string literal at character 1"),
    ("", "the SQL expression is empty"),
    ("sum(price) > 1", "an aggregate function needs many rows; use a window or an aggregate operator"),
    ("count(*)", "an aggregate function needs many rows; use a window or an aggregate operator"),
    ("row_number() over ()", "a window function needs many rows; use a window operator"),
    ("(select 1)", "a subquery cannot be used here; an expression sees the columns of one row"),
    ("exists (select 1)", "a subquery cannot be used here; an expression sees the columns of one row"),
    ("price in (select 1)", "a subquery cannot be used here; an expression sees the columns of one row"),
    ("(select max(price) from bids)", "an expression cannot read tables; it sees the columns of one row"),
    ("(select price from __stream)", "an expression cannot read tables; it sees the columns of one row"),
    ("unnest(tags)", "unnest makes many rows of one; use std.unnest"),
    ("price + $1", "a placeholder such as $1 has no value here"),
    ("price as cost", "an expression has no AS; its name is given beside it"),
    ("null", "the expression is NULL, without a type; cast it to one"),
    ("price + Name", "cannot coerce arithmetic expression Int64 + Utf8 to valid types"),
    ("price = 'abc'", "cannot cast string 'abc' to value of Int64 type"),
    ("1 / 0", "divide by zero"),
    ("nosuchfunction(price)", "no function 'nosuchfunction'"),
]


@pytest.mark.parametrize(("sql", "message"), MISTAKES)
def test_mistakes_are_explained(sql, message):
    with pytest.raises(ConfigError) as caught:
        check(sql)
    assert caught.value.message == message
    assert caught.value.field == "predicate"
    assert caught.value.value == sql


def test_a_text_may_have_lines_even_such_as_plans_have():
    assert check("\"Name\" <> 'a\nb'") == pa.bool_()
    assert check("\"Name\" || '\nWindowAggExec: x\n  Subquery:'") == pa.string()


@pytest.mark.parametrize(("sql", "message"), MISTAKES)
def test_mistakes_among_others_are_explained_at_their_own_field(sql, message):
    written = {"first": "price + 1", "wrong": sql, "also_wrong": "price +", "last": "price * 2"}
    expressions = [Expression(name=name, sql=each, field=f"expressions.{name}") for name, each in written.items()]
    with pytest.raises(ConfigError) as caught:
        check_expressions(expressions, SCHEMA, Registry())
    assert caught.value.message == message
    assert caught.value.field == "expressions.wrong"
    assert caught.value.value == sql


def test_arguments_that_only_the_function_can_judge_are_checked_at_plan_time():
    with pytest.raises(ConfigError, match="'fortnite'"):
        check("date_trunc('fortnite', time)")


@pytest.mark.parametrize(
    ("sql", "name", "suggestion"),
    [
        ("prise > 1", "prise", "price"),
        ("PRICE > 1", "PRICE", "price"),
        ("name = 'x'", "name", "Name"),
        ('"naame"', "naame", "Name"),
        ("bids.price > 1", "bids.price", "price"),
        ("zzz", "zzz", None),
    ],
)
def test_an_unknown_column_gets_the_columns_and_the_nearest(sql, name, suggestion):
    with pytest.raises(ConfigError) as caught:
        check(sql)
    assert caught.value.message == f"no column {name!r}"
    assert caught.value.allowed == tuple(SCHEMA.names)
    assert caught.value.suggestion == suggestion


def test_a_misspelt_function_gets_a_suggestion():
    with pytest.raises(ConfigError) as caught:
        check("uper(Name)")
    assert caught.value.suggestion == "upper"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("price", pa.int64()),
        ('"odd""name"', pa.int64()),
        ("time - interval '1 minute'", pa.timestamp("us", tz="UTC")),
        ("now()", pa.timestamp("ns", tz="UTC")),
        ("cast(price as varchar)", pa.string()),
        ("tags[1]", pa.int64()),
        ("case when price > 1 then Name end", pa.string()),
        ("price -- with a remark", pa.int64()),
    ],
)
def test_expressions_are_typed_without_data(sql, expected):
    assert check(sql) == expected


@udf
def doubled(number: int) -> int:
    return number * 2


def test_functions_of_the_registry_can_be_called():
    registry = Registry()
    registry.add_udf(doubled)
    assert check("doubled(price) + 1", registry) == pa.int64()
    with pytest.raises(ConfigError, match="no function 'doubled'"):
        check("doubled(price)")


WORDS = pa.schema(
    {
        "user": pa.struct({"id": pa.int64(), "name": pa.string()}),
        "interval": pa.int64(),
        "user-id": pa.int64(),
        "id": pa.int64(),
    }
)


@pytest.mark.parametrize(
    ("sql", "columns", "fixed"),
    [
        ("user.id > 5", "column 'user' must be in double quotes, \"user\"", '"user".id > 5'),
        ("upper(user.name) = 'user.id'", "column 'user' must", "upper(\"user\".name) = 'user.id'"),
        ("interval > 1 AND id > 2", "column 'interval' must", '"interval" > 1 AND id > 2'),
        ("interval + user.id", "columns 'user', 'interval' must", '"interval" + "user".id'),
        ("user-id + 1", "column 'user-id' must .*: it is not a plain word", '"user-id" + 1'),
        ("user.missing", "column 'user' must", '"user".missing'),
    ],
)
def test_a_column_that_has_to_be_quoted_is_named_with_the_corrected_expression(sql, columns, fixed):
    with pytest.raises(ConfigError, match=columns) as caught:
        check_expressions([Expression(name="out", sql=sql, field="predicate")], WORDS, Registry())
    assert caught.value.suggestion == fixed
    assert caught.value.field == "predicate"


def test_a_field_of_a_quoted_column_that_is_not_there_is_named():
    with pytest.raises(ConfigError, match="field missing not found in struct"):
        check_expressions([Expression(name="out", sql='"user".missing', field="predicate")], WORDS, Registry())
