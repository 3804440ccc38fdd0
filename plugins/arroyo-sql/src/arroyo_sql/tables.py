"""`CREATE TABLE`: columns, constraints, watermark and options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from arroyo_core.errors import Location
from arroyo_core.pipeline.mistakes import nearest
from arroyo_sql.column_types import read_type
from arroyo_sql.cursor import Cursor, StatementError
from arroyo_sql.lexer import Kind, Token
from arroyo_sql.references import Substitution
from arroyo_sql.script import Column, Option, Table, Text, Watermark
from arroyo_sql.values import read_options

#: What stands in a list of columns and is not there in streams.
_REFUSED: Mapping[str, str] = {
    "check": "CHECK is not there: write WHERE into the query, or std.assert behind it",
    "foreign": "FOREIGN KEY is not there: streams are joined by queries",
    "unique": "UNIQUE is not there: write PRIMARY KEY for the columns that identify a row",
    "default": "DEFAULT is not there: write GENERATED ALWAYS AS (coalesce(...)), or coalesce() in the query",
    "references": "REFERENCES is not there: streams are joined by queries",
    "collate": "COLLATE is not there: texts are ordered by their bytes",
    "index": "INDEX is not there: state is partitioned by the keys of each query",
}
_AFTER_TYPE = ("NOT NULL", "NULL", "PRIMARY KEY", "GENERATED ALWAYS AS", "METADATA FROM")


def read_table(
    cursor: Cursor,
    substitution: Substitution,
    *,
    query: Callable[[Cursor], Text],
    report: Callable[[StatementError], None],
    is_temporary: bool,
) -> Table | None:
    """The table behind `CREATE TABLE`; None after reporting what is wrong with its columns or its options."""
    cursor.accept("IF", "NOT", "EXISTS")
    at = cursor.at()
    name = cursor.name("the name of the table").value
    if cursor.is_at("."):
        raise StatementError("a table has a name without a dot: there are no schemas", at=cursor.at())
    columns = _Columns(cursor, substitution, report)
    if cursor.accept("("):
        columns.read()
    _skip_comment(cursor)
    partitions = _partitions(cursor) if cursor.accept("PARTITIONED", "BY") else None
    options = _options(cursor, substitution, report) if cursor.accept("WITH") else {}
    if options is None:
        columns.is_faulty, options = True, {}
    if partitions is not None:
        options.setdefault("partition_by", partitions)
    text = query(cursor) if cursor.accept("AS") else None
    if cursor.token is not None:
        raise cursor.unexpected("WITH, AS or the end of the statement", allowed=("WITH", "AS", "PARTITIONED BY"))
    if not columns.found and not options and text is None and not columns.is_faulty:
        message = f"table {name!r} has neither columns nor options nor a query"
        raise StatementError(f"{message}: write ({name} TYPE, ...), WITH (...) or AS SELECT ...", at=at, value=name)
    if columns.is_faulty:
        return None
    return Table(
        name=name,
        at=at,
        columns=columns.declared(),
        options=options,
        watermark=columns.watermark,
        primary_key=tuple(columns.primary_key),
        query=text,
        is_temporary=is_temporary,
    )


def _options(
    cursor: Cursor, substitution: Substitution, report: Callable[[StatementError], None]
) -> dict[str, Option] | None:
    try:
        return read_options(cursor, substitution)
    except StatementError as error:
        report(error)
        cursor.index = len(cursor.tokens)
        return None


def _partitions(cursor: Cursor) -> Option:
    at = cursor.at()
    cursor.expect("(", where="behind PARTITIONED BY")
    names: list[str | int | float | bool | list[object]] = []
    while True:
        names.append(cursor.name("the name of a column").value)
        if cursor.is_at("("):
            message = "PARTITIONED BY takes columns: compute the value in the query, and name its column"
            raise StatementError(message, at=cursor.at())
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return Option("partition_by", names, at, at)  # type: ignore[arg-type]


def _skip_comment(cursor: Cursor) -> None:
    if cursor.is_at("COMMENT") and (following := cursor.peek(1)) is not None and following.kind is Kind.STRING:
        cursor.index += 2


@dataclass(slots=True)
class _Columns:
    cursor: Cursor
    substitution: Substitution
    report: Callable[[StatementError], None]
    found: dict[str, Column] = field(default_factory=dict)
    primary_key: dict[str, Location] = field(default_factory=dict)
    watermark: Watermark | None = None
    is_faulty: bool = False

    def read(self) -> None:
        """All of `column, constraint, ...)`. A mistake ends its column only."""
        while True:
            try:
                self._item()
                if not self.cursor.is_at(",") and not self.cursor.is_at(")"):
                    raise self._unexpected()
            except StatementError as error:
                self._fault(error)
                if self.cursor.token is None:
                    return
                self.cursor.skip_to(",", ")")
            if self.cursor.accept(")"):
                break
            if not self.cursor.accept(","):
                self._fault(self.cursor.unexpected("a ) behind the last column"))
                return
            if self.cursor.accept(")"):
                break
        self._check()

    def declared(self) -> tuple[Column, ...]:
        keys = self.primary_key
        return tuple(
            replace(column, primary_key=True, not_null=True) if column.name in keys else column
            for column in self.found.values()
        )

    def _fault(self, error: StatementError) -> None:
        self.is_faulty = True
        self.report(error)

    def _check(self) -> None:
        # A source whose columns are not declared has its own.
        if all(column.generated is not None or column.metadata is not None for column in self.found.values()):
            return
        for name, at in self.primary_key.items():
            self._check_name(name, "the PRIMARY KEY", at)
        if self.watermark is not None:
            self._check_name(self.watermark.column, "the WATERMARK", self.watermark.at)

    def _check_name(self, name: str, what: str, at: Location) -> None:
        if name not in self.found and not self.is_faulty:
            message = f"{what} names the column {name!r}, which the table does not have"
            near = nearest(name, self.found)
            self._fault(StatementError(message, at=at, value=name, allowed=tuple(self.found), suggestion=near))

    def _item(self) -> None:
        cursor = self.cursor
        if cursor.is_at("WATERMARK", "FOR"):
            cursor.index += 2
            self._watermark()
        elif cursor.accept("PRIMARY", "KEY"):
            self._table_key()
        elif cursor.is_at("CONSTRAINT") and (named := cursor.peek(1)) is not None and named.is_name:
            cursor.index += 2
            self._refuse()
            cursor.expect("PRIMARY", "KEY", where="behind CONSTRAINT")
            self._table_key()
        else:
            if any(cursor.is_at(*words) for words in (("UNIQUE", "("), ("CHECK", "("), ("FOREIGN", "KEY"))):
                self._refuse()
            self._column()

    def _refuse(self) -> None:
        token = self.cursor.token
        if token is not None and token.kind is Kind.WORD and token.value in _REFUSED:
            raise StatementError(_REFUSED[token.value], at=self.cursor.at(), value=token.text)

    def _watermark(self) -> None:
        at = self.cursor.at()
        name = self.cursor.name("the column of the WATERMARK").value
        expression = self._expression(",", ")") if self.cursor.accept("AS") else None
        if self.watermark is not None:
            raise StatementError("a table has one WATERMARK", at=at, value=name)
        self.watermark = Watermark(name, expression, at)

    def _table_key(self) -> None:
        at = self.cursor.at()
        if self.primary_key:
            raise StatementError("a table has one PRIMARY KEY: write PRIMARY KEY (a, b) for several columns", at=at)
        self.cursor.expect("(", where="behind PRIMARY KEY")
        while True:
            at = self.cursor.at()
            self.primary_key[self.cursor.name("the name of a column").value] = at
            if not self.cursor.accept(","):
                break
        self.cursor.expect(")")
        self.cursor.accept("NOT", "ENFORCED")

    def _column(self) -> None:
        cursor = self.cursor
        token = cursor.name("the name of a column")
        at = cursor.at(token.start)
        if cursor.is_at("AS"):
            message = f"a computed column needs its type: {token.text} TYPE GENERATED ALWAYS AS (...)"
            raise StatementError(message, at=cursor.at(), value=token.text)
        type_at = cursor.at()
        column = Column(token.value, read_type(cursor), at, type_at)
        while not cursor.is_at(",") and not cursor.is_at(")"):
            column = self._attribute(column, token)
        if column.name in self.found:
            first = self.found[column.name].at
            message = f"column {column.name!r} is declared twice: first in line {first.line}, column {first.column}"
            raise StatementError(message, at=at, value=column.name)
        if column.generated is not None and column.metadata is not None:
            raise StatementError("a column is GENERATED or METADATA, not both", at=at, value=column.name)
        self.found[column.name] = column

    def _attribute(self, column: Column, token: Token) -> Column:
        cursor = self.cursor
        if cursor.accept("NOT"):
            cursor.expect("NULL", where="behind NOT")
            return replace(column, not_null=True)
        if cursor.accept("NULL"):
            return column
        at = cursor.at()
        if cursor.accept("PRIMARY", "KEY"):
            if self.primary_key:
                message = "a table has one PRIMARY KEY: write PRIMARY KEY (a, b) for several columns"
                raise StatementError(message, at=at)
            self.primary_key[column.name] = at
            cursor.accept("NOT", "ENFORCED")
            return column
        if cursor.accept("GENERATED", "ALWAYS", "AS"):
            return replace(column, generated=self._generated())
        if cursor.accept("METADATA"):
            return self._metadata(column, token)
        if cursor.is_at("COMMENT"):
            _skip_comment(cursor)
            if cursor.at() != at:
                return column
        self._refuse()
        raise self._unexpected()

    def _generated(self) -> Text:
        cursor = self.cursor
        if cursor.is_at("IDENTITY"):
            raise StatementError("IDENTITY is not there: a stream has no numbers of rows", at=cursor.at())
        if cursor.accept("("):
            text = self._expression(")")
            cursor.expect(")")
        else:
            text = self._expression("STORED", "VIRTUAL", ",", ")")
        if not cursor.accept("STORED"):
            cursor.accept("VIRTUAL")
        return text

    def _metadata(self, column: Column, token: Token) -> Column:
        cursor = self.cursor
        at, key = cursor.at(token.start), column.name
        if cursor.accept("FROM"):
            at = cursor.at()
            key = cursor.string("what of a message the column holds").value
        cursor.accept("VIRTUAL")
        return replace(column, metadata=key, metadata_at=at)

    def _expression(self, *ends: str) -> Text:
        cursor = self.cursor
        first = cursor.index
        cursor.skip_to(*ends)
        tokens = cursor.tokens[first : cursor.index]
        if not tokens:
            raise cursor.unexpected("an expression")
        return self.substitution.piece(tokens, tokens[0].start, tokens[-1].end)

    def _unexpected(self) -> StatementError:
        return self.cursor.unexpected("a , or ) or more of the column", allowed=_AFTER_TYPE)
