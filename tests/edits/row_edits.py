"""Edits of joins and of what keeps rows, with what comes out, or why they are refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .edit import FILTERED, JOIN_BOUNDS, WINDOW_GEOMETRY, WITH_X, WITH_Y, Edit, filtered, renamed, since_filtered
from .streams import Row
from .subjects import (
    JOIN,
    JOIN_OF_CHANGES,
    LAST,
    LEFT_JOIN,
    ORDERS,
    PLACES,
    PRICES,
    ROWWISE,
    STEPS,
    TOP,
    TOP_OF_CHANGES,
    WINDOW_JOIN,
    Rowwise,
)

_SINCE_X, _SINCE_Y = "CASE WHEN o.part > 1 THEN o.x END AS x", "CASE WHEN p.part > 1 THEN p.y END AS y"


def _rowwise(
    title: str, name: str, subject: Rowwise, lives: Sequence[Sequence[Row]], answer: str | None = None, says: str = ""
) -> Edit:
    return Edit(title=title, subject=name, family=subject.family, lives=lives, answer=answer, says=says)


def edits_of_rows() -> Iterator[Edit]:
    for name, subject in ROWWISE.items():
        told = subject.told
        base = subject.nodes()
        added = subject.nodes(WITH_X, WITH_Y)
        since = [_SINCE_X, _SINCE_Y] if subject.is_join else [_SINCE_X]
        keeps_columns = name != "first"
        yield _rowwise(
            "a column is added",
            name,
            subject,
            [base, added],
            subject.answer(*told, *since),
            "new column x is null in old rows" if keeps_columns else "",
        )
        yield _rowwise(
            "a column is removed",
            name,
            subject,
            [added, base],
            subject.answer(*told, "o.v"),
            "column x is left out of old rows" if keeps_columns else "",
        )
        yield _rowwise(
            "columns change their order",
            name,
            subject,
            [added, subject.nodes(dict(reversed(WITH_X.items())), dict(reversed(WITH_Y.items())))],
            subject.answer(*told, "o.v", "o.w", "o.x", *(["p.p", "p.y"] if subject.is_join else [])),
        )
        yield _rowwise(
            "`int32` becomes `int64`, or `float` `double`",
            name,
            subject,
            [
                subject.nodes({**ORDERS, "w": "int32"}, {**PRICES, "p": "float"}),
                subject.nodes(ORDERS, {**PRICES, "p": "double"}),
            ],
            subject.answer(*told, "o.w", *(["p.p"] if subject.is_join else [])),
            "column w int32 -> int64" if keeps_columns else "",
        )
        if keeps_columns:
            yield _rowwise(
                "a column gets any other type",
                name,
                subject,
                [base, subject.nodes({**ORDERS, "w": "string"})],
                says="has column w as int64 in the checkpoint, and now it is string",
            )
        narrow, narrow_prices = {**ORDERS, "k": "int32"}, {**PRICES, "k": "int32"}
        yield _rowwise(
            "a key gets another type",
            name,
            subject,
            [subject.nodes(narrow, narrow_prices), base],
            says="'k int32'",
        )
        yield _rowwise(
            "a column is removed, and added again later",
            name,
            subject,
            [added, base, added],
            subject.answer(*told, *(each.replace("part > 1", "part > 2") for each in since)),
        )
        yield _rowwise(
            "a node gets another id, with `was`",
            name,
            subject,
            [base, renamed(base)],
            subject.answer(*told, "o.v"),
            "it was 'subject'",
        )
        yield _rowwise(
            "a node gets another id, without",
            name,
            subject,
            [base, renamed(base, says_so=False)],
            says="was it renamed to 'subject_2'?",
        )
        yield _rowwise(FILTERED, name, subject, [base, filtered(base)], since_filtered(subject.answer(*told, "o.v")))
        yield _rowwise(
            "several of these at once",
            name,
            subject,
            [
                subject.nodes({"s": "string", **ORDERS}),
                renamed(subject.nodes(dict(reversed(WITH_X.items())), WITH_Y)),
            ],
            subject.answer(*told, "o.v", *since),
            "it was 'subject'" + (", new column x is null in old rows, column s is left out" if keeps_columns else ""),
        )
    yield from _edits_of_settings()


def _edits_of_settings() -> Iterator[Edit]:
    yield _rowwise(
        "keys change",
        "join",
        JOIN,
        [JOIN.nodes(), JOIN.nodes(on=[{"left": "k"}, {"left": "v", "right": "p"}])],
        says="has key columns ('k',) in the checkpoint",
    )
    yield _rowwise(
        "keys change",
        "last",
        LAST,
        [LAST.nodes(), LAST.nodes(keys=["k", "n"])],
        says="has key columns ('k',) in the checkpoint",
    )
    yield _rowwise(
        "keys change",
        "top-n",
        TOP,
        [TOP.nodes(), TOP.nodes(partition_by=["k", "n"])],
        says="has key columns ('k',) in the checkpoint",
    )
    yield _rowwise(
        "keys change",
        "places",
        PLACES,
        [
            PLACES.nodes(),
            PLACES.nodes(expressions={"place": "row_number() over (partition by window_start order by v)"}),
        ],
        says="in the checkpoint, and is declared with ('window_start',)",
    )
    yield _rowwise(
        "keys change",
        "steps",
        STEPS,
        [STEPS.nodes(), STEPS.nodes(keys=["k", "w"])],
        says="has key columns ('k',) in the checkpoint",
    )
    yield _rowwise("`ttl`", "steps", STEPS, [STEPS.nodes(), STEPS.nodes(ttl="1h")], STEPS.answer(*STEPS.told))
    yield _rowwise("`ttl`", "join", JOIN, [JOIN.nodes(), JOIN.nodes(ttl="2h")], JOIN.answer(*JOIN.told))
    yield _rowwise("`ttl`", "last", LAST, [LAST.nodes(), LAST.nodes(ttl="1h")], LAST.answer(*LAST.told))
    for title, name, config, says in [
        (WINDOW_GEOMETRY, "window join", {"size": "20s"}, "size 10s -> 20s"),
        (JOIN_BOUNDS, "interval join", {"upper": "7s"}, "upper 5s -> 7s"),
        (JOIN_BOUNDS, "asof join", {"tolerance": "7s"}, "tolerance 5s -> 7s"),
    ]:
        subject = ROWWISE[name]
        yield _rowwise(title, name, subject, [subject.nodes(), subject.nodes(**config)], says=says)
    yield _rowwise(
        "`allowed_lateness`",
        "window join",
        WINDOW_JOIN,
        [WINDOW_JOIN.nodes(), WINDOW_JOIN.nodes(allowed_lateness="5s")],
        says="allowed lateness 0s -> 5s",
    )
    yield _rowwise(
        "the `type` of a join",
        "join",
        JOIN,
        [JOIN.nodes(), LEFT_JOIN.nodes()],
        says="has no column _padded in the checkpoint, which must stay so",
    )
    yield _rowwise(
        "the `type` of a join",
        "left join",
        LEFT_JOIN,
        [LEFT_JOIN.nodes(), JOIN.nodes()],
        says="has a column _padded in the checkpoint, which must stay so",
    )
    yield _rowwise("`keep`", "last", LAST, [LAST.nodes(), LAST.nodes(keep="first")], says="keep last -> first")
    yield _rowwise("`n`, `order_by`, `ties`", "top-n", TOP, [TOP.nodes(), TOP.nodes(n=2)], says="n 3 -> 2")
    yield _rowwise(
        "`n`, `order_by`, `ties`",
        "top-n",
        TOP,
        [TOP.nodes(), TOP.nodes(order_by=[{"column": "w"}])],
        says="order by v desc",
    )
    yield _rowwise(
        "`n`, `order_by`, `ties`",
        "steps",
        STEPS,
        [STEPS.nodes(), STEPS.nodes(order_by=[{"column": "w"}])],
        says="order by n -> w",
    )
    for name, subject in [("of changes", JOIN_OF_CHANGES), ("of changes", TOP_OF_CHANGES)]:
        yield _rowwise(
            "a column is added, and the input is updating",
            name,
            subject,
            [subject.nodes(), subject.nodes(WITH_X)],
            says="none may be new: rows from before may be taken back",
        )
