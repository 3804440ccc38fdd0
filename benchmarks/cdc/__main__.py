"""`postgres.cdc` and `mysql.cdc` beside bare readers: `python -m benchmarks.cdc [--rows 200000] [--only postgres]`.

Changes of a table of eight columns, made beforehand: inserts, updates and deletes, in transactions of 200 to 500
changes. The source reads all of them into Arrow, by one subtask in this process; beside it what one would write by
hand, which decodes the same messages into tuples. Then as many rows that are there, by the snapshot and by hand. The
servers are started here. All take turns in one run, the best of some rounds; answers are checked.
"""

from __future__ import annotations

import argparse

from tests import mysql_server, postgres_server

from . import on_mysql, on_postgres


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cdc", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=200_000, help="changes, and rows of the snapshot")
    parser.add_argument("--only", choices=["postgres", "mysql"])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.only != "mysql":
        with postgres_server.running_server() as postgres:
            on_postgres.measure_all(postgres, options.rows, options.rounds)
    if options.only != "postgres":
        with mysql_server.running_server() as mysql:
            on_mysql.measure_all(mysql, options.rows, options.rounds)


if __name__ == "__main__":
    main()
