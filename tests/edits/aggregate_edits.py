"""Edits of windows and of updating aggregates, with what comes out, or why they are refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from .edit import FILTERED, WINDOW_GEOMETRY, WITH_X, Edit, filtered, renamed, since_filtered
from .streams import Row
from .subjects import (
    AGGREGATED,
    CHANGES,
    COUNT,
    EARLY,
    ORDERS,
    SESSION,
    SLIDING,
    TOTAL,
    TUMBLING,
    UPDATING,
    WIDEST,
    Aggregated,
)

#: What is added: a function of every kind of state.
ADDED: Mapping[str, tuple[Row, str]] = {
    "c": ({"function": "count"}, "count(*)"),
    "few": ({"function": "count", "filter": "v > 50"}, "count(CASE WHEN v > 50 THEN 1 END)"),
    "total": ({"function": "sum", "column": "v"}, "sum(v)"),
    "least": ({"function": "min", "column": "v"}, "min(v)"),
    "mean": ({"function": "mean", "column": "v"}, "avg(v)"),
    "spread": ({"function": "stddev_pop", "column": "v"}, "stddev_pop(v)"),
    "both": ({"function": "covar_pop", "column": "v", "other": "w"}, "covar_pop(v, w)"),
    "kinds": ({"function": "count_distinct", "column": "w"}, "count(DISTINCT w)"),
    "about": ({"function": "approx_count_distinct", "column": "w"}, "count(DISTINCT w)"),
    "middle": ({"function": "median", "column": "v"}, "median(v)"),
    "opening": ({"function": "first", "column": "v"}, "arg_min(v, t * 1000 + n)"),
    "closing": ({"function": "last", "column": "v"}, "arg_max(v, t * 1000 + n)"),
    "bits": ({"function": "bit_or", "column": "v"}, "bit_or(v)"),
}
ALL_ADDED = [{**function, "as": name} for name, (function, _) in ADDED.items()]


def _aggregated(
    title: str,
    subject: Aggregated,
    lives: Sequence[Sequence[Row]],
    answer: str | None = None,
    says: str = "",
    name: str | None = None,
) -> Edit:
    shown = name or next(name for name, each in AGGREGATED.items() if each is subject)
    return Edit(title=title, subject=shown, family=subject.family, lives=lives, answer=answer, says=says)


def edits_of_aggregates() -> Iterator[Edit]:
    for subject in AGGREGATED.values():
        base = subject.nodes([COUNT])
        both = subject.nodes([COUNT, TOTAL])
        yield _aggregated(
            "an aggregate is added",
            subject,
            [base, subject.nodes([COUNT, *ALL_ADDED])],
            subject.answer(**{name: subject.since(sql) for name, (_, sql) in ADDED.items()}),
            "aggregate c added, aggregate few added, aggregate total added",
        )
        yield _aggregated("an aggregate is removed", subject, [both, base], subject.answer(), "aggregate total removed")
        yield _aggregated(
            "aggregates change their order",
            subject,
            [both, subject.nodes([TOTAL, COUNT])],
            subject.answer(total="sum(v)"),
        )
        named = _aggregated(
            "an aggregate gets another name (`as`)",
            subject,
            [subject.nodes([COUNT, {**TOTAL, "as": "sum"}]), both],
            subject.answer(total="sum(v)"),
            "aggregate sum goes on as aggregate total",
        )
        yield replace(named, former={"total": "sum"})
        # So late that all windows are open in all lives.
        open_base, open_both = (subject.nodes(each, lateness="1h") for each in ([COUNT], [COUNT, TOTAL]))
        yield _aggregated(
            "an aggregate is removed, and added again later",
            subject,
            [open_both, open_base, open_both],
            subject.answer(total=subject.since("sum(v)", part=3, fired=0)),
        )
        for other, says in [
            ({"filter": "v > 50"}, "aggregates sum(v) as total -> sum(v) where v > 50 as total"),
            ({"column": "w"}, "aggregates sum(v) as total -> sum(w) as total"),
            (
                {"function": "max"},
                "keeps aggregate total in total__count, total__sum in the checkpoint, and now in total__max",
            ),
        ]:
            yield _aggregated(
                "an aggregate has another function, column or filter under its name",
                subject,
                [both, subject.nodes([COUNT, {**TOTAL, **other}])],
                says=says,
            )
        yield _aggregated(
            "a column is added",
            subject,
            [base, subject.nodes([COUNT, {"function": "max", "column": "x", "as": "most"}], WITH_X)],
            subject.answer(most=subject.since("max(x)")),
            "aggregate most added",
        )
        yield _aggregated("a column is removed", subject, [subject.nodes([COUNT], WITH_X), base], subject.answer())
        widest = subject.nodes([COUNT, WIDEST], {**ORDERS, "w": "int32"})
        yield _aggregated(
            "`int32` becomes `int64`, or `float` `double`",
            subject,
            [widest, subject.nodes([COUNT, WIDEST])],
            subject.answer(widest="max(w)"),
            "column widest__max int32 -> int64",
        )
        yield _aggregated(
            "a column gets any other type",
            subject,
            [subject.nodes([COUNT, WIDEST]), subject.nodes([COUNT, WIDEST], {**ORDERS, "w": "string"})],
            says="has column widest__max as int64 in the checkpoint, and now it is string",
        )
        yield _aggregated(
            "a key gets another type",
            subject,
            [subject.nodes([COUNT], {**ORDERS, "k": "int32"}), base],
            says="has columns ['k int32'",
        )
        yield _aggregated(
            "keys change",
            subject,
            [base, subject.nodes([COUNT], keys=["k", "w"])],
            says="has key columns ('k',) in the checkpoint",
        )
        yield _aggregated(
            "a node gets another id, with `was`",
            subject,
            [both, renamed(both)],
            subject.answer(total="sum(v)"),
            "it was 'subject'",
        )
        yield _aggregated(
            "a node gets another id, without",
            subject,
            [both, renamed(both, says_so=False)],
            says="was it renamed to 'subject_2'?",
        )
        yield _aggregated(FILTERED, subject, [both, filtered(both)], since_filtered(subject.answer(total="sum(v)")))
        several = [{"function": "max", "column": "x", "as": "most"}, {**TOTAL, "as": "sum"}, COUNT]
        edit = _aggregated(
            "several of these at once",
            subject,
            [subject.nodes([COUNT, WIDEST, TOTAL]), renamed(subject.nodes(several, WITH_X))],
            subject.answer(sum="sum(v)", most=subject.since("max(x)")),
            "aggregate total goes on as aggregate sum, aggregate most added, aggregate widest removed",
        )
        yield replace(edit, former={"sum": "total"})
    for subject, config, says in [
        (TUMBLING, {"size": "20s"}, "size 10s -> 20s"),
        (EARLY, {"offset": "3s"}, "offset 0s -> 3s"),
        (SLIDING, {"slide": "5s"}, "slide 10s -> 5s"),
        (SESSION, {"gap": "12s"}, "gap 9s -> 12s"),
    ]:
        lives = [subject.nodes([COUNT]), subject.nodes([COUNT], **config)]
        yield _aggregated(WINDOW_GEOMETRY, subject, lives, says=says)
    yield _aggregated(
        "`allowed_lateness`",
        TUMBLING,
        [TUMBLING.nodes([COUNT]), TUMBLING.nodes([COUNT], allowed_lateness="5s")],
        says="allowed lateness 0s -> 5s",
    )
    yield _aggregated(
        "`ttl`", UPDATING, [UPDATING.nodes([COUNT]), UPDATING.nodes([COUNT], ttl="1h")], UPDATING.answer()
    )
    changes = CHANGES.nodes([COUNT])
    yield _aggregated(
        "an aggregate is added, and the input is updating",
        CHANGES,
        [changes, CHANGES.nodes([COUNT, TOTAL])],
        says="none may be new: rows from before may be taken back",
        name="of changes",
    )
    yield _aggregated(
        "an aggregate is removed",
        CHANGES,
        [CHANGES.nodes([COUNT, TOTAL]), changes],
        CHANGES.answer(),
        "aggregate total removed",
        name="of changes",
    )
