"""What DataFusion cannot parse, written as something that it can: window table functions, lookups in time, and fields
of what is computed.

Places stay known: a rewritten query maps its characters back to those that were written.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from arroyo_std.json_operators import PlainSql, plain_sql

from arroyo_core.api.units import parse_duration_us
from arroyo_core.errors import ConfigError, Location, PipelineError
from arroyo_sql.planner.query_tokens import Token, find_words, tokens_of
from arroyo_sql.planner.relations import Window
from arroyo_sql.script import Text

_TABLE_FUNCTIONS = {"TUMBLE": "tumble", "HOP": "hop", "SESSION": "session", "CUMULATE": "cumulate"}


@dataclass(frozen=True, slots=True)
class TableFunction:
    """A call of a window table function: the table `name` stands for it in the rewritten query."""

    name: str
    table: str
    time: str
    window: Window
    at: Location
    time_at: Location


@dataclass(frozen=True, slots=True)
class Origin:
    """A query without operators over JSON, and the text that it was made of."""

    plain: PlainSql
    text: Text

    @classmethod
    def of(cls, text: Text) -> Origin:
        """Raises `PipelineError` for operators over JSON that are written in a wrong way."""
        try:
            return cls(plain_sql(text.sql), text)
        except ConfigError as error:
            raise PipelineError(error.message, at=text.at, value=error.value) from error

    @property
    def sql(self) -> str:
        return self.plain.sql

    def locate(self, offset: int) -> Location:
        return self.text.locate(self.plain.original_offset(offset))


@dataclass(frozen=True, slots=True)
class QueryText:
    """A query as DataFusion gets it; places are those of the text that was written."""

    sql: str
    source: Origin
    #: Offsets in `sql`, and the offsets in the source that they came from.
    steps: tuple[tuple[int, int], ...] = ((0, 0),)
    table_functions: tuple[TableFunction, ...] = ()
    #: Tables that are read as of a time, with the place of that.
    lookups: tuple[tuple[str, Location], ...] = ()

    @property
    def start(self) -> Location:
        return self.source.locate(0)

    def locate(self, offset: int) -> Location:
        index = bisect_right(self.steps, offset, key=lambda step: step[0]) - 1
        at, source = self.steps[max(index, 0)]
        return self.source.locate(source + offset - at)

    def locate_in_lines(self, line: int, column: int) -> Location:
        lines = self.sql.split("\n")
        return self.locate(sum(len(text) + 1 for text in lines[: max(line - 1, 0)]) + max(column - 1, 0))

    def find(self, *words: str) -> Location:
        """The place of the first of these words that is in the query; that of the query where none is.

        A word may be several, one after the other: `ORDER BY`.
        """
        return find_words(self.source.text, words) or self.start

    def find_use(self, *words: str) -> Location:
        """As `find`, but not where the word is given as a name: behind AS."""
        tokens = tokens_of(self.source.text.sql)
        for word in words:
            for before, token in zip([None, *tokens], tokens, strict=False):
                if token.folded == word.lower() and (before is None or before.word != "AS"):
                    return self.source.text.locate(token.start)
        return self.find(*words)

    def find_select_without_table(self) -> Location | None:
        """The place of the first SELECT of values alone: none of its words is FROM."""
        tokens = tokens_of(self.source.text.sql)
        for index, token in enumerate(tokens):
            if token.word == "SELECT" and not _has_from(tokens[index + 1 :]):
                return self.source.text.locate(token.start)
        return None

    def refuse(self, message: str, words: Sequence[str] = ()) -> PipelineError:
        """The error for a part of the query that cannot be planned, at the first of these words."""
        return PipelineError(message, at=self.find(*words))


def _has_from(tokens: Sequence[Token]) -> bool:
    """Whether a SELECT that goes on so reads a table, before its end or a query beside it."""
    depth = 0
    for token in tokens:
        depth += token.text in ("(", "[")
        depth -= token.text in (")", "]")
        if depth < 0 or (depth == 0 and token.word in ("UNION", "EXCEPT", "INTERSECT")):
            return False
        if depth == 0 and token.word == "FROM":
            return True
    return False


@dataclass(slots=True)
class _Rewriter:
    source: Origin
    tokens: list[Token]
    at: int = 0
    copied: int = 0
    parts: list[str] = field(default_factory=list)
    length: int = 0
    steps: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    functions: list[TableFunction] = field(default_factory=list)
    lookups: list[tuple[str, Location]] = field(default_factory=list)

    def replace(self, start: int, end: int, text: str) -> None:
        """Put `text` where the source has what is from `start` to `end`."""
        before = self.source.sql[self.copied : start]
        for piece, origin in ((before, self.copied), (text, start)):
            self.steps.append((self.length, origin))
            self.parts.append(piece)
            self.length += len(piece)
        self.copied = end
        self.steps.append((self.length, end))

    def words(self, *expected: str) -> bool:
        span = self.tokens[self.at : self.at + len(expected)]
        return [token.word for token in span] == list(expected)

    def skip(self, *expected: str) -> bool:
        found = self.words(*expected)
        self.at += len(expected) if found else 0
        return found

    def fail(self, message: str) -> PipelineError:
        token = self.tokens[min(self.at, len(self.tokens) - 1)]
        return PipelineError(message, at=self.source.locate(token.start), value=token.text)


def rewrite(text: Text, *, name_of: Callable[[int], str]) -> QueryText:
    """The query as DataFusion can parse it; `name_of` makes the names of tables that stand for table functions.

    Raises `PipelineError` for a table function that is written in a wrong way.
    """
    source = Origin.of(text)
    state = _Rewriter(source, tokens_of(source.sql))
    while state.at < len(state.tokens):
        if state.words("TABLE", "(") and state.at + 2 < len(state.tokens):
            _table_function(state, name_of, is_wrapped=True)
        elif _is_bare_table_function(state):
            _table_function(state, name_of, is_wrapped=False)
        elif state.tokens[state.at].text.startswith("`"):
            _backquoted(state)
        elif state.words("FOR", "SYSTEM_TIME", "AS", "OF"):
            _lookup(state)
        elif state.words("WINDOW", "("):
            _spark_window(state)
        elif state.words("]", ".") or state.words(")", "."):
            _fields(state)
        else:
            state.at += 1
    state.replace(len(source.sql), len(source.sql), "")
    return QueryText("".join(state.parts), source, tuple(state.steps), tuple(state.functions), tuple(state.lookups))


def _is_bare_table_function(state: _Rewriter) -> bool:
    """Whether a window table function stands here without TABLE() around it."""
    kind = state.tokens[state.at].word
    return kind in _TABLE_FUNCTIONS and (state.words(kind, "(", "TABLE") or state.words(kind, "(", "DATA", "=>"))


def _backquoted(state: _Rewriter) -> None:
    """Write a name in backquotes in double quotes; DataFusion has no backquotes."""
    token = state.tokens[state.at]
    quoted = token.name.replace('"', '""')
    state.replace(token.start, token.end, f'"{quoted}"')
    state.at += 1


def _table_function(state: _Rewriter, name_of: Callable[[int], str], *, is_wrapped: bool) -> None:
    start = state.tokens[state.at]
    state.at += 2 if is_wrapped else 0
    token = state.tokens[state.at]
    kind = _TABLE_FUNCTIONS.get(token.word)
    if kind is None or not (state.at + 1 < len(state.tokens) and state.tokens[state.at + 1].text == "("):
        return
    if kind == "cumulate":
        raise state.fail(
            "CUMULATE() is not supported: use HOP(), or TUMBLE() with the option early of std.tumbling_window"
        )
    state.at += 2
    form = f"{token.word}(TABLE table, DESCRIPTOR(column), INTERVAL ...)"
    state.skip("DATA", "=>")
    if not state.skip("TABLE"):
        raise state.fail(f"a window table function is written {form}")
    table = _name(state, form)
    if state.skip("PARTITION", "BY"):
        raise state.fail("PARTITION BY is not supported here: group by these columns")
    _expect(state, ",", form)
    for name in ("TIMECOL", "TIME_COL"):
        state.skip(name, "=>")
    if not state.skip("DESCRIPTOR", "("):
        raise state.fail(f"a window table function is written {form}")
    time_at = _here(state)
    time = _name(state, form)
    _expect(state, ")", form)
    sizes = []
    while state.skip(","):
        for name in ("SIZE", "SLIDE", "GAP"):
            state.skip(name, "=>")
        sizes.append(_interval(state, form))
    end = state.tokens[min(state.at, len(state.tokens) - 1)]
    _expect(state, ")", form)
    if is_wrapped:
        end = state.tokens[min(state.at, len(state.tokens) - 1)]
        _expect(state, ")", form)
    if len(sizes) != (2 if kind == "hop" else 1):
        raise PipelineError(
            f"{token.word}() takes {'a slide and a size' if kind == 'hop' else 'one interval'}",
            at=state.source.locate(token.start),
        )
    window = make_window(kind, sizes, at=state.source.locate(token.start))
    name = name_of(len(state.functions))
    state.functions.append(TableFunction(name, table, time, window, state.source.locate(start.start), time_at))
    state.replace(start.start, end.end, name)


def make_window(kind: str, sizes: Sequence[int], *, at: Location) -> Window:
    """The window of a function, of its intervals in microseconds: of `hop` the slide first."""
    if any(size <= 0 for size in sizes):
        raise PipelineError("a window is longer than nothing", at=at)
    if kind != "hop":
        return Window(kind, sizes[0])
    slide, size = sizes
    if size % slide:
        raise PipelineError("the size of hop() must be a multiple of its slide", at=at)
    return Window("tumble", size) if slide == size else Window("hop", size, slide)


def _lookup(state: _Rewriter) -> None:
    """Drop `FOR SYSTEM_TIME AS OF x`: the table must be one that is looked up."""
    start = state.tokens[state.at]
    table = state.tokens[state.at - 1].name if state.at else ""
    state.at += 4
    while state.at < len(state.tokens) and state.tokens[state.at].kind in ("word", "quoted"):
        state.at += 1
        if state.skip("(", ")") or not state.skip("."):
            break
    state.replace(start.start, state.tokens[state.at - 1].end, "")
    state.lookups.append((table, state.source.locate(start.start)))


def _spark_window(state: _Rewriter) -> None:
    """`window(time, size[, slide])` of Spark, which differs from a column that is called window by its arguments."""
    token, depth, commas, index = state.tokens[state.at], 0, 0, state.at + 1
    while index < len(state.tokens):
        text = state.tokens[index].text
        depth += text in "([" and state.tokens[index].kind == "mark"
        depth -= text in ")]" and state.tokens[index].kind == "mark"
        commas += depth == 1 and text == ","
        if depth == 0:
            break
        index += 1
    state.replace(token.start, token.end, "spark_hop" if commas == 2 else "spark_window")
    state.at += 2


def _fields(state: _Rewriter) -> None:
    """Write `items[1].sku` as `items[1]['sku']`: only names may be followed by a dot."""
    state.at += 1
    while state.words(".") and state.at + 1 < len(state.tokens):
        dot, field_name = state.tokens[state.at : state.at + 2]
        if field_name.kind not in ("word", "quoted"):
            return
        quoted = field_name.name.replace("'", "''")
        state.replace(dot.start, field_name.end, f"['{quoted}']")
        state.at += 2


def _here(state: _Rewriter) -> Location:
    return state.source.locate(state.tokens[min(state.at, len(state.tokens) - 1)].start)


def _name(state: _Rewriter, form: str) -> str:
    if state.at >= len(state.tokens) or state.tokens[state.at].kind not in ("word", "quoted"):
        raise state.fail(f"a name is missing in {form}")
    state.at += 1
    return state.tokens[state.at - 1].name


def _expect(state: _Rewriter, mark: str, form: str) -> None:
    if not state.skip(mark):
        raise state.fail(f"{mark!r} is missing in {form}")


def _interval(state: _Rewriter, form: str) -> int:
    """`INTERVAL '10' SECOND` or `INTERVAL '10 seconds'`, in microseconds."""
    if (
        not state.skip("INTERVAL")
        or state.at >= len(state.tokens)
        or state.tokens[state.at].kind not in ("string", "number")
    ):
        raise state.fail(f"an INTERVAL is missing in {form}")
    text = state.tokens[state.at].text.strip("'")
    state.at += 1
    if state.at < len(state.tokens) and state.tokens[state.at].kind == "word":
        text = f"{text} {state.tokens[state.at].text}"
        state.at += 1
    found = duration_us(text)
    if found is None:
        state.at -= 1
        raise state.fail(f"{text!r} is not the size of a window: write INTERVAL '10 seconds'")
    return found


_UNITS = {
    "microsecond": "us",
    "millisecond": "ms",
    "second": "s",
    "sec": "s",
    "minute": "m",
    "min": "m",
    "hour": "h",
    "day": "d",
    "week": "w",
}


def duration_us(text: str) -> int | None:
    """Microseconds of `10 seconds`, `1 day 2 hours` or `10s`; None for what is no duration of fixed length."""
    total = 0
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)", text)
    if not parts or re.sub(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)|[\s,]+", "", text):
        return None
    for number, word in parts:
        unit = word.lower()
        unit = _UNITS.get(unit) or _UNITS.get(unit.removesuffix("s")) or unit
        factor = 7 if unit == "w" else 1
        try:
            total += factor * parse_duration_us(f"{number}{'d' if unit == 'w' else unit}")
        except ValueError:
            return None
    return total
