"""`${NAME}` in scripts."""

import pytest

from ..support.scripts import given, read


def query(text, **values):
    found = read(text, **values)
    assert found.mistakes == []
    return found.only.query


class TestValuesInQueries:
    def test_a_value_between_quotes_stays_inside_of_them(self):
        text = query("SELECT '${name}', \"${name}\"", parameters={"name": given("O'Brien \" --")})
        assert text.sql == "SELECT 'O''Brien \" --', \"O'Brien \"\" --\""

    def test_a_number_stands_outside_of_quotes_and_makes_no_comment(self):
        text = query("SELECT 1 -${n}", parameters={"n": given("-5", is_plain=True)})
        assert text.sql == "SELECT 1 - -5 "

    def test_what_is_no_number_and_no_name_is_refused_outside_of_quotes(self):
        found = read("SELECT 1 WHERE ${x}", parameters={"x": given("1 OR true")})
        assert found.mistakes[0].startswith("1:16 the value of ${x} is neither a number nor a plain name")

    def test_a_default_of_the_file_is_any_piece_of_sql(self):
        assert query("SELECT ${x}", parameters={"x": given("a + 1", is_given=False)}).sql == "SELECT a + 1"

    def test_a_backslash_is_refused_where_it_would_escape(self):
        found = read("SELECT E'${x}'", parameters={"x": given("\\'; --")})
        assert "has a backslash" in found.mistakes[0]

    def test_an_unknown_name_is_a_mistake_at_its_place(self):
        found = read("SELECT 1,\n '${lmit}'", parameters={"limit": given("1")})
        assert found.mistakes[0].startswith("2:3 environment variable lmit is not set")

    def test_comments_and_dollar_quotes_are_left_alone(self):
        assert query("SELECT $$ ${x} $$ -- ${y}\n, 1").sql == "SELECT $$ ${x} $$ -- ${y}\n, 1"

    @pytest.mark.parametrize("value", ["1", "a much longer value than its name"])
    def test_places_behind_a_value_are_those_of_the_file(self, value):
        text = query("SELECT '${name}',\n  '${name}' AS b, c", parameters={"name": given(value)})
        at = text.locate(text.sql.index("c", text.sql.index("AS b")))
        assert (at.line, at.column) == (2, 19)
        first = text.locate_in_lines(2, 3)
        assert (first.line, first.column) == (2, 3)


class TestSecrets:
    def test_an_option_knows_what_was_written_for_a_value_of_the_environment(self):
        option = read("CREATE TABLE t WITH (p = 'x-${PW}')", environment={"PW": "geheim"}).only.options["p"]
        assert (option.value, option.written, option.is_secret) == ("x-geheim", "x-${PW}", True)

    def test_a_typed_parameter_is_a_value_of_its_type(self):
        option = read("CREATE TABLE t WITH (p = ${n})", parameters={"n": given("7", is_plain=True)}).only.options["p"]
        assert (option.value, option.is_secret) == (7, False)
