"""The queries of Nexmark: what each reads, and what DuckDB answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..modules import ROOT

_WITH_AUCTIONS = ("auction", "bid")

#: q12 by the clock has no answer that two runs share; this one has windows of the event time.
Q12_BY_EVENT_TIME = "q12e"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query, and how its answer is compared."""

    name: str
    title: str
    tables: Sequence[str] = ("bid",)
    #: The end of a row's window, over the columns of the answer; None where no row waits for the time.
    window_end: str | None = None
    #: For engines that write a key again when its row changes: the keys, and what the last row has most of.
    keys: str | None = None
    latest: str | None = None
    #: What of the rows is the same in all runs, where not all is: a query over `rows`.
    defined: str | None = None
    #: Columns that are not compared where times are cut to milliseconds: which of equal rows is the last is open.
    open_in_ms: Sequence[str] = ()

    @property
    def sql(self) -> str:
        """The question to DuckDB, over the tables `bid`, `auction` and `person`."""
        if self.name == Q12_BY_EVENT_TIME:
            return _Q12_BY_EVENT_TIME
        return (ROOT / "tests" / "nexmark" / f"{self.name}.sql").read_text()

    @property
    def pipeline(self) -> Path:
        """The example that asks the same."""
        return ROOT / "examples" / "nexmark" / f"{self.name.removesuffix('e')}.yaml"


_Q12_BY_EVENT_TIME = """
SELECT
    bidder,
    count(*) AS bid_count,
    time_bucket(INTERVAL 10 seconds, date_time) AS start_time,
    time_bucket(INTERVAL 10 seconds, date_time) + INTERVAL 10 seconds AS end_time
FROM bid
GROUP BY bidder, start_time, end_time
"""
_WINDOW_OF_BID = "time_bucket(INTERVAL 10 seconds, date_time) + INTERVAL 10 seconds"

QUERIES = {
    query.name: query
    for query in (
        Query(name="q0", title="pass through"),
        Query(name="q1", title="currency conversion"),
        Query(name="q2", title="selection"),
        Query(name="q3", title="local item suggestion", tables=("auction", "person")),
        Query(name="q4", title="average price for a category", tables=_WITH_AUCTIONS),
        Query(name="q5", title="hot items", window_end="window_end"),
        Query(name="q6", title="average selling price by seller", tables=_WITH_AUCTIONS),
        Query(name="q7", title="highest bid", window_end=_WINDOW_OF_BID),
        Query(
            name="q8",
            title="monitor new users",
            tables=("person", "auction"),
            window_end="window_start + INTERVAL 10 seconds",
        ),
        Query(name="q9", title="winning bids", tables=_WITH_AUCTIONS),
        Query(name="q10", title="log to file system"),
        Query(name="q11", title="user sessions", window_end="end_time"),
        Query(
            name="q12",
            title="windows by the clock",
            defined="SELECT bidder, sum(bid_count)::BIGINT AS bid_count FROM rows GROUP BY bidder",
        ),
        Query(name=Q12_BY_EVENT_TIME, title="the windows of q12 by event time", window_end="end_time"),
        Query(name="q13", title="bounded side input join"),
        Query(name="q14", title="calculation"),
        Query(name="q15", title="bidding statistics"),
        Query(name="q16", title="channel statistics"),
        Query(name="q17", title="auction statistics", keys="auction, day", latest="total_bids"),
        Query(
            name="q18",
            title="last bid",
            keys="bidder, auction",
            latest="date_time",
            open_in_ms=("price", "channel", "url", "extra"),
        ),
        Query(name="q19", title="auction top 10"),
        Query(name="q20", title="expand bid with auction", tables=("bid", "auction")),
        Query(name="q21", title="channel id"),
        Query(name="q22", title="URL directories"),
    )
}

#: What every engine is asked.
COMPARED = ("q0", "q1", "q2", "q5", "q7", "q8", "q11", Q12_BY_EVENT_TIME, "q17", "q18")
#: Those over which geometric means are taken.
AVERAGED = ("q0", "q1", "q2", "q5", "q7", "q8", "q11", Q12_BY_EVENT_TIME)
