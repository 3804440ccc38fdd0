"""What is refused by the words of a query, or by its plan before it was optimised: the plan does not show it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from datafusion import Expr, LogicalPlan

from arroyo_core.errors import PipelineError
from arroyo_sql.planner.expressions import columns_of, conjuncts, literal_value, wrap
from arroyo_sql.planner.query_tokens import Token, tokens_of
from arroyo_sql.planner.rewriting import QueryText

#: Clauses that are parsed, and then mean nothing or something else.
_IGNORED: tuple[tuple[tuple[str, ...], str], ...] = (
    (("TABLESAMPLE",), "write WHERE random() < 0.5"),
    (("FOR", "UPDATE"), "leave it out, since a stream has no locks"),
    (("FOR", "SHARE"), "leave it out, since a stream has no locks"),
    (("FOR", "JSON"), "write the format into the sink's options"),
    (("FOR", "XML"), "write the format into the sink's options"),
    (("FOR", "BROWSE"), "leave it out"),
    (("INTERSECT", "ALL"), "write INTERSECT"),
    (("EXCEPT", "ALL"), "write EXCEPT"),
    (("MINUS", "ALL"), "write EXCEPT"),
    (("SORT", "BY"), "a stream has no order"),
    (("CLUSTER", "BY"), "rows are brought together by the keys of joins and groups"),
    (("DISTRIBUTE", "BY"), "rows are brought together by the keys of joins and groups"),
    (("CONNECT", "BY"), "join the table with itself once for each step"),
    (("START", "WITH"), "join the table with itself once for each step"),
    (("LATERAL", "VIEW"), "write unnest() in SELECT"),
    (("MATCH_RECOGNIZE",), "join the stream with itself between times"),
    (("PREWHERE",), "write WHERE"),
    (("COLLATE",), "compare lower(x)"),
    (("WITH", "TIES"), "keep rows with rank() <= n"),
    (("WITH", "ORDINALITY"), "number the elements with generate_series()"),
    (("WITH", "ROLLUP"), "write one query for each set of columns, and UNION ALL"),
    (("WITH", "CUBE"), "write one query for each set of columns, and UNION ALL"),
    (("WITH", "TOTALS"), "write one query for the totals, and UNION ALL"),
    (("USE", "INDEX"), "leave it out"),
    (("FORCE", "INDEX"), "leave it out"),
    (("IGNORE", "INDEX"), "leave it out"),
    (("PIVOT", "("), "write an aggregate with FILTER (WHERE ...) for each column"),
    (("UNPIVOT", "("), "write unnest() of a list"),
    (("*", "RENAME"), "write the columns with AS"),
    (("*", "ILIKE"), "write the columns out"),
    (("FETCH", "FIRST"), "number the rows with row_number(), and keep WHERE n <= 10"),
    (("FETCH", "NEXT"), "number the rows with row_number(), and keep WHERE n <= 10"),
    (("ASOF", "JOIN"), "use std.asof_join in YAML, or join between times"),
    (("AT", "TIME", "ZONE"), "times are in UTC; add an INTERVAL, or use to_char()"),
    (("JOIN", "UNNEST"), "write unnest() in SELECT"),
    (("SELECT", "STRAIGHT_JOIN"), "leave it out"),
)
_OUTER = frozenset({"LEFT", "RIGHT", "FULL"})


def check_words(text: QueryText) -> None:
    """Raise `PipelineError` where DataFusion would plan something else than what is written."""
    tokens = tokens_of(text.source.sql)
    words = [token.word for token in tokens]
    for index, token in enumerate(tokens):
        for phrase, instead in _IGNORED:
            if token.word == phrase[0] and tuple(words[index : index + len(phrase)]) == phrase:
                raise _at(text, token, f"{' '.join(phrase).rstrip(' (')} is not planned: {instead}")
        if token.word == "TOP" and index and words[index - 1] == "SELECT" and tokens[index + 1].kind == "number":
            raise _at(text, token, "TOP is not planned: number the rows with row_number(), and keep WHERE n <= 10")
        if token.word == "INTO":
            raise _at(text, token, "INTO stands in INSERT INTO, before the query")
        after = tokens[index + 1].word if index + 1 < len(tokens) else ""
        if token.word == "NATURAL" and after in ("JOIN", "INNER", *_OUTER):
            raise _at(text, token, "NATURAL JOIN depends on the names of all columns: write JOIN ... ON a.x = b.x")
        if token.word == "DATE_FORMAT" and after == "(":
            _check_pattern(text, tokens[index + 2 :])
        if token.word == "USING" and after == "(":
            _check_using(text, tokens, token)
        if token.word == "RECURSIVE" and index and tokens[index - 1].word == "WITH":
            raise _at(text, token, "a recursive query never ends on a stream: write the steps out")
        if token.word == "SELECT" and after == "FROM":
            raise _at(text, token, "SELECT needs columns: SELECT *, or their names")


def check_constant_conditions(asked: LogicalPlan, plan: LogicalPlan, text: QueryText) -> None:
    """Raise `PipelineError` where a condition without columns was moved below an aggregate without groups.

    DataFusion moves it there as any other that reads groups only. But such an aggregate has a row of no rows, too.
    """
    if any(map(_filters_by_constant, _totals(plan))) and _is_reduced_after_total(asked):
        raise text.refuse(
            "a condition that reads no column is not planned above an aggregate without GROUP BY: leave it out, or "
            "compare a column",
            ("false", "where", "having", "on"),
        )


def _totals(plan: LogicalPlan) -> Iterator[LogicalPlan]:
    """The aggregates without groups, at any depth."""
    if _is_total(plan):
        yield plan
    for below in plan.inputs():
        yield from _totals(below)


def _is_total(plan: LogicalPlan) -> bool:
    variant = plan.to_variant()
    return type(variant).__name__ == "Aggregate" and not variant.group_by_exprs()


def _filters_by_constant(plan: LogicalPlan) -> bool:
    """Whether some step below keeps rows by a condition without columns."""
    for below in plan.inputs():
        variant = below.to_variant()
        is_filter = type(variant).__name__ == "Filter"
        if is_filter and any(map(_is_constant, conjuncts(wrap(variant.predicate())))):
            return True
        if _filters_by_constant(below):
            return True
    return False


def _is_constant(condition: Expr) -> bool:
    """Whether it reads no column, and may not be true."""
    is_true = condition.variant_name() == "Literal" and literal_value(condition) is True
    return not columns_of(condition) and not is_true


def _is_reduced_after_total(plan: LogicalPlan, *, is_reduced: bool = False) -> bool:
    """Whether some aggregate without groups has a filter or a join above it, or may stand in an expression."""
    if "<subquery>" in plan.display() or (is_reduced and _is_total(plan)):
        return True
    is_reduced = is_reduced or type(plan.to_variant()).__name__ in ("Filter", "Join")
    return any(_is_reduced_after_total(below, is_reduced=is_reduced) for below in plan.inputs())


def _check_pattern(text: QueryText, arguments: list[Token]) -> None:
    """DataFusion has this name for `to_char()`, in whose patterns letters without a percent sign mean themselves."""
    depth, last = 1, None
    for token in arguments:
        depth += token.text == "("
        depth -= token.text == ")"
        if depth == 0:
            break
        last = token
    if last is not None and last.kind == "string" and "%" not in last.text:
        message = "date_format() has patterns such as '%Y-%m-%d' here, as to_char() has: letters alone mean themselves"
        raise _at(text, last, message)


def _check_using(text: QueryText, tokens: list[Token], using: Token) -> None:
    """DataFusion gives the column of the left side, and in another place than SQL says."""
    words = [token.word for token in tokens]
    if any(word in ("RIGHT", "FULL") for word, after in pairwise(words) if after in ("JOIN", "OUTER")):
        message = "USING in a RIGHT or FULL JOIN is not planned: write ON a.x = b.x, and which x is meant"
        raise _at(text, using, message)
    stars = [
        index for index, word in enumerate(words) if word == "*" and words[index - 1] in ("SELECT", ",", "DISTINCT")
    ]
    if stars:
        raise _at(text, using, "USING with SELECT * is not planned: name the columns, or write ON a.x = b.x")


def _at(text: QueryText, token: Token, message: str) -> PipelineError:
    return PipelineError(message, at=text.source.locate(token.start), value=token.text)
