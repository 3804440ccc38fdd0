"""DataFrames in and out of pipelines: `python -m benchmarks.bridges [--rows 10000000] [--only CASE]`.

Ratios of times within one run, in a session that is made as a user makes one:

- `inputs`: windows over a DataFrame of Parquet files, beside `filesystem.source` over the same files, and beside
  Spark SQL. All three answers are compared.
- `apply`: a filter and a projection by `apply`, beside the identity by `mapInArrow`, and beside Spark's own columns.
- `batches`: a windowed count fed by `foreachBatch`, beside Structured Streaming's own, both to Parquet. Both answers
  are compared with Spark SQL's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.bridges import applying, batches, inputs
from benchmarks.bridges.rows import make_bids, make_session

CASES = {"inputs": inputs.measure, "apply": applying.measure, "batches": batches.measure}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bridges",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=2, help="the best of so many counts")
    parser.add_argument("--only", choices=sorted(CASES))
    args = parser.parse_args()
    spark = make_session(args.cores, python=sys.executable)
    try:
        with tempfile.TemporaryDirectory(prefix="arroyo-bridges-") as folder:
            bids = make_bids(Path(folder) / "bids", rows=args.rows, files=args.files)
            for name, measure in CASES.items():
                if args.only in (None, name):
                    for line in measure(spark, bids, Path(folder) / name, cores=args.cores, repeats=args.repeats):
                        print(f"{name:8}  {line}", flush=True)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
