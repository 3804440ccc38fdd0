"""What an expression costs per batch, beside bare pyarrow.compute and beside planning it again for each batch.

    python plugins/arroyo-std/bench/expressions.py [--rows 65536] [--seconds 1]

The overhead is the time of a batch of one row: what is paid whatever the batch holds. Its processor time, over all
threads, tells what is work and what is waiting for a busy machine.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from arroyo_std.sql import Expression, compile_expressions
from datafusion import SessionConfig, SessionContext

from arroyo_core.api import Registry

Evaluate = Callable[[pa.RecordBatch], object]


@dataclass(frozen=True, slots=True)
class Case:
    """Expressions, and the same in pyarrow.compute."""

    name: str
    sqls: tuple[str, ...]
    bare: Evaluate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=65_536, help="rows per batch")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long each is measured")
    options = parser.parse_args()
    batch = make_batch(options.rows)
    line = "{:<22} {:<20} {:>10} {:>12} {:>16}"
    write(line.format("expressions", "engine", "M rows/s", "overhead us", "of it processor"))
    for case in CASES:
        for engine, evaluate in engines(case, batch.schema).items():
            full, single = (measure(evaluate, each, options.seconds) for each in (batch, batch.slice(0, 1)))
            rate = f"{options.rows / full.elapsed_s / 1e6:,.1f}"
            overhead_us = [f"{seconds * 1e6:,.0f}" for seconds in (single.elapsed_s, single.processor_s)]
            write(line.format(case.name, engine, rate, *overhead_us))


def make_batch(rows: int) -> pa.RecordBatch:
    random = np.random.default_rng(7)
    return pa.RecordBatch.from_pydict(
        {
            "price": random.integers(0, 10_000, rows),
            "rate": random.random(rows),
            "channel": pa.array([f"channel-{number}" for number in range(100)]).take(random.integers(0, 100, rows)),
        }
    )


CASES = (
    Case("price > 100", ("price > 100",), lambda batch: pc.greater(batch["price"], 100)),
    Case(
        "price * 0.908",
        ("price * 0.908",),
        lambda batch: pc.multiply(pc.cast(batch["price"], pa.float64()), 0.908),
    ),
    Case(
        "and, in, is null",
        ("price > 100 and price < 9000 and channel in ('channel-1', 'channel-2') and rate is not null",),
        lambda batch: pc.and_kleene(
            pc.and_kleene(pc.greater(batch["price"], 100), pc.less(batch["price"], 9000)),
            pc.and_kleene(pc.is_in(batch["channel"], pa.array(["channel-1", "channel-2"])), pc.is_valid(batch["rate"])),
        ),
    ),
    Case("upper(channel)", ("upper(channel)",), lambda batch: pc.utf8_upper(batch["channel"])),
    Case(
        "20 expressions",
        tuple(f"price * {number} + rate" for number in range(20)),
        lambda batch: [pc.add(pc.multiply(batch["price"], number), batch["rate"]) for number in range(20)],
    ),
)


def engines(case: Case, schema: pa.Schema) -> dict[str, Evaluate]:
    expressions = [Expression(name=f"e{number}", sql=sql, field="") for number, sql in enumerate(case.sqls)]
    compiled = compile_expressions(expressions, schema, Registry())
    return {
        "arroyo_std": compiled.evaluate,
        "pyarrow.compute": case.bare,
        "planned per batch": planned_per_batch(case.sqls),
    }


def planned_per_batch(sqls: tuple[str, ...]) -> Evaluate:
    context = SessionContext(SessionConfig({"datafusion.execution.target_partitions": "1"}))
    query = f"select {', '.join(f'{sql} as e{number}' for number, sql in enumerate(sqls))} from batch"

    def evaluate(batch: pa.RecordBatch) -> object:
        context.deregister_table("batch")
        context.register_record_batches("batch", [[batch]])
        return context.sql(query).collect()

    return evaluate


@dataclass(frozen=True, slots=True)
class Cost:
    """The means of one call."""

    elapsed_s: float
    processor_s: float


def measure(evaluate: Evaluate, batch: pa.RecordBatch, seconds: float) -> Cost:
    """What one call costs, after warming up."""
    for _ in range(5):
        evaluate(batch)
    calls = 0
    start, start_processor = time.perf_counter(), time.process_time()
    while (elapsed := time.perf_counter() - start) < seconds:
        evaluate(batch)
        calls += 1
    return Cost(elapsed / calls, (time.process_time() - start_processor) / calls)


def write(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
