"""What an edit of a script is, and the scripts that are edited.

The title of an edit is that of its line in the table of `docs/sql.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from .streams import OUT
from .subjects import FIRED, TUMBLING, UPDATING


class Verdict(StrEnum):
    """What a start says of an edit."""

    KEPT = "kept"
    #: Goes on from empty state of some nodes, when it may.
    DROP = "refused, `--allow-drop`"
    #: Goes on with the state as it is, when it may.
    CHANGE = "refused, `--allow-change`"


@dataclass(frozen=True, kw_only=True)
class SqlEdit:
    """One edit of one script: the scripts of its lives, and what comes out, by the name of the output."""

    title: str
    subject: str
    lives: Sequence[str]
    verdict: Verdict = Verdict.KEPT
    #: What DuckDB is asked. For an edit that is refused, what comes out with the flag; empty where nothing exact does.
    answers: Mapping[str, str] = field(default_factory=dict)
    #: A part of what the start says of it.
    says: str = ""
    #: Names that columns of the output had before.
    former: Mapping[str, str] = field(default_factory=dict)
    #: The nodes that may be changed, where it is refused.
    nodes: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.title}: {self.subject}"

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(self.answers) or (OUT,)


def table(name: str, columns: str, *, delay: str = "20 seconds") -> str:
    listed = ", ".join(f"'{column.strip()}'" for column in columns.split(","))
    return (
        f"CREATE TABLE {name} (WATERMARK FOR at AS at - INTERVAL '{delay}')\n"
        f"WITH (connector = 'edits', type = 'source', table = '{name}', columns = [{listed}]);\n"
    )


def sink(name: str = OUT) -> str:
    return f"CREATE TABLE {name} WITH (connector = 'edits', type = 'sink', name = '{name}');\n"


ORDERS = table("orders", "k int64, v int64, w int64, n int64, x int64")
PRICES = table("prices", "k int64, p int64, m int64, y int64")
SINK = sink()


def script(query: str, *, before: str = "", orders: str = ORDERS, ttl: str = "1 hour") -> str:
    """A script whose one query writes to the output."""
    return f"SET updating_ttl = '{ttl}';\n{orders}{PRICES}{SINK}{before}INSERT INTO {OUT}\n{query};\n"


def windows(
    select: str = "k, window.start AS window_start, n, total",
    *,
    aggregates: str = "count(*) AS n, sum(v) AS total",
    window: str = "tumble(INTERVAL '10 seconds')",
    where: str = "",
    keys: str = "k",
    having: str = "",
    orders: str = ORDERS,
) -> str:
    return script(
        f"SELECT {select} FROM (\n"
        f"  SELECT {keys}, {window} AS window, {aggregates} FROM orders {where} GROUP BY {keys}, window {having}\n)",
        orders=orders,
    )


def totals(select: str = "k, count(*) AS n, sum(v) AS total", *, rest: str = "", ttl: str = "1 hour") -> str:
    return script(f"SELECT {select} FROM orders {rest} GROUP BY k", ttl=ttl)


def view(name: str, *, ttl: str = "1 hour", ttl_behind: str | None = None) -> str:
    """A script whose query reads a view; another `updating_ttl` may stand between the two."""
    query = f"CREATE VIEW {name} AS SELECT k, count(*) AS n, sum(v) AS total FROM orders GROUP BY k;\n"
    if ttl_behind is not None:
        query += f"SET updating_ttl = '{ttl_behind}';\n"
    return script(f"SELECT k, n, total FROM {name}", before=query, ttl=ttl)


def joined(
    columns: str = "orders.n, prices.m, orders.v",
    *,
    tables: str = "orders JOIN prices",
    on: str = "orders.k = prices.k",
) -> str:
    return script(f"SELECT {columns} FROM {tables} ON {on}")


def highest(number: int = 3, *, order: str = "v DESC") -> str:
    return script(
        "SELECT k, n, v FROM (\n"
        f"  SELECT *, row_number() OVER (PARTITION BY k ORDER BY {order}) AS place FROM orders\n"
        f") WHERE place <= {number}"
    )


WINDOWS_ANSWER = TUMBLING.answer(total="sum(v)")
TOTALS_ANSWER = UPDATING.answer(total="sum(v)")
JOIN_ANSWER = "SELECT o.n, p.m, {} FROM orders o JOIN prices p USING (k)"
#: Windows that fired before the edit, and those of the rows since.
WINDOWS_FROM_EMPTY = f"""
    SELECT k, window_start, count(*) AS n, sum(v) AS total FROM ({TUMBLING.groups})
    WHERE part > 1 OR fires <= {FIRED}
    GROUP BY ALL
"""
#: What was sent of a group before the edit stands, beside the group of the rows since.
TOTALS_FROM_EMPTY = """
    SELECT k, count(*) AS n, sum(v) AS total FROM orders GROUP BY k, part > 1
"""
