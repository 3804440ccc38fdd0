"""The tables of all queries: small, with nulls, duplicates, ties, negative numbers, empty texts, lists and structs."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from .json_values import DOCUMENTS
from .stream_values import TIMES

T = TypeVar("T")

TIME = pa.timestamp("us", tz="UTC")
#: Half a minute before 1970: times are on both sides of it.
START_US = -30_000_000
#: Less than the watermarks allow, so that no row is late.
DISORDER_US = 2_000_000

ORDERS = pa.schema(
    {
        "id": pa.int64(),
        "customer": pa.string(),
        "amount": pa.int64(),
        "weight": pa.float64(),
        "price": pa.decimal128(10, 2),
        "urgent": pa.bool_(),
        "note": pa.string(),
        "tags": pa.list_(pa.string()),
        "address": pa.struct({"city": pa.string(), "zip": pa.int32()}),
        "placed": TIME,
    }
)
PAYMENTS = pa.schema(
    {
        "payment": pa.int64(),
        "order_id": pa.int64(),
        "customer": pa.string(),
        "paid": pa.int64(),
        "method": pa.string(),
        "paid_at": TIME,
    }
)
CUSTOMERS = pa.schema({"customer": pa.string(), "level": pa.int32(), "region": pa.string(), "born": pa.date32()})
NUMBERS = pa.schema(
    {"n": pa.int64(), "a": pa.int64(), "b": pa.int64(), "i": pa.int32(), "s": pa.int16(), "d": pa.float64()}
)
EVENTS = pa.schema({"e": pa.int64(), "kind": pa.string(), "doc": pa.string(), "happened": TIME})
WORDS = pa.schema({"w": pa.string(), "v": pa.string(), "k": pa.int64()})

#: How each type of a column is declared.
_DECLARED: Mapping[pa.DataType, str] = {
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.string(): "TEXT",
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
    pa.decimal128(10, 2): "DECIMAL(10, 2)",
    pa.list_(pa.string()): "TEXT[]",
    pa.struct({"city": pa.string(), "zip": pa.int32()}): "STRUCT<city TEXT, zip INT>",
    TIME: "TIMESTAMP",
}
#: The column of event times, of the tables that are streams in time.
EVENT_TIMES = TIMES


@cache
def make_tables() -> Mapping[str, pa.Table]:
    """Every table, by the name that it has here and in DuckDB."""
    chance = random.Random(23)
    return {
        "orders": pa.Table.from_pylist(_orders(chance), ORDERS),
        "payments": pa.Table.from_pylist(_payments(chance), PAYMENTS),
        "customers": pa.Table.from_pylist(_customers(), CUSTOMERS),
        "numbers": pa.Table.from_pylist(_numbers(chance), NUMBERS),
        "words": pa.Table.from_pylist(_words(chance), WORDS),
        "events": pa.Table.from_pylist(_events(chance), EVENTS),
    }


def write_tables(folder: Path) -> None:
    """One file for each table, of several row groups: what prunes them is a part of what is tested."""
    for name, table in make_tables().items():
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=16)


def declare_tables(folder: Path) -> str:
    """The `CREATE TABLE` statements over the files in the folder, a line each."""
    return "\n".join(_declaration(name, table.schema, folder) for name, table in make_tables().items())


def _declaration(name: str, schema: pa.Schema, folder: Path) -> str:
    columns = [f"{field.name} {_DECLARED[field.type]}" for field in schema]
    if name in EVENT_TIMES:
        time = EVENT_TIMES[name]
        columns.append(f"WATERMARK FOR {time} AS {time} - INTERVAL '3 seconds'")
    options = {"connector": "filesystem", "type": "source", "path": folder / f"{name}.parquet", "format": "parquet"}
    written = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    return f"CREATE TABLE {name} ({', '.join(columns)}) WITH ({written}, 'batch_rows' = 7);"


def _orders(chance: random.Random) -> list[dict[str, Any]]:
    return [
        {
            "id": number,
            "customer": _some(chance, ["ann", "bob", "cid", "dot", "eve", ""]),
            "amount": _some(chance, [-20, -1, 0, 1, 5, 5, 10, 10, 25, 100]),
            "weight": _some(chance, [-2.5, -0.25, 0.0, 0.5, 0.5, 1.25, 3.0, 100.75]),
            "price": _some(chance, [Decimal(text) for text in ("-7.25", "0.00", "0.01", "9.99", "9.99", "120.50")]),
            "urgent": _some(chance, [True, False]),
            "note": _some(chance, ["", "", " ", "gift", "Gift", "a%b", "it's", "déjà vu", "two words"]),
            "tags": _some(chance, [[], ["new"], ["new", "big"], ["big", "big"], ["old", None], [""]]),
            "address": _some(
                chance,
                [{"city": "Rome", "zip": 10}, {"city": "Oslo", "zip": None}, {"city": None, "zip": 7}],
            ),
            "placed": START_US + number * 1_000_000 - chance.choice([0, 0, 500_000, DISORDER_US]),
        }
        for number in range(70)
    ]


def _payments(chance: random.Random) -> list[dict[str, Any]]:
    return [
        {
            "payment": number,
            "order_id": _some(chance, [number, number, number + 3, number - 2, 5, 900]),
            "customer": _some(chance, ["ann", "bob", "cid", "dot", "zoe", ""]),
            "paid": _some(chance, [-5, 0, 1, 5, 10, 10, 30]),
            "method": _some(chance, ["card", "cash", "Card", ""]),
            "paid_at": START_US + number * 1_500_000 - chance.choice([0, 0, 500_000, DISORDER_US]),
        }
        for number in range(45)
    ]


def _customers() -> list[dict[str, Any]]:
    """Not all who order, one twice, one who never does, and one of no name."""
    rows = [("ann", 1, "north", 0), ("bob", 2, "south", 11_000), ("bob", 3, None, -400), ("cid", None, "north", None),
            ("eve", 2, "", 20_000), ("ned", 5, "east", 1), (None, 4, "west", 59)]  # fmt: skip
    return [dict(zip(CUSTOMERS.names, row, strict=True)) for row in rows]


def _numbers(chance: random.Random) -> list[dict[str, Any]]:
    return [
        {
            "n": number,
            "a": _some(chance, [-100, -7, -1, 0, 1, 2, 7, 50]),
            "b": _some(chance, [-3, -2, -1, 1, 2, 3, 10]),
            "i": _some(chance, [-2_147_483_648, -5, 0, 5, 2_147_483_647]),
            "s": _some(chance, [-32_768, -1, 0, 1, 32_767]),
            "d": _some(chance, [-1.5, -0.5, 0.0, 0.5, 1.5, 2.5, 1e10]),
        }
        for number in range(40)
    ]


def _words(chance: random.Random) -> list[dict[str, Any]]:
    words = ["", " ", "a", "A", "ab", "abc", "ABC", "b", "éa", "x_y", "50%", " padded ", "null", "12", "-3", "1.5"]
    return [{"w": _some(chance, words), "v": _some(chance, words), "k": _some(chance, [0, 1, 2, 3])} for _ in range(45)]


def _events(chance: random.Random) -> list[dict[str, Any]]:
    return [
        {
            "e": number,
            "kind": _some(chance, ["new", "old", "gift", ""]),
            "doc": _some(chance, DOCUMENTS),
            "happened": START_US + number * 1_200_000 - chance.choice([0, 0, 500_000, DISORDER_US]),
        }
        for number in range(60)
    ]


def _some(chance: random.Random, values: Sequence[T]) -> T | None:
    """One of the values, or null for one of seven."""
    return None if chance.random() < 1 / 7 else chance.choice(values)
