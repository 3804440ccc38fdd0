"""Prints how fast the generator makes rows on one core: `python plugins/arroyo-nexmark/bench/generate.py`."""

from __future__ import annotations

import sys
import time

import numpy as np
from arroyo_nexmark.rules import Rules
from arroyo_nexmark.source import BATCH_ROWS
from arroyo_nexmark.tables import TABLES, make_batch

CASES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("bid", ("auction", "bidder", "price", "date_time")),
    ("bid", ("auction", "bidder", "price", "channel", "date_time")),
    ("bid", ()),
    ("auction", ()),
    ("person", ()),
    ("event", ()),
)
SECONDS = 1.0


def rows_per_second(name: str, fields: tuple[str, ...]) -> float:
    rules, table = Rules(), TABLES[name]
    schema = table.select(fields or table.schema.names)
    numbers = np.arange(BATCH_ROWS * rules.cycle, dtype=np.int64)
    if table.kind is not None:
        numbers = numbers[rules.kinds(numbers) == table.kind]
    numbers = numbers[:BATCH_ROWS]
    make_batch(table, schema, rules, numbers)
    start, rows = time.perf_counter(), 0
    while time.perf_counter() - start < SECONDS:
        rows += make_batch(table, schema, rules, numbers + rows * rules.cycle).num_rows
    return rows / (time.perf_counter() - start)


def main() -> None:
    for name, fields in CASES:
        rate = rows_per_second(name, fields)
        sys.stdout.write(f"{name:8} {rate / 1e6:7.2f} M rows/s  {', '.join(fields) or 'all columns'}\n")


if __name__ == "__main__":
    main()
