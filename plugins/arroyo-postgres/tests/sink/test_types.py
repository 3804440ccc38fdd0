"""Values of every type, in a table that is made for them and in tables that were there, read back by another client."""

from __future__ import annotations

import datetime
import math
import uuid
from decimal import Decimal
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from arroyo_postgres.sink.texts import encode_csv
from arroyo_postgres.sink.types import holds, sql_type
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.errors import DataError, OperatorError

from .support import Database

UTC = datetime.UTC
NAN, INF = float("nan"), float("inf")
DAY, TIME = datetime.date(2024, 2, 29), datetime.time(23, 59, 59, 999999)
MOMENT = datetime.datetime(2024, 2, 29, 1, 2, 3, 456789)
OLD = datetime.datetime(1, 1, 1)
ZURICH = ZoneInfo("Europe/Zurich")

#: The type, values, the type of the column that is made, and what psycopg reads where that is another value.
TYPES = {
    "bool": (pa.bool_(), [True, False], "boolean", None),
    "int8": (pa.int8(), [-128, 127], "smallint", None),
    "uint8": (pa.uint8(), [0, 255], "smallint", None),
    "int16": (pa.int16(), [-(2**15), 2**15 - 1], "smallint", None),
    "uint16": (pa.uint16(), [2**16 - 1], "integer", None),
    "int32": (pa.int32(), [-(2**31), 2**31 - 1], "integer", None),
    "uint32": (pa.uint32(), [2**32 - 1], "bigint", None),
    "int64": (pa.int64(), [-(2**63), 2**63 - 1], "bigint", None),
    "uint64": (pa.uint64(), [2**64 - 1], "numeric(20,0)", [Decimal(2**64 - 1)]),
    "float16": (pa.float16(), [1.5, INF], "real", None),
    "float32": (pa.float32(), [1.5, -0.0, INF, -INF, 1.401298464324817e-45], "real", [1.5, -0.0, INF, -INF, 1e-45]),
    "float64": (pa.float64(), [0.1, -0.0, 1e308, 5e-324, INF, -INF], "double precision", None),
    "decimal": (pa.decimal128(10, 3), [Decimal("-1234567.891"), Decimal("0.000")], "numeric(10,3)", None),
    "large decimal": (pa.decimal256(70, 2), [Decimal("9" * 68 + ".99")], "numeric(70,2)", None),
    "round decimal": (pa.decimal128(5, -2), [Decimal("12300")], "numeric(7,0)", None),
    "string": (pa.string(), ["", "NULL", '"', "a,b\r\n\\N\t'", "\\.", "Zürich 🐟", " "], "text", None),
    "large_string": (pa.large_string(), ["x"], "text", None),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["x", "y", "x"], "text", None),
    "binary": (pa.binary(), [b"", b"\0\xff\\x", bytes(range(256))], "bytea", None),
    "large_binary": (pa.large_binary(), [b"ab"], "bytea", None),
    "fixed binary": (pa.binary(2), [b"a\0"], "bytea", None),
    "date32": (pa.date32(), [DAY, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)], "date", None),
    "date64": (pa.date64(), [DAY], "date", None),
    "time32": (pa.time32("s"), [datetime.time(1, 2, 3)], "time without time zone", None),
    "time64": (pa.time64("us"), [TIME, datetime.time(0)], "time without time zone", None),
    "timestamp s": (pa.timestamp("s"), [datetime.datetime(1960, 1, 1)], "timestamp without time zone", None),
    "timestamp us": (pa.timestamp("us"), [MOMENT, OLD], "timestamp without time zone", None),
    "timestamp ns": (pa.timestamp("ns"), [MOMENT], "timestamp without time zone", None),
    "timestamp utc": (
        pa.timestamp("us", "UTC"),
        [MOMENT.replace(tzinfo=UTC)],
        "timestamp with time zone",
        None,
    ),
    "timestamp zone": (
        pa.timestamp("us", "Europe/Zurich"),
        [MOMENT.replace(tzinfo=ZURICH)],
        "timestamp with time zone",
        None,
    ),
    "duration": (
        pa.duration("us"),
        [datetime.timedelta(days=-3, microseconds=1), datetime.timedelta(0)],
        "interval",
        None,
    ),
    "null": (pa.null(), [None], "text", None),
    "list of int": (pa.list_(pa.int64()), [[1, None, -3], []], "bigint[]", None),
    "list of text": (pa.list_(pa.string()), [["", 'a"b', "c\\d", "NULL", None, "{,}"], [" "]], "text[]", None),
    "list of float": (pa.list_(pa.float64()), [[0.1, INF]], "double precision[]", None),
    "list of bytes": (pa.large_list(pa.binary()), [[b"\0\\", b""]], "bytea[]", None),
    "list of time": (
        pa.list_(pa.timestamp("us", "UTC")),
        [[MOMENT.replace(tzinfo=UTC)]],
        "timestamp with time zone[]",
        None,
    ),
    "fixed list": (pa.list_(pa.int32(), 2), [[1, 2], [3, None]], "integer[]", None),
    "list of list": (pa.list_(pa.list_(pa.int64())), [[[1, 2], [3, None]]], "bigint[]", None),
    "list of bool": (pa.list_(pa.bool_()), [[True, False, None]], "boolean[]", None),
    "struct": (pa.struct({"a": pa.int64(), "b": pa.list_(pa.string())}), [{"a": 1, "b": ["x", None]}], "jsonb", None),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1)]], "jsonb", [{"a": 1}]),
}


def batch(kind, values):
    return pa.RecordBatch.from_arrays(
        [pa.array(range(len(values)), pa.int64()), pa.array(values, kind)],
        schema=pa.schema([pa.field("id", pa.int64()), pa.field("v", kind)]),
    )


@pytest.mark.server
@pytest.mark.parametrize("name", TYPES)
def test_values_come_back_as_they_were(database: Database, name):
    kind, values, column, expected = TYPES[name]
    # Sliced, as a batch of a stream may be.
    rows = batch(kind, [values[0], *values, None])
    fields = {"mode": "upsert", "keys": ["id"], "create_table": True}
    with database.harness(rows.schema, **fields) as life:
        life.process(rows.slice(1))
        life.commit(life.checkpoint())
    found = [value for (value,) in database.execute("select v from totals order by id")]
    wanted = [*(expected or values), None]
    if pa.types.is_timestamp(kind) and kind.tz:
        found = [value and value.astimezone(UTC) for value in found]
        wanted = [value and value.astimezone(UTC) for value in wanted]
    assert found == wanted
    assert [math.copysign(1, value) for value in found if isinstance(value, float)] == [
        math.copysign(1, value) for value in wanted if isinstance(value, float)
    ]
    assert database.execute(
        "select format_type(atttypid, atttypmod) from pg_attribute "
        "where attrelid = 'totals'::regclass and attname = 'v'"
    ) == [(column,)]


@pytest.mark.server
def test_nan_is_nan(database: Database):
    for table, column in (("f", "float8"), ("r", "real"), ("n", "numeric"), ("a", "float8[]")):
        database.execute(f"create table {table} (id bigint, v {column})")
        kind = pa.float32() if column == "real" else pa.float64()
        rows = batch(pa.list_(kind), [[NAN]]) if column.endswith("[]") else batch(kind, [NAN])
        database.write(rows, table=table, incarnation=table)
        ((text,),) = database.execute(f"select v::text from {table}")
        assert text.strip("{}") == "NaN"


@pytest.mark.server
def test_a_text_is_whatever_the_column_reads(database: Database):
    database.execute(
        "create type mood as enum ('sad', 'happy')",
        "create domain code as varchar(3)",
        "create table totals (id bigint, u uuid, j jsonb, m mood, c code, i inet)",
    )
    names = {"u": str(uuid.UUID(int=7)), "j": '{"a": [1, null]}', "m": "happy", "c": "abc", "i": "10.0.0.1"}
    rows = pa.RecordBatch.from_pylist([{"id": 1, **names}, {"id": 2}])
    database.write(rows)
    assert database.execute("select u::text, j, m::text, c, host(i) from totals order by id") == [
        (str(uuid.UUID(int=7)), {"a": [1, None]}, "happy", "abc", "10.0.0.1"),
        (None, None, None, None, None),
    ]


@pytest.mark.server
def test_a_time_without_a_zone_is_utc_where_the_column_has_one(database: Database):
    database.execute("create table totals (id bigint, v timestamptz)", "set timezone = 'Asia/Tokyo'")
    database.write(batch(pa.timestamp("us"), [MOMENT]))
    ((found,),) = database.execute("select v at time zone 'UTC' from totals")
    assert found == MOMENT


@pytest.mark.server
@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (pa.list_(pa.list_(pa.int64())), [[1], [2, 3]], "malformed array literal|sub-arrays"),
        (pa.struct({"a": pa.float64()}), {"a": NAN}, "a value that JSON does not have"),
    ],
)
def test_a_value_that_cannot_be_written_is_refused(database: Database, kind, value, words):
    with database.harness(batch(kind, [value]).schema, create_table=True) as life:
        life.process(batch(kind, [value]))
        with pytest.raises(OperatorError, match=words):
            life.commit(life.checkpoint())


@pytest.mark.parametrize("kind", [kind for kind, _, _, _ in TYPES.values()], ids=str)
def test_a_column_that_is_made_for_a_type_holds_it(kind):
    names = {
        "boolean": "bool",
        "smallint": "int2",
        "integer": "int4",
        "bigint": "int8",
        "real": "float4",
        "double precision": "float8",
    }
    made = sql_type(kind).split("(")[0]
    base = made.removesuffix("[]")
    found = names.get(base, base)
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    assert holds("_" + found, found, kind) if made.endswith("[]") else holds(found, "", kind)


@given(st.lists(st.one_of(st.none(), st.text()), min_size=1))
def test_csv_has_a_line_for_each_row_and_tells_null_from_empty(texts):
    import csv
    import io

    rows = pa.RecordBatch.from_arrays([pa.array(texts, pa.string()), pa.array([1] * len(texts))], names=["t", "n"])
    written = encode_csv(rows).decode()
    read = list(csv.reader(io.StringIO(written, newline="")))
    assert [text for text, _ in read] == [text or "" for text in texts]
    assert written.count('""') >= sum(text == "" for text in texts)


def test_nul_within_lists_and_structs_is_found():
    from arroyo_postgres.sink.texts import check_texts

    for kind, value in (
        (pa.list_(pa.string()), ["a", "b\0"]),
        (pa.struct({"x": pa.list_(pa.string())}), {"x": ["\0"]}),
        (pa.large_string(), "\0"),
    ):
        with pytest.raises(DataError, match="the character NUL"):
            check_texts(batch(kind, [value]))
        check_texts(batch(kind, [value, None]).slice(1))
