"""What a query may end with at the prompt, where its rows have an end: ORDER BY, LIMIT and OFFSET."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from arroyo_core.errors import InvalidPipelineError, PipelineError
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_sql.lexer import Kind, SourceText, Token, tokenize
from arroyo_sql.prompt.collecting import Rows
from arroyo_sql.script import Text

_RESULT = "result"
_OPENING, _CLOSING = "([{", ")]}"


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a query, which is applied to its rows."""

    text: Text
    is_ordered: bool
    #: After so many rows the others make no difference; None where that is not known.
    enough: int | None


def split_ending(query: Text) -> tuple[Text, Ending | None]:
    """A query without its ending, and the ending, if it has one."""
    tokens = tokenize(SourceText("", query.sql), Mistakes())
    outer = _outer(tokens)
    first = next((index for index in outer if _begins(tokens, index)), None)
    if first is None:
        return query, None
    start = tokens[first].start
    words = [tokens[index] for index in outer if index >= first]
    is_ordered = any(token.is_word("ORDER") for token in words)
    ending = Ending(Text(query.sql[start:], query.locate(start)), is_ordered, None if is_ordered else _enough(words))
    return Text(query.sql[:start], query.at, query.written, query.shifts), ending


def apply_ending(ending: Ending, rows: Rows, limit: int) -> Rows:
    """The rows that are left, in their order. Raises `InvalidPipelineError` where that cannot be."""
    from datafusion import SessionContext

    if ending.is_ordered and rows.dropped:
        message = (
            f"the query gives more than {limit:,} rows, too many to sort at the prompt: aggregate them, or write them "
            "into a table of files"
        )
        raise InvalidPipelineError([PipelineError(message, at=ending.text.at)])
    session = SessionContext()
    table = _table(rows)
    session.register_record_batches(
        _RESULT, [table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]]
    )
    try:
        found = session.sql(f"SELECT * FROM {_RESULT} {ending.text.sql}").to_arrow_table()
    except Exception as error:
        reason = str(error).removeprefix("DataFusion error: ").split("\n")[0]
        names = ", ".join(rows.columns)
        message = f"ORDER BY and LIMIT at the prompt are over the columns of the result, {names}: {reason}"
        raise InvalidPipelineError([PipelineError(message, at=ending.text.at)]) from error
    left = Rows(limit, table.schema)
    for batch in found.cast(table.schema).to_batches():
        left.add(batch)
    return left


def _outer(tokens: list[Token]) -> list[int]:
    """Which tokens are outside of all parentheses."""
    depth, outer = 0, []
    for index, token in enumerate(tokens):
        if token.kind is Kind.SIGN and token.text in _CLOSING:
            depth -= 1
        elif token.kind is Kind.SIGN and token.text in _OPENING:
            depth += 1
        elif depth == 0:
            outer.append(index)
    return outer


def _begins(tokens: list[Token], index: int) -> bool:
    token = tokens[index]
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    if token.is_word("ORDER"):
        return after is not None and after.is_word("BY")
    return (token.is_word("LIMIT") or token.is_word("OFFSET")) and after is not None and after.kind is Kind.NUMBER


def _enough(words: list[Token]) -> int | None:
    """LIMIT and OFFSET together, where both are plain numbers."""
    found = {"limit": 0, "offset": 0}
    for word, number in pairwise(words):
        if word.value in found and word.kind is Kind.WORD:
            if not number.text.isdigit():
                return None
            found[word.value] = int(number.text)
    has_limit = any(word.is_word("LIMIT") for word in words)
    return found["limit"] + found["offset"] if has_limit else None


def _table(rows: Rows) -> pa.Table:
    schema = pa.schema([field for field in rows.schema or () if field.name in rows.columns])
    if not rows.is_updating:
        return pa.Table.from_batches([batch.select(schema.names) for batch in rows.batches], schema)
    columns = list(zip(*rows.final(), strict=True)) or [()] * len(schema)
    return pa.table(
        [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)], schema=schema
    )
