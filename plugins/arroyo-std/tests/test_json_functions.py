"""Functions and operators over JSON: beside DuckDB, and what texts that are not JSON, nulls and odd places give."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from arroyo_std.json_functions import JSON_FUNCTIONS, check_path
from arroyo_std.json_operators import PlainSql, plain_sql
from arroyo_std.json_path import parse_path
from arroyo_std.sql import CompiledExpressions, Expression, check_expressions
from arroyo_std.sql_query import check_query
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import Registry
from arroyo_core.errors import ConfigError, DataError

DOCUMENT = r"""{"a": 1, "b": {"c": [1, 2, {"d": "e\n"}]}, "t": "u", "f": 1.50, "n": null, "q": true,
 "big": 9223372036854775807, "bigger": 9223372036854775808, "huge": 1e999, "e": 1e2, "": "empty", "x\"y": 5}"""
KEYS = ("a", "b", "c d")

scalars = st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.integers(-40, 40).map(lambda n: n / 4 + 0.125)
values = st.recursive(
    scalars | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=10,
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    written = json.dumps(draw(values), ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
    return draw(st.sampled_from(["", " ", "\n\t"])) + written


def evaluate(sql: str, *rows: str | None, **columns: list[Any]) -> list[Any]:
    batch = pa.RecordBatch.from_pydict({"x": pa.array(rows, pa.string()), **columns})
    expressions = [Expression(name="found", sql=sql, field="expression")]
    found: list[Any] = check_expressions(expressions, batch.schema, Registry()).evaluate(batch).column(0).to_pylist()
    return found


@cache
def compiled(sql: str) -> CompiledExpressions:
    expressions = [Expression(name="found", sql=sql, field="expression")]
    return check_expressions(expressions, pa.schema({"x": pa.string()}), Registry())


def one(sql: str, text: str | None = DOCUMENT) -> Any:
    (found,) = evaluate(sql, text)
    return found


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def parsed(text: str | None) -> Any:
    return None if text is None else json.loads(text)


SAME_AS_DUCKDB = {
    "x ->> 'a'": "x ->> '$.a'",
    "x ->> 'c d'": """x ->> '$."c d"'""",
    "x -> 'a' ->> 'b'": "x -> '$.a' ->> '$.b'",
    "x ->> 1": "x ->> '$[1]'",
    "x ->> -1": "x ->> '$[#-1]'",
    "x -> 'a' -> 0": "x -> '$.a[0]'",
    "x -> 'b'": "x -> '$.b'",
    "x ? 'a'": "json_exists(x, '$.a')",
    "get_first_json_object(x, '$.a[0].b')": "x -> '$.a[0].b'",
    "json_object_keys(x)": "case when json_type(x) = 'OBJECT' then json_keys(x) end",
    "json_length(x, 'a')": "case when json_type(x, '$.a') = 'ARRAY' then json_array_length(x, '$.a') "
    "when json_type(x, '$.a') = 'OBJECT' then len(json_keys(x, '$.a')) end",
    "json_get_bool(x, 'a')": "case when json_type(x, '$.a') = 'BOOLEAN' then (x ->> '$.a')::bool end",
    "json_get_int(x, 'a')": "case when json_type(x, '$.a') in ('BIGINT', 'UBIGINT') then (x ->> '$.a')::bigint end",
    "json_get_float(x, 'a')": "case when json_type(x, '$.a') in ('BIGINT', 'UBIGINT', 'DOUBLE') "
    "then (x ->> '$.a')::double end",
    "json_get_str(x, 'a')": "case when json_type(x, '$.a') = 'VARCHAR' then x ->> '$.a' end",
    "extract_json(x, '$.a[*]')": "case when json_type(x, '$.a') = 'OBJECT' then x -> '$.a.*' else x -> '$.a[*]' end",
}


@pytest.mark.parametrize("sql", SAME_AS_DUCKDB)
@settings(max_examples=30, deadline=None)
@given(rows=st.lists(st.none() | texts(), min_size=1, max_size=8))
def test_what_is_found_is_what_duckdb_finds(oracle, sql, rows):
    oracle.register("batch", pa.table({"x": pa.array(rows, pa.string())}))
    expected = [found for (found,) in oracle.sql(f"select {SAME_AS_DUCKDB[sql]} from batch").fetchall()]
    found = compiled(sql).evaluate(pa.RecordBatch.from_pydict({"x": pa.array(rows, pa.string())})).column(0).to_pylist()
    if "extract_json" in sql:
        found, expected = (
            [each and [parsed(part) for part in each] for each in listed] for listed in (found, expected)
        )
    if sql.startswith("get_first") or sql == "x -> 'b'":
        found, expected = [parsed(each) for each in found], [parsed(each) for each in expected]
    if "->>" in sql:
        # Objects and arrays are written with or without escapes.
        found, expected = [_loose(each) for each in found], [_loose(each) for each in expected]
    assert found == expected


def _loose(text: str | None) -> Any:
    return json.loads(text) if text is not None and text[:1] in ("{", "[") and text[-1:] in ("}", "]") else text


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("x -> 'b'", r'{"c":[1,2,{"d":"e\n"}]}'),
        ("x -> 't'", '"u"'),
        ("x -> 'f'", "1.50"),
        ("x -> 'n'", "null"),
        ("x ->> 'n'", None),
        ("x ->> 't'", "u"),
        ("x ->> ''", "empty"),
        ("""x ->> 'x"y'""", "5"),
        ("x -> 'b' -> 'c' -> 2 ->> 'd'", "e\n"),
        ("json_get_str(x, 'b', 'c', 2, 'd')", "e\n"),
        ("json_get_json(x, 'b', 'c', -3)", "1"),
        ("json_get_int(x, 'big')", 2**63 - 1),
        ("json_get_int(x, 'bigger')", None),
        ("json_get_int(x, 'f')", None),
        ("json_get_int(x, 'e')", None),
        ("json_get_float(x, 'e')", 100.0),
        ("json_get_float(x, 'huge')", None),
        ("json_get_float(x, 'a')", 1.0),
        ("json_get_int(x, 't')", None),
        ("json_get_array(x, 'b', 'c')", ["1", "2", r'{"d":"e\n"}']),
        ("json_get_array(x, 'b')", None),
        ("json_length(x, 'b', 'c')", 3),
        ("json_length(x, 't')", None),
        ("x ? 'n'", True),
        ("x ? 'none'", False),
        ("json_contains(x, 'b', 'c', 5)", False),
        ("json_contains(x, 'b', 'c', 0)", True),
        ("json_contains(x, 'none', 'c', 0)", False),
        ("json_contains(x, 't', 'c')", False),
        ("json_get_or_empty(x, 'b', 'c', 0)", "1"),
        ("json_get_or_empty(x, 'b', 'none')", ""),
        ("json_as_text(x, 'b')", r'{"c":[1,2,{"d":"e\n"}]}'),
        ("get_json_objects(x, '$.b.c[0:2]')", ["1", "2"]),
        ("extract_json(x, '$.b.c[0, -1].d')", [r'"e\n"']),
        ("extract_json(x, '$[\"t\", ''q'']')", ['"u"', "true"]),
        ("extract_json(x, '$..d')", [r'"e\n"']),
        ("extract_json(x, '$.none')", []),
        ("extract_json_string(x, '$.a')", None),
        ("extract_json_string(x, '$.b.c[2].d')", "e\n"),
        ("(x ->> 'a')::int + 1", 2),
        ("x ->> 'a' = '1' and not x ? 'none'", True),
        ("case when x ? 'a' then x end ->> 't' || '!'", "u!"),
        ("x ->> lower('T')", "u"),
        ("x::text -> 'a'", "1"),
        ("'a -> b' || '?'", "a -> b?"),
    ],
)
def test_what_a_place_gives(sql, found):
    assert one(sql) == found


@pytest.mark.parametrize("text", ["", "nul", "{", '{"a": 1', '{"a": 1} x', '{"a": NaN}', "[1, 2", '{"a": "\\ud800"}'])
def test_a_text_that_is_not_json_gives_null(text):
    assert one("x -> 'a'", text) is None
    assert one("x ->> 0", text) is None
    assert one("json_length(x)", text) is None
    assert one("extract_json(x, '$')", text) is None
    for there in ("x ? 'a'", "json_contains(x, 'a', 'b')", "json_contains(x, 'a', 0, 'b')"):
        assert one(there, text) is False
        assert one(there, None) is None
    assert one("json_get_or_empty(x, 'a')", text) == ""
    assert one("json_get_or_empty(x, 'a')", None) is None


def test_the_last_of_several_values_under_one_name_counts():
    assert one("x ->> 'a'", '{"a": 1, "a": 2}') == "2"
    assert one("json_length(x)", '{"a": 1, "a": 2}') == 1


def test_keys_and_paths_may_be_columns():
    rows = ['{"a": 1, "b": 2}', '{"a": 3}', "[4, 5]", '{"a": 6}']
    assert evaluate("x ->> k", *rows, k=["b", "a", "1", None]) == ["2", "3", "5", None]
    assert evaluate("x ->> i", *rows, i=[0, 0, 0, None]) == [None, None, "4", None]
    assert evaluate("get_first_json_object(x, k)", *rows, k=["$.b", None, "$[-1]", "$"]) == ["2", None, "5", '{"a":6}']
    with pytest.raises(DataError, match=r"the JSON path '\$a' cannot be read"):
        evaluate("get_first_json_object(x, k)", *rows, k=["$.b", None, "$a", "$"])


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("x->>'a'::int", "would cast the key"),
        ("json_get(i, 'a')", "cannot be called with (int64, string)"),
        ("json_get(x)", "json_get(json, key, ...) cannot be called with (string)"),
        ("json_get(x, 1.5)", "cannot be called with (string, double)"),
        ("extract_json(x, 1)", "cannot be called with (string, int64)"),
        ("extract_json(x, 'a')", "does not start with $"),
        ("extract_json(x, '$.a[')", "it ends too early"),
        ("extract_json(x, '$[?@.a > 1]')", "a filter at character 3"),
        ("x ->", "found: the end of the text"),
        ("x -> 'a' b c", "found: b at character 10"),
        ("x ?", "found: ? at character 3"),
        ("x ?| 'a'", "character 3"),
    ],
)
def test_a_wrong_call_is_an_error_at_the_expression(sql, message):
    schema = pa.schema({"x": pa.string(), "i": pa.int64()})
    with pytest.raises(ConfigError) as caught:
        check_expressions([Expression(name="found", sql=sql, field="expressions.found")], schema, Registry())
    assert message in str(caught.value)
    assert caught.value.field == "expressions.found"


def test_queries_have_the_operators_too():
    batch = pa.RecordBatch.from_pydict({"x": ['{"a": 1}', '{"b": 2}', None]})
    query = check_query("SELECT x ->> 'a' AS a FROM input WHERE x ? 'a'", batch.schema, Registry())
    assert query.evaluate(batch).to_pylist() == [{"a": "1"}]


def test_places_of_rewritten_sql_lead_back_to_what_was_written():
    sql = "lower(x) -> 'a' ->> 'b' = missing"
    plain = plain_sql(sql)
    assert plain.sql == "json_as_text(json_get(lower(x) , 'a') , 'b') = missing"
    for word in ("lower", "'a'", "'b'", "missing"):
        assert plain.original_offset(plain.sql.index(word)) == sql.index(word)
    assert plain.original_offset(0) == sql.index("->>")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([*"x()[].,'\"? ", "->", "->>", "::", "json_get(", "case", "end", "1", "--", "$"])))
def test_any_text_is_rewritten_or_left_or_refused(parts):
    sql = "".join(parts)
    try:
        plain = plain_sql(sql)
    except ConfigError:
        plain = PlainSql(sql)
    for place in range(len(plain.sql) + 1):
        assert 0 <= plain.original_offset(place) <= len(sql) + len(plain.sql)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([*"$.[]*'\"\\,:-01a?@ ", "..", "['", "']"])))
def test_any_text_is_a_path_or_an_error(parts):
    path = "$" + "".join(parts)
    mistake = check_path(path)
    if mistake is None:
        assert parse_path(path).find(DOCUMENT) is not None
    else:
        assert repr(path) in mistake


DEEP = [
    "[" * 100_000 + "]" * 100_000,
    '{"a":' * 100_000 + "1" + "}" * 100_000,
    '{"a":' * 100_000,
    '{"b": ' + "[" * 100_000 + "]" * 100_000 + "}",
]


@pytest.mark.parametrize("name", JSON_FUNCTIONS)
@pytest.mark.parametrize("text", DEEP, ids=["arrays", "objects", "cut", "beside"])
def test_a_text_as_deep_as_its_sender_wants_does_not_fail_the_job(name: str, text: str) -> None:
    function = JSON_FUNCTIONS[name]
    place = {"path": "$.a", "key": "a", "": None}[function.place]
    texts = pa.array([text, '{"a": 1}'])
    found = function.evaluate(texts, None if place is None else pa.array([place, place]))
    alone = function.evaluate(texts[1:], None if place is None else pa.array([place]))
    assert found[1] == alone[0]


def test_paths_that_find_more_than_there_is_are_refused() -> None:
    assert parse_path("$" + "..*" * 3).find("[[[1]]]")
    with pytest.raises(ValueError, match=r"has 4 times '\.\.', and at most 3"):
        parse_path("$" + "..*" * 4)
    with pytest.raises(ValueError, match="has 101 steps, and at most 100"):
        parse_path("$" + "[*]" * 101)
