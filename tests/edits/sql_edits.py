"""Edits of scripts, with what comes out, or why they are refused."""

from __future__ import annotations

from collections.abc import Iterator

from .edit import since_filtered
from .sql_edit import (
    JOIN_ANSWER,
    ORDERS,
    SINK,
    TOTALS_ANSWER,
    TOTALS_FROM_EMPTY,
    WINDOWS_ANSWER,
    WINDOWS_FROM_EMPTY,
    SqlEdit,
    Verdict,
    highest,
    joined,
    script,
    sink,
    table,
    totals,
    view,
    windows,
)
from .streams import OUT
from .subjects import FIRED, TUMBLING


def _kept(title: str, subject: str, before: str, after: str, answer: str, **more: object) -> SqlEdit:
    return SqlEdit(title=title, subject=subject, lives=[before, after], answers={OUT: answer}, **more)  # type: ignore[arg-type]


def _refused(
    title: str,
    subject: str,
    before: str,
    after: str,
    verdict: Verdict,
    says: str,
    answer: str | None = None,
    **more: object,
) -> SqlEdit:
    answers = {} if answer is None else {OUT: answer}
    return SqlEdit(
        title=title,
        subject=subject,
        lives=[before, after],
        verdict=verdict,
        says=says,
        answers=answers,
        **more,  # type: ignore[arg-type]
    )


def sql_edits() -> Iterator[SqlEdit]:
    yield from _of_text()
    yield from _of_columns()
    yield from _of_filters()
    yield from _of_statements()
    yield from _refused_for_settings()
    yield from _refused_for_columns_and_ids()


def _of_text() -> Iterator[SqlEdit]:
    base = windows()
    noisy = base.replace("SELECT", "/* every key */ select").replace("\n", "  -- as before\n")
    yield _kept("comments, spaces and the case of keywords", "a window", base, noisy, WINDOWS_ANSWER)
    alias = windows(
        "k, window.start AS window_start, orders AS n, total", aggregates="count(*) AS orders, sum(v) AS total"
    )
    yield _kept("an alias of a subquery changes", "a window", base, alias, WINDOWS_ANSWER)
    yield _kept(
        "a column of the output gets another name",
        "a window",
        base,
        windows("k, window.start AS window_start, n, total AS sum_v"),
        WINDOWS_ANSWER.replace("AS total", "AS sum_v"),
        former={"sum_v": "total"},
    )
    renamed = joined("o.n, p.m, o.v", tables="orders AS o JOIN prices AS p", on="o.k = p.k")
    yield _kept("a table gets an alias", "a join", joined(), renamed, JOIN_ANSWER.format("o.v"))
    with_query = (
        "WITH counted AS (\n  SELECT k, tumble(INTERVAL '10 seconds') AS window, count(*) AS n, sum(v) AS total"
        " FROM orders GROUP BY k, window\n)\nSELECT k, window.start AS window_start, n, total FROM counted"
    )
    yield _kept("a subquery becomes a WITH", "a window", base, script(with_query), WINDOWS_ANSWER)


def _of_columns() -> Iterator[SqlEdit]:
    base = windows()
    yield _kept(
        "columns change their order",
        "a window",
        base,
        windows("total, n, window.start AS window_start, k", aggregates="sum(v) AS total, count(*) AS n"),
        WINDOWS_ANSWER,
    )
    yield _kept(
        "an aggregate is added",
        "a window",
        base,
        windows(
            "k, window.start AS window_start, n, total, most",
            aggregates="count(*) AS n, sum(v) AS total, max(x) AS most",
        ),
        TUMBLING.answer(total="sum(v)", most=TUMBLING.since("max(x)")),
    )
    yield _kept(
        "an aggregate is added",
        "an updating aggregate",
        totals("k, count(*) AS n"),
        totals(),
        TOTALS_ANSWER.replace(
            "sum(v)", "CASE WHEN count(*) FILTER (WHERE part > 1) > 0 THEN sum(v) FILTER (WHERE part > 1) END"
        ),
    )
    yield _kept(
        "an aggregate is removed",
        "an updating aggregate",
        totals(),
        totals("k, count(*) AS n"),
        TOTALS_ANSWER.replace(", sum(v) AS total", ""),
    )
    yield _kept(
        "an expression of aggregates is added",
        "a window",
        base,
        windows("k, window.start AS window_start, n, total, total * 2 AS twice"),
        TUMBLING.answer(total="sum(v)", twice=f"CASE WHEN max(fires) > {FIRED} THEN sum(v) * 2 END"),
    )
    yield _kept(
        "a column is added to a join",
        "a join",
        joined(),
        joined("orders.n, prices.m, orders.v, orders.x"),
        JOIN_ANSWER.format("o.v, CASE WHEN o.part > 1 THEN o.x END AS x"),
        says="new column x is null in old rows",
    )
    yield _kept(
        "a column is removed from a join",
        "a join",
        joined("orders.n, prices.m, orders.v, orders.x"),
        joined(),
        JOIN_ANSWER.format("o.v"),
        says="column x is left out of old rows",
    )


def _of_filters() -> Iterator[SqlEdit]:
    base, even = windows(), windows(where="WHERE n % 2 = 0")
    yield _kept("a filter is added before a window", "a window", base, even, since_filtered(WINDOWS_ANSWER))
    yield _kept(
        "the condition of a filter changes",
        "a window",
        even,
        windows(where="WHERE n % 2 = 1"),
        WINDOWS_ANSWER.replace("FROM orders", "FROM orders WHERE n % 2 = CASE WHEN part = 1 THEN 0 ELSE 1 END"),
    )
    yield _kept(
        "a filter is added behind a window",
        "a window",
        base,
        windows(having="HAVING count(*) > 2"),
        f"{WINDOWS_ANSWER} HAVING count(*) > 2 OR max(fires) <= {FIRED}",
    )
    yield _kept("`updating_ttl`", "an updating aggregate", totals(), totals(ttl="2 hours"), TOTALS_ANSWER)
    yield _kept("`updating_ttl`", "a view", view("totals", ttl="1 hour"), view("totals", ttl="2 hours"), TOTALS_ANSWER)
    yield _kept(
        "a statement above a view gets an `updating_ttl`",
        "a view",
        view("totals", ttl="1 hour"),
        view("totals", ttl="1 hour", ttl_behind="1 day"),
        TOTALS_ANSWER,
    )
    slower = table("orders", "k int64, v int64, w int64, n int64, x int64", delay="30 seconds")
    yield _kept("the delay of a watermark", "a window", base, windows(orders=slower), WINDOWS_ANSWER)


def _of_statements() -> Iterator[SqlEdit]:
    base = totals()
    unread = "CREATE VIEW dear AS SELECT * FROM prices WHERE p > 50;\n"
    yield _kept(
        "a statement is added that nothing reads",
        "an updating aggregate",
        base,
        base.replace(SINK, SINK + unread),
        TOTALS_ANSWER,
    )
    yield _kept(
        "statements change their order",
        "an updating aggregate",
        base,
        base.replace(SINK, "").replace(ORDERS, SINK + ORDERS),
        TOTALS_ANSWER,
    )
    second = f"{sink('second')}INSERT INTO second SELECT n, v FROM orders;\n"
    since = "SELECT n, v FROM orders WHERE part > 1"
    yield SqlEdit(
        title="a second sink is added",
        subject="an updating aggregate",
        lives=[base, base + second],
        answers={OUT: TOTALS_ANSWER, "second": since},
    )
    yield SqlEdit(
        title="a sink is removed",
        subject="an updating aggregate",
        lives=[base + second, base],
        answers={OUT: TOTALS_ANSWER, "second": since.replace("> 1", "= 1")},
    )


def _refused_for_settings() -> Iterator[SqlEdit]:
    base = windows()
    sizes = "SELECT *, CASE WHEN part = 1 THEN t // 10 * 10 ELSE t // 20 * 20 END AS window_start FROM orders"
    yield _refused(
        "the size of a window",
        "a window",
        base,
        windows(window="tumble(INTERVAL '20 seconds')"),
        Verdict.CHANGE,
        "size 10s -> 20s",
        f"SELECT k, window_start, count(*) AS n, sum(v) AS total FROM ({sizes}) GROUP BY ALL",
        nodes=frozenset({"out_windows"}),
    )
    for title, after, says in [
        ("the number of rows of a top-N", highest(2), "n 3 -> 2"),
        ("the order of a top-N", highest(order="w DESC"), "order by v desc -> w desc"),
    ]:
        top = frozenset({"out_top"})
        yield _refused(title, "a top-N", highest(), after, Verdict.CHANGE, says, nodes=top)


def _refused_for_columns_and_ids() -> Iterator[SqlEdit]:
    base = windows()
    yield _refused(
        "a key is added to GROUP BY",
        "a window",
        base,
        windows("k, window.start AS window_start, n, total", keys="k, w"),
        Verdict.DROP,
        "has key columns ('k',) in the checkpoint",
    )
    yield _refused(
        "another window function",
        "a window",
        base,
        windows(window="hop(INTERVAL '10 seconds', INTERVAL '20 seconds')"),
        Verdict.DROP,
        "std.sliding_window",
    )
    yield _refused(
        "the columns of a join's equality",
        "a join",
        joined(),
        joined(on="orders.k = prices.k AND orders.v = prices.p"),
        Verdict.DROP,
        "has key columns",
    )
    yield _refused(
        "a JOIN becomes a LEFT JOIN",
        "a join",
        joined(),
        joined(tables="orders LEFT JOIN prices"),
        Verdict.DROP,
        "has no column _padded in the checkpoint",
    )
    yield _refused(
        "a view gets another name",
        "an updating aggregate",
        view("totals"),
        view("sums"),
        Verdict.DROP,
        "was it renamed to",
        TOTALS_FROM_EMPTY,
    )
    yield _kept(
        "a view gets another name, with `SET was`",
        "an updating aggregate",
        view("totals"),
        f"SET was.sums = 'totals';\n{view('sums')}",
        TOTALS_ANSWER,
        says="it was 'totals",
    )
    other = base.replace(f"TABLE {OUT} WITH", "TABLE result WITH").replace(f"INTO {OUT}", "INTO result")
    yield _refused(
        "a sink gets another name", "a window", base, other, Verdict.DROP, "was it renamed to", WINDOWS_FROM_EMPTY
    )
