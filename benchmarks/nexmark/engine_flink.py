"""PyFlink's Table API with checkpoints, over CSV files: pip's Flink has no Parquet format."""

from __future__ import annotations

import sys
import time
from importlib.metadata import version
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

from .tasks import MAX_LATENESS_MS, Task, Timing

COLUMNS = {
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, date_time TIMESTAMP(3), "
    "extra STRING",
    "auction": "id BIGINT, item_name STRING, description STRING, initial_bid BIGINT, reserve BIGINT, "
    "date_time TIMESTAMP(3), expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra STRING",
    "person": "id BIGINT, name STRING, email_address STRING, credit_card STRING, city STRING, state STRING, "
    "date_time TIMESTAMP(3), extra STRING",
}
_LATENESS = f"date_time - INTERVAL '{MAX_LATENESS_MS / 1000:.3f}' SECOND"


def _tumbled(table: str, size: str = "INTERVAL '10' SECOND") -> str:
    return f"TABLE(TUMBLE(TABLE {table}, DESCRIPTOR(date_time), {size}))"


_COUNTS = """
    SELECT auction, count(*) AS num, window_start, window_end
    FROM TABLE(HOP(TABLE bid, DESCRIPTOR(date_time), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
    GROUP BY auction, window_start, window_end
"""

#: The columns of each answer, in the order in which DuckDB has them, and the query.
QUERIES = {
    "q0": (
        "auction BIGINT, bidder BIGINT, price BIGINT, date_time TIMESTAMP(3), extra STRING",
        "SELECT auction, bidder, price, date_time, extra FROM bid",
    ),
    "q1": (
        "auction BIGINT, bidder BIGINT, price DECIMAL(23, 3), date_time TIMESTAMP(3), extra STRING",
        "SELECT auction, bidder, CAST(0.908 * price AS DECIMAL(23, 3)), date_time, extra FROM bid",
    ),
    "q2": ("auction BIGINT, price BIGINT", "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0"),
    "q5": (
        "auction BIGINT, num BIGINT, window_start TIMESTAMP(3), window_end TIMESTAMP(3)",
        f"""
        SELECT counts.auction, counts.num, counts.window_start, counts.window_end
        FROM ({_COUNTS}) AS counts
        JOIN (
            SELECT max(num) AS num, window_start, window_end FROM ({_COUNTS}) GROUP BY window_start, window_end
        ) AS best
            ON counts.window_start = best.window_start
            AND counts.window_end = best.window_end
            AND counts.num = best.num
        """,
    ),
    # Of bids as high as the highest this finds one, and the check would tell.
    "q7": (
        "auction BIGINT, bidder BIGINT, price BIGINT, date_time TIMESTAMP(3), extra STRING",
        f"""
        SELECT auction, bidder, price, date_time, extra FROM (
            SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY price DESC) AS place
            FROM {_tumbled("bid")}
        ) WHERE place <= 1
        """,
    ),
    "q8": (
        "id BIGINT, name STRING, window_start TIMESTAMP(3)",
        f"""
        SELECT people.id, people.name, people.window_start
        FROM (
            SELECT id, name, window_start, window_end
            FROM {_tumbled("person")}
            GROUP BY id, name, window_start, window_end
        ) AS people
        JOIN (
            SELECT seller, window_start, window_end FROM {_tumbled("auction")} GROUP BY seller, window_start, window_end
        ) AS sellers
            ON people.id = sellers.seller
            AND people.window_start = sellers.window_start
            AND people.window_end = sellers.window_end
        """,
    ),
    # To Flink a row just as far as the gap belongs to the session; times have milliseconds.
    "q11": (
        "bidder BIGINT, bid_count BIGINT, start_time TIMESTAMP(3), end_time TIMESTAMP(3)",
        """
        SELECT bidder, count(*), window_start, window_end + INTERVAL '0.001' SECOND
        FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(date_time), INTERVAL '9.999' SECOND))
        GROUP BY bidder, window_start, window_end
        """,
    ),
    "q12e": (
        "bidder BIGINT, bid_count BIGINT, start_time TIMESTAMP(3), end_time TIMESTAMP(3)",
        f"""
        SELECT bidder, count(*), window_start, window_end
        FROM {_tumbled("bid")}
        GROUP BY bidder, window_start, window_end
        """,
    ),
    "q17": (
        "auction BIGINT, `day` STRING, total_bids BIGINT, rank1_bids BIGINT, rank2_bids BIGINT, rank3_bids BIGINT, "
        "min_price BIGINT, max_price BIGINT, avg_price DOUBLE, sum_price BIGINT",
        f"""
        SELECT auction, DATE_FORMAT(window_start, 'yyyy-MM-dd'), count(*),
            count(*) FILTER (WHERE price < 10000),
            count(*) FILTER (WHERE price >= 10000 AND price < 1000000),
            count(*) FILTER (WHERE price >= 1000000),
            min(price), max(price), avg(CAST(price AS DOUBLE)), sum(price)
        FROM {_tumbled("bid", "INTERVAL '1' DAY")}
        GROUP BY auction, window_start, window_end
        """,
    ),
    "q18": (
        COLUMNS["bid"],
        """
        SELECT auction, bidder, price, channel, url, date_time, extra FROM (
            SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) AS place FROM bid
        ) WHERE place = 1
        """,
    ),
}
#: Files take no results that change, unless their format can report changes.
UPDATED = ("q18",)


def environment(task: Task) -> TableEnvironment:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = {
        "parallelism.default": str(task.cores),
        "execution.checkpointing.interval": "10 s",
        "execution.checkpointing.mode": "EXACTLY_ONCE",
        "execution.checkpointing.dir": f"file://{task.scratch}/checkpoints",
        "table.local-time-zone": "UTC",
    }
    for name, value in settings.items():
        tables.get_config().set(name, value)
    for name, columns in COLUMNS.items():
        tables.execute_sql(
            f"CREATE TABLE {name} ({columns}, WATERMARK FOR date_time AS {_LATENESS}) WITH ("
            f"'connector' = 'filesystem', 'path' = 'file://{task.data}/{name}', 'format' = 'csv')"
        )
    return tables


def main() -> None:
    task = Task.read(Path(sys.argv[1]))
    tables = environment(task)
    columns, query = QUERIES[task.case]
    is_updated = task.case in UPDATED
    tables.execute_sql(
        f"CREATE TABLE answer ({columns}) WITH ('connector' = 'filesystem', 'path' = 'file://{task.answer}', "
        f"'format' = '{'debezium-json' if is_updated else 'csv'}')"
    )
    start = time.perf_counter()
    running = tables.execute_sql(f"INSERT INTO answer {query}")
    running.wait()
    whole_s = time.perf_counter() - start
    client = running.get_job_client()
    # Without the start of the local cluster, which belongs to the process.
    net_s = client.get_job_execution_result().result().get_net_runtime() / 1000 if client else whole_s
    Timing(
        job_s=net_s,
        epochs=1,
        answer="debezium" if is_updated else "csv",
        versions={"apache-flink": version("apache-flink")},
    ).write(Path(sys.argv[2]))


if __name__ == "__main__":
    main()
