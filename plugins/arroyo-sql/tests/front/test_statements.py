"""Scripts, read statement by statement."""

import pyarrow as pa
import pytest
from arroyo_sql.column_types import SIMPLE, sql_type, type_name
from arroyo_sql.script import Bundle, Insert, Setting, Table, View

from ..support.scripts import read


def column_type(text):
    found = read(f"CREATE TABLE t (c {text})")
    assert found.mistakes == []
    return found.only.columns[0].type


class TestStatements:
    def test_each_statement_is_read_with_its_place(self):
        found = read(
            "-- a script\nCREATE TABLE t (a INT) WITH (connector = 'x');\n"
            "CREATE VIEW v (b) AS SELECT a FROM t;\n"
            "INSERT INTO t (a) SELECT b FROM v; SELECT 1;\n"
            "SET checkpoint.interval = INTERVAL '10' SECOND;\n"
            "CREATE FUNCTION f FROM 'x.whl' WITH (sha256 = 'abc');"
        )
        assert found.mistakes == []
        table, view, insert, query, setting, bundle = found.script.statements
        assert isinstance(table, Table)
        assert (table.at.line, table.at.column) == (2, 14)
        assert isinstance(view, View)
        assert (view.columns, view.query.sql) == (("b",), "SELECT a FROM t")
        assert isinstance(insert, Insert)
        assert (insert.target, insert.columns, insert.query.at.column) == ("t", ("a",), 19)
        assert query.target is None
        assert isinstance(setting, Setting)
        assert (setting.name, setting.value) == ("checkpoint.interval", "10s")
        assert isinstance(bundle, Bundle)
        assert (bundle.name, bundle.url.value, bundle.options["sha256"].value) == ("f", "x.whl", "abc")

    def test_unquoted_names_are_lower_case_and_quoted_ones_exact(self):
        table = read('CREATE TABLE Bids (Price INT, "Item ""A""" INT, `B c` INT)').only
        assert table.name == "bids"
        assert [column.name for column in table.columns] == ["price", 'Item "A"', "B c"]

    def test_semicolons_in_texts_and_comments_end_nothing(self):
        found = read("SELECT ';' /* ; /* nested ; */ */ -- ;\n; SELECT $x$;$x$; SELECT E'\\';'")
        assert [statement.query.sql for statement in found.script.statements] == [
            "SELECT ';'",
            "SELECT $x$;$x$",
            "SELECT E'\\';'",
        ]

    def test_a_query_in_brackets_is_told_from_columns(self):
        assert read("INSERT INTO t (SELECT 1)").only.columns == ()
        assert read("INSERT INTO t (a) (SELECT 1)").only.columns == ("a",)

    def test_options_are_texts_numbers_booleans_intervals_and_lists(self):
        options = read(
            "CREATE TABLE t WITH ('a.b' = 'it''s', c.d = -2, e = 1.5, f = TRUE, g = INTERVAL '1 hour 30 minutes', "
            "h = ['x', 2], i = $$raw$$)"
        ).only.options
        assert {key: option.value for key, option in options.items()} == {
            "a.b": "it's",
            "c.d": -2,
            "e": 1.5,
            "f": True,
            "g": "90m",
            "h": ["x", 2],
            "i": "raw",
        }
        assert (options["c.d"].key_at.column, options["c.d"].at.column) == (39, 45)

    def test_columns_have_keys_metadata_and_expressions(self):
        table = read(
            "CREATE TABLE t (id BIGINT, ts TIMESTAMP(3) NOT NULL, part INT METADATA FROM 'partition', topic TEXT "
            "METADATA,\n"
            " d DATE GENERATED ALWAYS AS (CAST(ts AS DATE)) STORED, WATERMARK FOR ts AS ts - INTERVAL '5 seconds',\n"
            " PRIMARY KEY (id) NOT ENFORCED) PARTITIONED BY (d) WITH (connector = 'x')"
        ).only
        by_name = {column.name: column for column in table.columns}
        assert table.primary_key == ("id",)
        assert by_name["id"].primary_key
        assert by_name["ts"].not_null
        assert (by_name["part"].metadata, by_name["topic"].metadata) == ("partition", "topic")
        assert by_name["d"].generated.sql == "CAST(ts AS DATE)"
        assert (by_name["d"].generated.at.line, by_name["d"].generated.at.column) == (2, 30)
        assert table.watermark.expression.sql == "ts - INTERVAL '5 seconds'"
        assert table.options["partition_by"].value == ["d"]

    def test_a_table_without_declared_columns_may_name_those_of_its_source(self):
        assert read("CREATE TABLE t (WATERMARK FOR date_time) WITH (connector = 'nexmark')").mistakes == []


class TestTypes:
    @pytest.mark.parametrize("name", sorted(SIMPLE))
    def test_every_simple_type_is_read(self, name):
        assert column_type(name.upper()) == SIMPLE[name]

    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ("BIGINT UNSIGNED", pa.uint64()),
            ("DOUBLE PRECISION", pa.float64()),
            ("VARCHAR(20)", pa.string()),
            ("DECIMAL(10, 2)", pa.decimal128(10, 2)),
            ("NUMERIC(5)", pa.decimal128(5, 0)),
            ("TIMESTAMP", pa.timestamp("us", "UTC")),
            ("TIMESTAMP(3) WITH TIME ZONE", pa.timestamp("ms", "UTC")),
            ("TIMESTAMP(9)", pa.timestamp("ns", "UTC")),
            ("TIMESTAMP_LTZ(0)", pa.timestamp("s", "UTC")),
            ("INT[][]", pa.list_(pa.list_(pa.int32()))),
            ("ARRAY<TEXT>", pa.list_(pa.string())),
            ("MAP<TEXT, BIGINT>", pa.map_(pa.string(), pa.int64())),
            (
                'STRUCT<a INT, "B" ARRAY<STRUCT<c TEXT>>>',
                pa.struct([("a", pa.int32()), ("B", pa.list_(pa.struct([("c", pa.string())])))]),
            ),
            ("ROW(a INT)", pa.struct([("a", pa.int32())])),
        ],
    )
    def test_types_with_parts_are_read(self, text, kind):
        assert column_type(text) == kind

    @pytest.mark.parametrize("name", sorted(SIMPLE))
    def test_a_type_that_is_printed_is_read_as_the_same(self, name):
        for kind in (SIMPLE[name], pa.list_(SIMPLE[name]), pa.struct([("a", SIMPLE[name])])):
            assert column_type(sql_type(kind)) == kind

    def test_connectors_name_types_their_own_way(self):
        kind = pa.struct([("a", pa.list_(pa.decimal128(4, 1))), ("t", pa.timestamp("ms", "UTC"))])
        assert type_name(kind) == "struct<a: list<decimal(4,1)>, t: timestamp_ms>"


class TestMistakes:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("SELEC 1", "1:1 expected a statement, not 'SELEC' -> SELECT"),
            ("DROP TABLE x", "1:1 a script declares all it needs: leave the CREATE statement out instead of DROP"),
            ("CREATE TABEL t (a INT)", "1:8 expected TABLE, VIEW or FUNCTION behind CREATE, not 'TABEL' -> TABLE"),
            ("CREATE TABLE t (a BIGNIT)", "1:19 there is no type 'BIGNIT' -> BIGINT"),
            ("CREATE TABLE t (a UUID)", "1:19 there is no type UUID: write TEXT"),
            (
                "CREATE TABLE t (a INTERVAL)",
                "1:19 a column cannot be an INTERVAL: write BIGINT for a number of units, or TEXT",
            ),
            ("CREATE TABLE t (a DECIMAL(50, 2))", "1:27 50 is too large here: at most 38"),
            ("CREATE TABLE t (a INT, A INT)", "1:24 column 'a' is declared twice: first in line 1, column 17"),
            (
                "CREATE TABLE t (abc INT, PRIMARY KEY (abx))",
                "1:39 the PRIMARY KEY names the column 'abx', which the table does not have -> abc",
            ),
            ("CREATE TABLE t (a INT NOT NUL)", "1:27 expected NULL behind NOT, not 'NUL' -> NULL"),
            ("CREATE TABLE t (a AS b)", "1:19 a computed column needs its type: a TYPE GENERATED ALWAYS AS (...)"),
            ("CREATE TABLE t WITH (a = kafka)", "1:26 a value that is a text stands in quotes: 'kafka' -> 'kafka'"),
            ("CREATE TABLE t WITH (a = 1, a = 2)", "1:29 option 'a' is written twice: first in line 1, column 22"),
            ("CREATE TABLE t", "1:14 table 't' has neither columns nor options nor a query"),
            ("INSERT t SELECT 1", "1:8 expected INTO behind INSERT, not 't'"),
            ("INSERT INTO t", "1:14 expected a query, not the end of the statement"),
            ("SET a", "1:6 expected = behind the name of the setting, not the end of the statement"),
            ("SET a = INTERVAL '3 fortnights'", "1:18 '3 fortnights' is not an interval"),
            ("SELECT 'abc", "1:8 a text that begins here has no end: a ' is missing"),
            ("SELECT 1 /* x", "1:10 a comment that begins here has no end: */ is missing"),
            ("CREATE VIEW v SELECT 1", "1:15 expected AS and a query behind the name of a view, not 'SELECT'"),
            ("SET a = 1 SELECT 1", "1:11 a ';' is missing before SELECT"),
            ("SELECT ${x", "1:8 '${' begins no reference: write ${NAME} or ${NAME:-default}"),
        ],
    )
    def test_a_mistake_says_what_and_where(self, text, expected):
        assert read(text).mistakes[0].startswith(expected)

    def test_several_mistakes_are_found_at_once(self):
        found = read(
            "CREATE TABLE a (x BIGNIT, y INT, z INT w) WITH (connector = kafka);\nDROP TABLE a;\n"
            "CREATE VIEW v AS SELECT 1;\nSET x = y;"
        )
        assert [mistake.split(" ")[0] for mistake in found.mistakes] == ["1:19", "1:40", "1:61", "2:1", "4:9"]
        assert [type(statement) for statement in found.script.statements] == [View]

    @pytest.mark.parametrize(
        "text",
        [
            "CREATE TABLE t (a " + "ARRAY<" * 10_000,
            "CREATE TABLE t (a INT" + "[]" * 10_000 + ")",
            "CREATE TABLE t WITH (a = " + "[" * 10_000,
            "SET a = " + "9" * 100_000,
            "/*" * 50_000,
            "(" * 50_000,
            "\x00\ufeff\x07",
        ],
    )
    def test_what_is_too_deep_or_no_text_is_a_mistake_and_no_crash(self, text):
        assert read(text).mistakes or text.startswith("(")
