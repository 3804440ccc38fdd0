"""What the golden pipelines read: nulls in keys and values, ties, gaps, a pause, times before 1970."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

TIME = pa.timestamp("us", tz="UTC")
#: Two minutes before 1970, and as long after it.
START_US = -120_000_000
#: Between the two halves of the rows nothing happens.
PAUSE_US = 30_000_000
#: Orders come at most so much out of order: less than the watermarks of the pipelines allow.
DISORDER_US = 2_000_000

ORDERS = 2_400
PAYMENTS = 1_600
CHANGES = 2_000
STRAGGLERS = 60
CUSTOMERS = 12
FILES = 8
#: Stragglers come after so many files of orders.
FILES_BEFORE_STRAGGLERS = 6


def make_tables() -> dict[str, pa.Table]:
    """Everything that the pipelines read, by the name that it has as a folder and in SQL."""
    random = np.random.default_rng(5)
    return {
        "orders": make_orders(random),
        "payments": make_payments(random),
        "stragglers": make_stragglers(random),
        "customers": make_customers(),
        "changes": make_changes(random),
    }


def write_tables(tables: Mapping[str, pa.Table], folder: Path) -> None:
    """Orders and payments as files in the order of time, which subtasks share; changes as Debezium writes them."""
    for name in ("orders", "payments"):
        write_files(tables[name], folder / name)
    write_files(tables["orders"], folder / "orders_and_stragglers")
    last_before = folder / "orders_and_stragglers" / f"{FILES_BEFORE_STRAGGLERS - 1}-late.parquet"
    pq.write_table(tables["stragglers"], last_before)
    pa.csv.write_csv(tables["customers"], folder / "customers.csv")
    (folder / "changes").mkdir()
    lines = [json.dumps(change) + "\n" for change in tables["changes"].to_pylist()]
    for number, part in enumerate(np.array_split(np.arange(len(lines)), 3)):
        (folder / "changes" / f"{number}.jsonl").write_text("".join(lines[line] for line in part))


def write_files(table: pa.Table, folder: Path) -> None:
    folder.mkdir()
    rows = table.num_rows // FILES
    for number in range(FILES):
        pq.write_table(table.slice(number * rows, rows), folder / f"{number}.parquet")


def make_orders(random: np.random.Generator) -> pa.Table:
    """Ten a second, of times in tenths of a second: some are exactly as far apart as a gap or a bound asks for."""
    ids = np.arange(ORDERS)
    late_us = random.integers(0, DISORDER_US // 100_000 + 1, ORDERS) * 100_000
    return order_rows(random, ids, _moments(ids, ORDERS, 100_000) - late_us)


def make_stragglers(random: np.random.Generator) -> pa.Table:
    """Orders of the first half minute that come when all windows over it have fired."""
    times_us = START_US + random.integers(0, 300, STRAGGLERS) * 100_000
    return order_rows(random, np.arange(ORDERS, ORDERS + STRAGGLERS), times_us)


def order_rows(random: np.random.Generator, ids: np.ndarray, times_us: np.ndarray) -> pa.Table:
    rows = len(ids)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "customer": _customers(random, rows),
            "amount": _some(random, random.integers(-20, 500, rows), pa.int64()),
            "weight": _some(random, random.integers(0, 400, rows) / 4, pa.float64()),
            "urgent": _some(random, random.random(rows) < 0.3, pa.bool_()),
            "moment": pa.array(times_us, pa.int64()).cast(TIME),
        }
    )


def make_payments(random: np.random.Generator) -> pa.Table:
    """No two of one time, in the order of time; of orders around, of none, or of one that does not exist."""
    numbers = np.arange(PAYMENTS)
    paid = numbers * ORDERS // PAYMENTS - random.integers(-30, 30, PAYMENTS)
    return pa.table(
        {
            "payment": pa.array(numbers, pa.int64()),
            "order_id": _some(random, paid, pa.int64()),
            "customer": _customers(random, PAYMENTS),
            "paid": _some(random, random.integers(1, 300, PAYMENTS), pa.int64()),
            "moment": pa.array(_moments(numbers, PAYMENTS, 150_000), pa.int64()).cast(TIME),
        }
    )


def make_customers() -> pa.Table:
    """Not all who order; and one who never does."""
    names = [*(f"c{number}" for number in range(0, CUSTOMERS, 2)), "nobody"]
    return pa.table({"customer": names, "level": pa.array(range(len(names)), pa.int64())})


def make_changes(random: np.random.Generator) -> pa.Table:
    """Accounts that are opened, change and are closed; now and then one is closed that nobody ever opened."""
    accounts: dict[int, dict[str, object]] = {}
    changes: list[dict[str, object]] = []
    for number in range(CHANGES):
        kind = random.integers(0, 20)
        if kind == 0:
            stranger = {"id": -number, "owner": "stranger", "balance": 7}
            changes.append({"before": stranger, "after": None, "op": "d"})
        elif kind < 8 or len(accounts) < 30:
            accounts[number] = _account(random, number)
            changes.append({"before": None, "after": accounts[number], "op": "c"})
        else:
            chosen = int(random.choice(list(accounts)))
            before = accounts.pop(chosen)
            after = _account(random, chosen) if kind < 15 else None
            if after is not None:
                accounts[chosen] = after
            changes.append({"before": before, "after": after, "op": "u" if after else "d"})
    account = pa.struct({"id": pa.int64(), "owner": pa.string(), "balance": pa.int64()})
    return pa.Table.from_pylist(changes, pa.schema({"before": account, "after": account, "op": pa.string()}))


def _account(random: np.random.Generator, number: int) -> dict[str, object]:
    owner, balance = int(random.integers(0, CUSTOMERS + 1)), int(random.integers(-50, 1_000))
    return {
        "id": number,
        "owner": f"c{owner}" if owner < CUSTOMERS else None,
        "balance": balance if balance >= 0 else None,
    }


def _moments(numbers: np.ndarray, count: int, step_us: int) -> np.ndarray:
    return START_US + numbers * step_us + np.where(numbers < count // 2, 0, PAUSE_US)


def _customers(random: np.random.Generator, rows: int) -> pa.Array:
    names = [f"c{number}" for number in range(CUSTOMERS)]
    return pa.array([*names, None]).take(pa.array(random.integers(0, CUSTOMERS + 1, rows)))


def _some(random: np.random.Generator, values: np.ndarray, kind: pa.DataType) -> pa.Array:
    """The values, one of ten of them null."""
    return pa.array(values, kind, mask=random.random(len(values)) < 0.1)
