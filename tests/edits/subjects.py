"""The pipelines that are edited: one for each operator with state, and what DuckDB says of it.

`FIRED` is where event time is when the first part has been read: 20 seconds before its last row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .streams import Row

FIRED = 38
COUNT = {"function": "count", "as": "n"}
TOTAL = {"function": "sum", "column": "v", "as": "total"}
WIDEST = {"function": "max", "column": "w", "as": "widest"}

ORDERS = {"k": "int64", "v": "int64", "w": "int64", "n": "int64"}
PRICES = {"k": "int64", "p": "int64", "m": "int64"}


def stream(table: str, columns: Mapping[str, str], *, lateness: str = "20s") -> list[Row]:
    """A source, and its event time."""
    config = {"table": table, "columns": [f"{name} {kind}" for name, kind in columns.items()]}
    timed = node("watermark", table, name=f"{table}_timed", max_lateness=lateness)
    return [
        {"id": table, "operator": "edits.parts", "parallelism": 1, "config": config},
        {**timed, "parallelism": 1},
    ]


def sink(source: str) -> Row:
    return {"id": "out", "operator": "edits.sink", "inputs": [source], "config": {}}


def node(operator: str, *inputs: str, name: str = "subject", **config: Any) -> Row:
    return {"id": name, "operator": f"std.{operator}", "inputs": list(inputs), "config": config}


@dataclass(frozen=True)
class Aggregated:
    """A window, or an updating aggregate: `groups` is a query that gives each row a group, and when that fires."""

    family: str
    operator: str
    config: Mapping[str, Any]
    groups: str
    #: The columns of the output that tell groups apart.
    keys: str
    #: What an aggregate that was added gives for a group that got no row since: what it gives for no rows, or null.
    is_sent_again: bool = True
    is_updating_input: bool = False

    def nodes(
        self,
        aggregates: Sequence[Row],
        columns: Mapping[str, str] = ORDERS,
        keys: Sequence[str] = ("k",),
        *,
        lateness: str = "20s",
        **config: Any,
    ) -> list[Row]:
        settings = {"keys": list(keys), "aggregates": list(aggregates), **self.config, **config}
        source, before = "orders_timed", []
        if self.is_updating_input:
            before = [node("deduplicate", source, name="last", keys=["k", "n"], keep="last", ttl="0s")]
            source = "last"
        return [
            *stream("orders", columns, lateness=lateness),
            *before,
            node(self.operator, source, **settings),
            sink("subject"),
        ]

    def answer(self, **results: str) -> str:
        """The groups with these expressions, over all their rows."""
        shown = "".join(f", {sql} AS {name}" for name, sql in results.items())
        return f"SELECT {self.keys}, count(*) AS n{shown} FROM ({self.groups}) GROUP BY ALL"

    def since(self, sql: str, *, part: int = 2, fired: int = FIRED) -> str:
        """An aggregate over the rows since a part, in the groups that it finds."""
        rows = f"{sql} FILTER (WHERE part >= {part})"
        if self.is_sent_again:
            return f"CASE WHEN max(fires) > {fired} THEN {rows} END"
        return f"CASE WHEN count(*) FILTER (WHERE part >= {part}) > 0 THEN {rows} END"


_SESSIONS = """
    SELECT *, min(t) OVER s AS window_start, max(t) OVER s + 9 AS fires FROM (
        SELECT *, sum(is_first) OVER (PARTITION BY k ORDER BY t, n ROWS UNBOUNDED PRECEDING) AS session FROM (
            SELECT *, CASE WHEN t - lag(t) OVER (PARTITION BY k ORDER BY t, n) < 9 THEN 0 ELSE 1 END AS is_first
            FROM orders))
    WINDOW s AS (PARTITION BY k, session)
"""
_TUMBLING = "SELECT *, t // 10 * 10 AS window_start, t // 10 * 10 + 10 AS fires FROM orders"
_SLIDING = """
    SELECT *, window_start + 20 AS fires
    FROM (SELECT *, unnest([t // 10 * 10, t // 10 * 10 - 10]) AS window_start FROM orders)
"""

TUMBLING = Aggregated("windows", "tumbling_window", {"size": "10s"}, _TUMBLING, "k, window_start")
EARLY = Aggregated(
    "windows", "tumbling_window", {"size": "10s", "early": "1h"}, _TUMBLING, "k, window_start", is_sent_again=False
)
SLIDING = Aggregated("windows", "sliding_window", {"size": "20s", "slide": "10s"}, _SLIDING, "k, window_start")
SESSION = Aggregated("windows", "session_window", {"gap": "9s"}, _SESSIONS, "k, window_start")
UPDATING = Aggregated(
    "updating_aggregate", "updating_aggregate", {"ttl": "0s"}, "FROM orders", "k", is_sent_again=False
)
CHANGES = Aggregated(
    "updating_aggregate",
    "updating_aggregate",
    {"ttl": "0s"},
    "FROM orders",
    "k",
    is_sent_again=False,
    is_updating_input=True,
)
AGGREGATED = {
    "tumbling": TUMBLING,
    "tumbling early": EARLY,
    "sliding": SLIDING,
    "session": SESSION,
    "updating": UPDATING,
}


@dataclass(frozen=True)
class Rowwise:
    """A join, or what keeps rows of one stream: `rows` is a query for the output, of `o` (and `p`), by columns."""

    family: str
    operator: str
    config: Mapping[str, Any]
    rows: str
    is_join: bool = False
    is_windowed: bool = False
    is_updating_input: bool = False

    def nodes(
        self, columns: Mapping[str, str] = ORDERS, prices: Mapping[str, str] = PRICES, **config: Any
    ) -> list[Row]:
        found, source = stream("orders", columns), "orders_timed"
        settings = {**self.config, **config}
        if self.is_windowed:
            found.append(node("assign_window", source, name="windows", size="10s"))
            source = "windows"
        if self.is_updating_input:
            found.append(node("deduplicate", source, name="last", keys=["k", "n"], keep="last", ttl="0s"))
            source = "last"
        if self.is_join:
            found += stream("prices", prices)
            return [*found, node(self.operator, source, "prices_timed", **settings), sink("subject")]
        return [*found, node(self.operator, source, **settings), sink("subject")]

    def answer(self, *columns: str) -> str:
        return self.rows.format(", ".join(columns))

    @property
    def told(self) -> tuple[str, ...]:
        """Columns by which rows are told apart."""
        return ("o.n", "p.m") if self.is_join else ("o.n",)


_ON = {"on": [{"left": "k"}]}
JOIN = Rowwise("joins", "join", {**_ON, "ttl": "1h"}, "SELECT {} FROM orders o JOIN prices p USING (k)", is_join=True)
LEFT_JOIN = Rowwise(
    "joins",
    "join",
    {**_ON, "ttl": "1h", "type": "left"},
    "SELECT {} FROM orders o LEFT JOIN prices p USING (k)",
    is_join=True,
)
JOIN_OF_CHANGES = Rowwise("joins", "join", {**_ON, "ttl": "1h"}, "", is_join=True, is_updating_input=True)
INTERVAL_JOIN = Rowwise(
    "joins",
    "interval_join",
    {**_ON, "lower": "-5s", "upper": "5s", "type": "left"},
    "SELECT {} FROM orders o LEFT JOIN prices p ON o.k = p.k AND p.t BETWEEN o.t - 5 AND o.t + 5",
    is_join=True,
)
WINDOW_JOIN = Rowwise(
    "joins",
    "window_join",
    {**_ON, "size": "10s"},
    "SELECT {} FROM orders o JOIN prices p ON o.k = p.k AND o.t // 10 = p.t // 10",
    is_join=True,
)
ASOF_JOIN = Rowwise(
    "joins",
    "asof_join",
    {**_ON, "tolerance": "5s"},
    """SELECT {} FROM orders o LEFT JOIN prices p ON o.k = p.k AND p.t = (
        SELECT max(q.t) FROM prices q WHERE q.k = o.k AND q.t BETWEEN o.t - 5 AND o.t)""",
    is_join=True,
)
LAST = Rowwise(
    "deduplicate",
    "deduplicate",
    {"keys": ["k"], "keep": "last", "ttl": "0s"},
    "SELECT {} FROM orders o QUALIFY row_number() OVER (PARTITION BY o.k ORDER BY o.t DESC, o.n DESC) = 1",
)
FIRST = Rowwise(
    "deduplicate",
    "deduplicate",
    {"keys": ["k"], "keep": "first", "ttl": "0s"},
    "SELECT {} FROM orders o QUALIFY row_number() OVER (PARTITION BY o.k ORDER BY o.part, o.t, o.n) = 1",
)
_BY_V = {"order_by": [{"column": "v", "descending": True}]}
TOP = Rowwise(
    "top_n",
    "top_n",
    {"n": 3, "partition_by": ["k"], **_BY_V},
    "SELECT {} FROM orders o QUALIFY row_number() OVER (PARTITION BY o.k ORDER BY o.v DESC) <= 3",
)
TOP_OF_WINDOWS = Rowwise(
    "top_n",
    "top_n",
    {"n": 1, "partition_by": ["window_start", "k"], **_BY_V},
    "SELECT {} FROM orders o QUALIFY row_number() OVER (PARTITION BY o.t // 10, o.k ORDER BY o.v DESC) = 1",
    is_windowed=True,
)
TOP_OF_CHANGES = Rowwise("top_n", "top_n", {"n": 3, "partition_by": ["k"], **_BY_V}, "", is_updating_input=True)
PLACES = Rowwise(
    "window_function",
    "window_function",
    {"expressions": {"place": "row_number() over (partition by window_start, k order by v desc)"}},
    "SELECT {}, row_number() OVER (PARTITION BY o.t // 10, o.k ORDER BY o.v DESC) AS place FROM orders o",
    is_windowed=True,
)
STEPS = Rowwise(
    "neighbors",
    "neighbors",
    {
        "keys": ["k"],
        "order_by": [{"column": "n"}],
        "values": [{"function": "lag", "column": "v", "as": "before"}],
        "ttl": "0s",
    },
    "SELECT {}, lag(o.v) OVER (PARTITION BY o.k ORDER BY o.t, o.n) AS before FROM orders o",
)
ROWWISE = {
    "join": JOIN,
    "left join": LEFT_JOIN,
    "interval join": INTERVAL_JOIN,
    "window join": WINDOW_JOIN,
    "asof join": ASOF_JOIN,
    "last": LAST,
    "first": FIRST,
    "top-n": TOP,
    "top-n of windows": TOP_OF_WINDOWS,
    "places": PLACES,
    "steps": STEPS,
}
