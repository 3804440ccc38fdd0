"""A query that wants few of the rows, with and without its `predicate`: `python -m benchmarks.sql.pushdown`.

Orders of eight days lie in a folder for each day, sorted by number. The query asks for a tenth of one day; beside it
runs the same pipeline, but for the `predicate` of its source. They take turns, and both count the same rows.
"""

from __future__ import annotations

import argparse
import copy
import io
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from arroyo_core.cli.main import main as arroyo

from ..nexmark.running import rotated
from .measure import run_document

DAYS = 8
WITH, WITHOUT = "with", "without"
SCRIPT = """
SET name = 'pushdown';
CREATE TABLE orders (id BIGINT, customer BIGINT, price DOUBLE, product TEXT, day DATE)
WITH (connector = 'filesystem', type = 'source', path = '{data}', format = 'parquet');
CREATE TABLE out WITH (connector = 'filesystem', type = 'sink', path = '{out}', format = 'parquet');
INSERT INTO out SELECT customer, price, product FROM orders WHERE day = '2026-01-03' AND id < {end};
"""


def write_orders(folder: Path, rows: int) -> None:
    """So many rows in all."""
    each = rows // DAYS
    random = np.random.default_rng(1)
    for day in range(DAYS):
        target = folder / f"day=2026-01-0{day + 1}"
        target.mkdir(parents=True)
        table = pa.table(
            {
                "id": np.arange(each),
                "customer": random.integers(0, 10_000, each),
                "price": random.random(each) * 100,
                "product": pa.array([f"product {number:06}" for number in random.integers(0, 100_000, each)]),
            }
        )
        pq.write_table(table, target / "orders.parquet", row_group_size=max(1, each // 20))


def pipelines(folder: Path, rows: int) -> dict[str, dict[str, Any]]:
    """What the query compiles to, and the same with a source that reads everything."""
    file = folder / "pushdown.sql"
    file.write_text(SCRIPT.format(data=folder / "orders", out=folder / "out", end=rows // DAYS // 10))
    printed = io.StringIO()
    with redirect_stdout(printed):
        code = arroyo(["sql", "compile", str(file)])
    if code:
        raise ValueError(f"{file.name} does not compile")
    told = yaml.safe_load(printed.getvalue())
    told["checkpoint"] = {"url": str(folder / "run" / "state")}
    untold = copy.deepcopy(told)
    del untold["nodes"][0]["config"]["predicate"]
    return {WITH: told, WITHOUT: untold}


def measure(folder: Path, *, rows: int, runs: int) -> dict[str, list[float]]:
    """CPU seconds of each run by side, after one of each that is not counted; raises where rows are missing."""
    write_orders(folder / "orders", rows)
    sides = pipelines(folder, rows)
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(runs + 1):
        for side in rotated(tuple(sides), number):
            for path in _results(folder):
                path.unlink()
            spent = run_document(sides[side], folder / "run")
            found = sum(pq.read_metadata(path).num_rows for path in _results(folder))
            if found != rows // DAYS // 10:
                raise RuntimeError(f"{side} the predicate there are {found} rows")
            if number:
                seconds[side].append(spent)
    return seconds


def _results(folder: Path) -> Iterator[Path]:
    return (folder / "out").glob("part-*")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sql.pushdown", description=__doc__)
    parser.add_argument("--rows", type=int, default=8_000_000, help="in all, 8000000")
    parser.add_argument("--runs", type=int, default=3, help="of each side, 3")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        seconds = measure(Path(folder), rows=arguments.rows, runs=arguments.runs)
    medians = {side: statistics.median(found) for side, found in seconds.items()}
    for side, found in medians.items():
        sys.stdout.write(f"{side} the predicate: {found:.2f} s of CPU\n")
    sys.stdout.write(f"ratio: {medians[WITH] / medians[WITHOUT]:.3f}\n")


if __name__ == "__main__":
    main()
