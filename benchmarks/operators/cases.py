"""What is measured: each window and each join alone, and the same question in SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: The columns that are read, by table; the files have more.
COLUMNS: Mapping[str, Sequence[str]] = {
    "bid": ("auction", "bidder", "price", "date_time"),
    "auction": ("id", "seller", "date_time"),
}
#: As many epochs, and micro-batches, as there are files.
EPOCHS = 8
MAX_LATENESS_MS = 1_000
#: Bids come at multiples of 100 us, and none is as far from another as this: to Structured Streaming a row just as
#: far as the gap belongs to the session, to Arroyo it begins the next one.
GAP_US = 1_000_050

ENGINES = ("arroyo", "duckdb", "structured_streaming")

_COUNT_AND_MAX = [{"function": "count", "as": "bids"}, {"function": "max", "column": "price", "as": "top"}]
_JOINED = "a.id, a.seller, a.date_time, b.auction, b.price, b.date_time AS right_date_time"
_PAIR = "id, seller, epoch_us(date_time), price, epoch_us(right_date_time)"
_ON = [{"left": "id", "right": "auction"}]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An operator, and its answer as DuckDB computes it over the tables `bid` and `auction`."""

    name: str
    title: str
    operator: str
    config: Mapping[str, Any]
    #: The tables of the inputs, in order.
    tables: Sequence[str]
    sql: str
    #: Expressions that tell the rows of the answer apart.
    digest: str
    #: Settings of the sink.
    sink: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_windowed(self) -> bool:
        """Whether results come when a window is over: Structured Streaming keeps those of the last windows for ever."""
        return "window_end" in self.digest

    @property
    def is_fired_by_time(self) -> bool:
        """Whether the operator looks into its state when windows are over."""
        return not self.config.keys().isdisjoint({"size", "gap"})


def _in_windows(size_s: int, column: str = "date_time") -> str:
    return f"epoch_us({column}) // {size_s * 1_000_000} * {size_s * 1_000_000}"


CASES = (
    Case(
        name="tumbling",
        title="`std.tumbling_window`: bids and the highest of each auction in 10 s",
        operator="std.tumbling_window",
        config={"size": "10s", "keys": ["auction"], "aggregates": _COUNT_AND_MAX},
        tables=("bid",),
        sql=f"""
            SELECT auction, make_timestamp({_in_windows(10)}) AS window_start,
                window_start + INTERVAL 10 seconds AS window_end, count(*) AS bids, max(price) AS top
            FROM bid GROUP BY ALL""",
        digest="auction, epoch_us(window_start), epoch_us(window_end), bids, top",
    ),
    Case(
        name="sliding",
        title="`std.sliding_window`: the same, every 2 s",
        operator="std.sliding_window",
        config={"size": "10s", "slide": "2s", "keys": ["auction"], "aggregates": _COUNT_AND_MAX},
        tables=("bid",),
        sql=f"""
            SELECT auction, make_timestamp({_in_windows(2)} - back * 2000000) AS window_start,
                window_start + INTERVAL 10 seconds AS window_end, count(*) AS bids, max(price) AS top
            FROM bid, range(5) AS slides(back) GROUP BY ALL""",
        digest="auction, epoch_us(window_start), epoch_us(window_end), bids, top",
    ),
    Case(
        name="session",
        title="`std.session_window`: bids of a bidder less than a second apart",
        operator="std.session_window",
        config={"gap": f"{GAP_US}us", "keys": ["bidder"], "aggregates": _COUNT_AND_MAX},
        tables=("bid",),
        sql=f"""
            WITH gaps AS (
                SELECT *, date_time - lag(date_time) OVER (PARTITION BY bidder ORDER BY date_time) AS gap FROM bid),
            numbered AS (
                SELECT *, count(*) FILTER (WHERE gap >= INTERVAL {GAP_US} microseconds)
                    OVER (PARTITION BY bidder ORDER BY date_time) AS session FROM gaps)
            SELECT bidder, min(date_time) AS window_start,
                max(date_time) + INTERVAL {GAP_US} microseconds AS window_end, count(*) AS bids, max(price) AS top
            FROM numbered GROUP BY bidder, session""",
        digest="bidder, epoch_us(window_start), epoch_us(window_end), bids, top",
    ),
    Case(
        name="updating",
        title="`std.updating_aggregate`: bids and the highest of each auction so far, with every change",
        operator="std.updating_aggregate",
        config={"keys": ["auction"], "aggregates": _COUNT_AND_MAX, "flush_interval": "1h"},
        tables=("bid",),
        sql="SELECT auction, count(*) AS bids, max(price) AS top FROM bid GROUP BY auction",
        digest="auction, bids, top",
        sink={"updating": "keep_meta"},
    ),
    Case(
        name="window_join",
        title="`std.window_join`: auctions with bids of the same 10 s",
        operator="std.window_join",
        config={"size": "10s", "on": _ON},
        tables=("auction", "bid"),
        sql=f"""
            SELECT {_JOINED} FROM auction AS a JOIN bid AS b
                ON id = b.auction AND {_in_windows(10, "a.date_time")} = {_in_windows(10, "b.date_time")}""",
        digest=_PAIR,
    ),
    Case(
        name="interval_join",
        title="`std.interval_join`: auctions with bids of their first 10 s",
        operator="std.interval_join",
        config={"lower": "0s", "upper": "10s", "on": _ON},
        tables=("auction", "bid"),
        sql=f"""
            SELECT {_JOINED} FROM auction AS a JOIN bid AS b
                ON id = b.auction AND b.date_time BETWEEN a.date_time AND a.date_time + INTERVAL 10 seconds""",
        digest=_PAIR,
    ),
    Case(
        name="join",
        title="`std.join`: auctions with all their bids",
        operator="std.join",
        config={"on": _ON},
        tables=("auction", "bid"),
        sql=f"SELECT {_JOINED} FROM auction AS a JOIN bid AS b ON id = b.auction",
        digest=_PAIR,
    ),
)


def case_of(name: str) -> Case:
    return next(case for case in CASES if case.name == name)
