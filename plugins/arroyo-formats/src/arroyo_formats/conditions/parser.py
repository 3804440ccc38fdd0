"""Reads the conditions of SQL that bounds say anything about; others belong into a filter."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation

from arroyo_core.api.limits import EXPRESSION_CHARS
from arroyo_core.errors import ConfigError
from arroyo_formats.conditions.condition import MIRRORED, Both, Comparison, Condition, Either, IsNull, Not, Prefix
from arroyo_formats.conditions.literals import Constant, Day, Moment, read_day, read_moment
from arroyo_formats.conditions.numbers import (
    Number,
    NumberType,
    as_decimal,
    as_floating,
    as_whole,
    common_type,
    literal,
)

MAX_DEPTH = 50
#: Each of them is held against each row group.
MAX_TESTS = 1_000
ALLOWED = "=, <>, <, <=, >, >=, BETWEEN, IN, LIKE, IS NULL, AND, OR, NOT and brackets, between a column and constants"

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^']|'')*')|(?P<quoted>"(?:[^"]|"")+")|(?P<word>[^\W\d]\w*)"""
    r"""|(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)|(?P<sign><>|!=|<=|>=|[=<>(),+-]))"""
)
_OPERATORS = frozenset({"=", "<>", "!=", "<", "<=", ">", ">="})
_RESERVED = frozenset(
    {"AND", "OR", "NOT", "IN", "IS", "LIKE", "BETWEEN", "NULL", "CASE", "WHEN", "THEN", "ELSE", "END", "EXISTS"}
)
_WHOLE = frozenset({"TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT"})
_FLOATS = {"REAL": NumberType.REAL, "FLOAT": NumberType.REAL, "DOUBLE": NumberType.DOUBLE}
_TEXTS = frozenset({"VARCHAR", "TEXT", "STRING"})
_ARROW_TIME = re.compile(r'Timestamp\(\w+, (?:None|Some\("(?:UTC|\+00:00)"\))\)')
_DECIMAL = re.compile(r"DECIMAL\((\d+),(-?\d+)\)")


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int

    @property
    def word(self) -> str:
        """In capitals; empty for what is no word."""
        return self.text.upper() if self.kind in ("word", "sign") else ""


def parse_condition(sql: str, *, field: str) -> Condition:
    """The condition that a text states; raises `ConfigError` for what is not understood, with its place."""
    EXPRESSION_CHARS.check(len(sql), field=field)
    return _Parser(sql, field).whole()


class _Parser:
    def __init__(self, sql: str, field: str) -> None:
        self._sql = sql
        self._field = field
        self._tokens = self._read()
        self._at = 0
        self._depth = 0

    def whole(self) -> Condition:
        found = self._either()
        if self._token.kind != "end":
            raise self._refuse(f"did not expect {self._token.text!r}")
        if sum(1 for _ in found.tests()) > MAX_TESTS:
            raise ConfigError(f"a source compares with at most {MAX_TESTS} constants", field=self._field)
        return found

    def _read(self) -> list[_Token]:
        tokens, at = [], 0
        end = len(self._sql.rstrip())
        while at < end:
            found = _TOKEN.match(self._sql, at)
            if found is None or found.lastgroup is None:
                start = at + len(self._sql[at:]) - len(self._sql[at:].lstrip())
                raise self._refuse(f"cannot read {self._sql[start : start + 20]!r}", start)
            tokens.append(_Token(found.lastgroup, found[found.lastgroup], found.start(found.lastgroup)))
            at = found.end()
        return [*tokens, _Token("end", "the end", len(self._sql))]

    def _refuse(self, problem: str, start: int | None = None) -> ConfigError:
        place = (self._token.start if start is None else start) + 1
        return ConfigError(
            f"{problem} at character {place}; a source understands {ALLOWED}: anything else is for a std.filter",
            field=self._field,
            value=self._sql,
        )

    @property
    def _token(self) -> _Token:
        return self._tokens[self._at]

    def _next(self) -> _Token:
        token = self._token
        self._at += token.kind != "end"
        return token

    def _take(self, *words: str) -> bool:
        """Whether these words come next, which are read then."""
        ahead = self._tokens[self._at : self._at + len(words)]
        if [token.word for token in ahead] != list(words):
            return False
        self._at += len(words)
        return True

    def _expect(self, word: str) -> None:
        if not self._take(word):
            raise self._refuse(f"expected {word}, not {self._token.text!r},")

    def _either(self) -> Condition:
        return self._joined("OR", lambda: self._joined("AND", self._negated, Both), Either)

    def _joined(
        self, word: str, read: Callable[[], Condition], join: Callable[[tuple[Condition, ...]], Condition]
    ) -> Condition:
        parts = [read()]
        while self._take(word):
            parts.append(read())
        return parts[0] if len(parts) == 1 else join(tuple(parts))

    def _negated(self) -> Condition:
        is_negated = False
        while self._take("NOT"):
            is_negated = not is_negated
        found = self._test()
        return Not(found) if is_negated else found

    def _test(self) -> Condition:
        if self._take("("):
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise self._refuse(f"brackets are nested deeper than {MAX_DEPTH}")
            found = self._either()
            self._expect(")")
            self._depth -= 1
            return found
        column = self._column()
        if column is None:
            return self._turned()
        if self._take("IS"):
            is_negated = self._take("NOT")
            self._expect("NULL")
            return Not(IsNull(column)) if is_negated else IsNull(column)
        is_negated = self._take("NOT")
        listed = self._listed(column)
        if listed is not None:
            return Not(listed) if is_negated else listed
        if is_negated:
            raise self._refuse("expected BETWEEN, IN or LIKE")
        if self._token.text in _OPERATORS:
            operator = self._operator()
            return self._compare(column, operator)
        if self._token.word in ("AND", "OR", ")") or self._token.kind == "end":
            return Comparison(column, "=", True, "TRUE")
        raise self._refuse(f"did not expect {self._token.text!r}")

    def _listed(self, column: str) -> Condition | None:
        if self._take("BETWEEN"):
            low = self._compare(column, ">=")
            self._expect("AND")
            return Both(_alike([low, self._compare(column, "<=")]))
        if self._take("IN"):
            self._expect("(")
            choices = [self._compare(column, "=")]
            while self._take(","):
                choices.append(self._compare(column, "="))
            self._expect(")")
            return Either(_alike(choices))
        if self._take("LIKE"):
            return self._prefix(column)
        return None

    def _prefix(self, column: str) -> Condition:
        pattern, written = self._constant()
        if not isinstance(pattern, str) or "\\" in pattern:
            raise self._refuse("expected a pattern without a backslash")
        if self._token.word == "ESCAPE":
            raise self._refuse("ESCAPE is not understood")
        beginning = re.split("[%_]", pattern, maxsplit=1)[0]
        return Prefix(column, beginning.encode(), written)

    def _turned(self) -> Condition:
        """A constant, and then the column."""
        constant, written = self._constant()
        if self._token.text not in _OPERATORS:
            raise self._refuse("expected a comparison with a column")
        operator = self._operator()
        column = self._column()
        if column is None:
            raise self._refuse("expected a column")
        return Comparison(column, MIRRORED[operator], constant, written)

    def _operator(self) -> str:
        written = self._next().text
        return "<>" if written == "!=" else written

    def _compare(self, column: str, operator: str) -> Comparison:
        constant, written = self._constant()
        return Comparison(column, operator, constant, written)

    def _column(self) -> str | None:
        """The name of a column, if one comes next."""
        token = self._token
        if token.kind == "quoted":
            self._next()
            return token.text[1:-1].replace('""', '"')
        after = self._tokens[min(self._at + 1, len(self._tokens) - 1)]
        is_constant = token.word in ("TRUE", "FALSE") or (token.word in ("DATE", "TIMESTAMP") and after.kind == "text")
        is_call = after.kind == "sign" and after.text == "("
        if token.kind != "word" or token.word in _RESERVED or is_constant or is_call:
            return None
        self._next()
        return token.text

    def _constant(self) -> tuple[Constant, str]:
        """A constant, and how it is written."""
        start = self._token.start
        found = self._value()
        last = self._tokens[self._at - 1]
        return found, self._sql[start : last.start + len(last.text)]

    def _value(self) -> Constant:
        token = self._token
        if token.kind == "sign" and token.text in ("-", "+"):
            self._next()
            if self._token.kind != "number":
                raise self._refuse("expected a number")
            number = self._number(self._next())
            return number.negative if token.text == "-" else number
        if token.kind == "number":
            self._next()
            return self._number(token)
        if token.kind == "text":
            self._next()
            return _text(token)
        if token.word in ("TRUE", "FALSE"):
            return self._next().word == "TRUE"
        if token.word in ("DATE", "TIMESTAMP"):
            self._next()
            return self._converted(self._value(), token.word)
        if token.word in ("CAST", "ARROW_CAST"):
            self._next()
            self._expect("(")
            value = self._value()
            kind = self._sql_type() if token.word == "CAST" else self._arrow_type()
            return self._converted(value, kind)
        raise self._refuse(f"expected a constant, not {token.text!r},")

    def _number(self, token: _Token) -> Number:
        if token.text.isdigit() and len(token.text) <= 40:
            return literal(int(token.text))
        try:
            number = Decimal(token.text)
            is_usual = abs(number) < Decimal("1e300") and (not number or abs(number) > Decimal("1e-300"))
        except InvalidOperation:
            is_usual = False
        if not is_usual or len(token.text) > 40:
            raise self._refuse(f"the number {token.text[:40]!r} is out of range", token.start)
        return literal(number)

    def _sql_type(self) -> str:
        self._expect("AS")
        words: list[str] = []
        depth = 0
        while depth or self._token.word != ")":
            if self._token.kind == "end":
                raise self._refuse("expected )")
            depth += {"(": 1, ")": -1}.get(self._token.text, 0)
            words.append(self._next().text.upper())
        self._next()
        return "".join(words)

    def _arrow_type(self) -> str:
        self._expect(",")
        kind = self._value()
        self._expect(")")
        return "TIMESTAMP" if isinstance(kind, str) and _ARROW_TIME.fullmatch(kind) else f"arrow {kind}"

    def _converted(self, value: Constant, kind: str) -> Constant:
        """The constant as a type, where that changes nothing but the type."""
        found = _convert(value, kind)
        if found is None:
            raise self._refuse(f"a constant of type {kind} is not understood")
        return found


def _text(token: _Token) -> str:
    return token.text[1:-1].replace("''", "'")


def _alike(tests: Sequence[Comparison]) -> tuple[Condition, ...]:
    """The same, with numbers of one type."""
    types = {each.constant.type for each in tests if isinstance(each.constant, Number)}
    if len(types) < 2:
        return tuple(tests)
    chosen = common_type(types)
    return tuple(
        replace(each, constant=replace(each.constant, type=chosen)) if isinstance(each.constant, Number) else each
        for each in tests
    )


def _convert(value: Constant, kind: str) -> Constant | None:
    if isinstance(value, str):
        return _of_text(value, kind)
    if isinstance(value, Number):
        return _of_number(value, kind)
    is_same = (isinstance(value, Day) and kind == "DATE") or (isinstance(value, Moment) and kind == "TIMESTAMP")
    return value if is_same else None


def _of_number(number: Number, kind: str) -> Number | None:
    if kind.removesuffix("UNSIGNED") in _WHOLE:
        return as_whole(number)
    if kind in _FLOATS:
        return as_floating(number, _FLOATS[kind])
    found = _DECIMAL.fullmatch(kind)
    return None if found is None else as_decimal(number, int(found[1]), int(found[2]))


def _of_text(value: str, kind: str) -> Constant | None:
    readers: Mapping[str, Callable[[str], Constant | None]] = {"DATE": read_day, "TIMESTAMP": read_moment}
    if kind in readers:
        return readers[kind](value)
    if kind in _TEXTS:
        return value
    if not _DECIMAL.fullmatch(kind):
        return None
    try:
        return _of_number(Number(Decimal(value), NumberType.DECIMAL), kind)
    except InvalidOperation:
        return None
