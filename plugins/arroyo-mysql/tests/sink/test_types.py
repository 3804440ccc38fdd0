"""Values of every type, in a table that is made for them and in tables that were there, read back by another client."""

from __future__ import annotations

import datetime
import json
import uuid
from decimal import Decimal
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from arroyo_mysql.literals import check_values, row_literals, statements
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.errors import DataError, OperatorError

from .support import Database

UTC = datetime.UTC
NAN, INF = float("nan"), float("inf")
DAY, TIME = datetime.date(2024, 2, 29), datetime.time(23, 59, 59, 999999)
MOMENT = datetime.datetime(2024, 2, 29, 1, 2, 3, 456789)
OLD, LATE = datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)
ZURICH = ZoneInfo("Europe/Zurich")

#: The type, values, the type of the column that is made, and what is read where that is another value.
TYPES = {
    "bool": (pa.bool_(), [True, False], "tinyint(1)", [1, 0]),
    "int8": (pa.int8(), [-128, 127, 0], "tinyint(4)", None),
    "uint8": (pa.uint8(), [0, 255], "tinyint(3) unsigned", None),
    "int16": (pa.int16(), [-(2**15), 2**15 - 1], "smallint(6)", None),
    "uint16": (pa.uint16(), [2**16 - 1], "smallint(5) unsigned", None),
    "int32": (pa.int32(), [-(2**31), 2**31 - 1], "int(11)", None),
    "uint32": (pa.uint32(), [2**32 - 1], "int(10) unsigned", None),
    "int64": (pa.int64(), [-(2**63), 2**63 - 1], "bigint(20)", None),
    "uint64": (pa.uint64(), [2**64 - 1], "bigint(20) unsigned", None),
    "float16": (pa.float16(), [1.5, -0.0], "float", None),
    "float32": (pa.float32(), [1.5, -0.0, 16777215.0, 1.1754943508222875e-38, 3.4028234663852886e38], "float", "float"),
    "float64": (pa.float64(), [0.1, -0.0, 1e308, 5e-324, 1 / 3], "double", None),
    "decimal": (pa.decimal128(10, 3), [Decimal("-1234567.891"), Decimal("0.000")], "decimal(10,3)", None),
    "small decimal": (pa.decimal128(38, 30), [Decimal("0.000000012345678901234567890123")], "decimal(38,30)", None),
    "large decimal": (pa.decimal256(65, 2), [Decimal("9" * 63 + ".99")], "decimal(65,2)", None),
    "round decimal": (pa.decimal128(5, -2), [Decimal("12300")], "decimal(7,0)", None),
    "string": (
        pa.string(),
        ["", "NULL", "'", '"', "a,b\r\n\\N\t\x1a'", "\\", "\\'", "nul\0nul", "Zürich 🐟", " ", "%s"],
        "longtext",
        None,
    ),
    "large_string": (pa.large_string(), ["x"], "longtext", None),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["x", "y", "x"], "longtext", None),
    "binary": (pa.binary(), [b"", b"\0\xff\\x'", bytes(range(256))], "longblob", None),
    "large_binary": (pa.large_binary(), [b"ab"], "longblob", None),
    "fixed binary": (pa.binary(2), [b"a\0"], "longblob", None),
    "date32": (pa.date32(), [DAY, OLD.date(), LATE.date()], "date", None),
    "date64": (pa.date64(), [DAY], "date", None),
    "time32": (pa.time32("s"), [datetime.time(1, 2, 3)], "time(6)", None),
    "time64": (pa.time64("us"), [TIME, datetime.time(0)], "time(6)", None),
    "timestamp s": (pa.timestamp("s"), [datetime.datetime(1960, 1, 1)], "datetime(6)", None),
    "timestamp ms": (pa.timestamp("ms"), [datetime.datetime(1960, 1, 1, 0, 0, 0, 1000)], "datetime(6)", None),
    "timestamp us": (pa.timestamp("us"), [MOMENT, OLD, LATE], "datetime(6)", None),
    "timestamp ns": (pa.timestamp("ns"), [MOMENT], "datetime(6)", None),
    "timestamp utc": (pa.timestamp("us", "UTC"), [MOMENT.replace(tzinfo=UTC)], "datetime(6)", [MOMENT]),
    "timestamp zone": (
        pa.timestamp("us", "Europe/Zurich"),
        [MOMENT.replace(tzinfo=ZURICH)],
        "datetime(6)",
        [MOMENT - datetime.timedelta(hours=1)],
    ),
    "null": (pa.null(), [None], "longtext", None),
    "list": (pa.list_(pa.int64()), [[1, None, -3], []], "longtext", "json"),
    "list of text": (pa.list_(pa.string()), [["", "a\"b'", "c\\d\n", None]], "longtext", "json"),
    "struct": (pa.struct({"a": pa.int64(), "b": pa.string()}), [{"a": 1, "b": "ü🐟"}], "longtext", "json"),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1)]], "longtext", [{"a": 1}]),
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
    with database.harness(rows.schema, mode="upsert", keys=["id"], create_table=True) as life:
        life.process(rows.slice(1))
        life.commit(life.checkpoint())
    # A float is shown with six digits.
    shown = "v + 0e0" if column == "float" else "v"
    found = [value for (value,) in database.execute(f"select {shown} from totals order by id")]
    if expected == "json" or name == "map":
        found = [value and json.loads(value) for value in found]
    elif pa.types.is_time(kind):
        found = [value if value is None else (OLD + value).time() for value in found]
    elif name == "float16":
        kind = pa.float32()
    assert found == [*(expected if isinstance(expected, list) else values), None]
    assert database.execute(
        "select column_type from information_schema.columns where table_name = 'totals' and column_name = 'v'"
    ) == [(column,)]


KEYS = [
    name
    for name, (kind, *_) in TYPES.items()
    if not (pa.types.is_nested(kind) or pa.types.is_null(kind) or pa.types.is_floating(kind))
]


@pytest.mark.server
@pytest.mark.parametrize("name", KEYS)
def test_values_are_keys_by_which_rows_are_replaced_and_deleted(database: Database, name):
    kind, values, _, _ = TYPES[name]
    values = [value for value in dict.fromkeys(values) if not isinstance(value, bytes) or len(value) < 200]
    count = len(values)
    schema = pa.schema([("k", kind), ("l", pa.int64()), ("n", pa.int64()), ("gone", pa.bool_())])

    def rows(n, is_gone):
        columns = [pa.array(values, kind), pa.array([1] * count), pa.array([n] * count), pa.array([is_gone] * count)]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    for keys in (["k"], ["k", "l"]):
        fields = {"mode": "upsert", "keys": keys, "create_table": True, "table": "_".join(keys)}
        fields |= {"deleted_column": "gone", "incarnation": "_".join(keys)}
        with database.harness(schema, **fields) as life:
            for n, is_gone, left in ((1, False, (count, count)), (2, False, (count, 2 * count)), (3, True, (0, None))):
                life.process(rows(n, is_gone))
                life.commit(life.checkpoint())
                assert database.execute(f"select count(*), sum(n) from {fields['table']}") == [left]
                life.go_on()


@pytest.mark.server
def test_a_text_is_whatever_the_column_reads(database: Database):
    database.execute(
        "create table totals (id bigint, u uuid, j json, m enum('sad', 'happy'), c char(3), i inet6, l varchar(9) "
        "character set latin1)"
    )
    names = {"u": str(uuid.UUID(int=7)), "j": '{"a": [1, null]}', "m": "happy", "c": "abc", "i": "::1", "l": "ä"}
    database.write(pa.RecordBatch.from_pylist([{"id": 1, **names}, {"id": 2}]))
    assert database.execute("select cast(u as char), j, m, c, cast(i as char), l from totals order by id") == [
        (str(uuid.UUID(int=7)), '{"a": [1, null]}', "happy", "abc", "::1", "ä"),
        (None, None, None, None, None, None),
    ]


@pytest.mark.server
def test_integers_fit_into_wider_columns_and_decimals(database: Database):
    database.execute("create table totals (a bigint, b decimal(22,2), c smallint, d double)")
    schema = pa.schema({"a": pa.int32(), "b": pa.uint64(), "c": pa.uint8(), "d": pa.float32()})
    database.write(pa.RecordBatch.from_pylist([{"a": -1, "b": 2**64 - 1, "c": 255, "d": 0.5}], schema))
    assert database.execute("select * from totals") == [(-1, Decimal(2**64 - 1), 255, 0.5)]


@pytest.mark.server
@pytest.mark.parametrize("column", ["datetime", "timestamp", "datetime(3)"])
def test_times_are_utc_and_fractions_that_have_no_place_are_cut_off(database: Database, column):
    late = MOMENT.replace(microsecond=999999)
    database.execute(f"create table totals (id bigint, v {column} null)")
    database.write(batch(pa.timestamp("us", "Europe/Zurich"), [late.replace(tzinfo=UTC)]))
    kept = 999000 if "3" in column else 0
    assert database.execute("select v from totals") == [(late.replace(microsecond=kept),)]


@pytest.mark.server
def test_a_text_that_the_column_has_no_place_for_is_refused(database: Database):
    database.execute("create table totals (id bigint, v varchar(3) character set latin1)")
    for value, words in (("four", "Data too long"), ("🐟", "Incorrect string value")):
        with database.harness(batch(pa.string(), [""]).schema) as life:
            life.process(batch(pa.string(), [value]))
            with pytest.raises(OperatorError, match=words):
                life.commit(life.checkpoint())
    assert database.execute("select count(*) from totals") == [(0,)]


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (pa.float64(), NAN, "'v' has the value nan"),
        (pa.float32(), -INF, "'v' has the value -inf"),
        (pa.float16(), INF, "'v' has the value inf"),
        (pa.list_(pa.float64()), [1.0, NAN], "'v' has the value nan"),
        (pa.struct({"a": pa.list_(pa.float64())}), {"a": [INF]}, "'v.a' has the value inf"),
        (pa.map_(pa.string(), pa.float64()), [("a", NAN)], "'v' has the value nan"),
        (pa.timestamp("s"), 253402300800, "within the years 1 to 9999"),
        (pa.timestamp("us", "UTC"), -62135596800000001, "within the years 1 to 9999"),
        (pa.timestamp("ms"), 253402300800000, "within the years 1 to 9999"),
        (pa.date32(), 2932897, "within the years 1 to 9999"),
    ],
    ids=str,
)
def test_values_that_no_column_holds_are_found(kind, value, words):
    with pytest.raises(DataError, match=words):
        check_values(batch(kind, [None, value]))


@pytest.mark.parametrize("name", TYPES)
def test_all_other_values_pass(name):
    kind, values, _, _ = TYPES[name]
    if not pa.types.is_dictionary(kind):
        check_values(batch(kind, [*values, None]))
        check_values(batch(kind, [None]))


@given(st.lists(st.text(max_size=30), min_size=1), st.integers(min_value=1, max_value=5))
def test_statements_have_all_rows_in_order_and_are_no_longer_than_they_may_be(texts, at_once):
    rows = row_literals(pa.RecordBatch.from_pydict({"t": texts}))
    limit = max(len(text.encode()) for text in rows.to_pylist()) + 10
    found = [each.decode() for each in statements(rows, "<", ",", ">", limit, at_once)]
    assert all(len(each.encode()) <= limit for each in found)
    assert ",".join(each[1:-1] for each in found) == ",".join(rows.to_pylist())
