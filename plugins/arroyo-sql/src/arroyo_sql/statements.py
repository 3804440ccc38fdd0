"""From a script to its statements. A mistake ends its statement, or its column, only: all of them are found at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.substitution import References
from arroyo_sql.cursor import Cursor, StatementError
from arroyo_sql.lexer import Kind, SourceText, Token, tokenize
from arroyo_sql.references import Substitution
from arroyo_sql.script import Bundle, Insert, Option, Script, Setting, Statement, Text, View
from arroyo_sql.tables import read_table
from arroyo_sql.values import read_options, read_value

#: How a query begins.
QUERY = ("SELECT", "WITH", "VALUES")
_BEGINNINGS = ("CREATE", "INSERT", "SELECT", "SET", "WITH")
_INSTEAD: Mapping[str, str] = {
    "alter": "a script declares all it needs: change the CREATE statement instead of ALTER",
    "analyze": "there are no statistics to gather: a query is planned without them",
    "begin": "a script has no transactions: all of its statements together are one pipeline, which is exactly once",
    "commit": "a script has no transactions: all of its statements together are one pipeline, which is exactly once",
    "copy": "COPY is not there: write INSERT INTO sink SELECT ..., with a table of the connector filesystem",
    "declare": "DECLARE is not there: write SET parameters.name = value, and ${name} where it is used",
    "delete": "rows of a stream cannot be deleted: write INSERT INTO sink SELECT ... WHERE NOT ...",
    "describe": "DESCRIBE is a command of the prompt: \\d table",
    "drop": "a script declares all it needs: leave the CREATE statement out instead of DROP",
    "end": "several INSERT INTO are one pipeline: leave END out",
    "execute": "several INSERT INTO are one pipeline: leave EXECUTE STATEMENT SET out",
    "explain": "write `arroyo plan FILE` or `arroyo sql compile FILE` to see the plan",
    "from": "a query begins with SELECT: write SELECT * FROM ...",
    "grant": "a script knows no users",
    "merge": "MERGE is not there: write a join, and INSERT INTO a table with a PRIMARY KEY",
    "show": "SHOW is a command of the prompt: \\d",
    "truncate": "a sink cannot be emptied by a script",
    "update": "rows of a stream cannot be updated: an INSERT INTO of an aggregate or a join updates its own rows",
    "use": "there are no databases: every name is the script's own",
}
_CREATED = ("TABLE", "TEMPORARY TABLE", "VIEW", "FUNCTION")
_CREATE_INSTEAD: Mapping[str, str] = {
    "catalog": "there are no catalogs: declare each table with CREATE TABLE",
    "connection": "there are no connections: write the options into the table, and passwords as '${NAME}'",
    "database": "there are no databases: every name is the script's own",
    "index": "there are no indexes: state is partitioned by the keys of each query",
    "materialized": "write CREATE VIEW for a query that others read, or INSERT INTO a table that keeps its rows",
    "pipeline": "a script is a pipeline: its name is that of the file, or SET name = 'name'",
    "schema": "there are no schemas: every name is the script's own",
    "sink": "write CREATE TABLE name (...) WITH (connector = '...', type = 'sink')",
    "source": "write CREATE TABLE name (...) WITH (connector = '...', type = 'source')",
    "stream": "write CREATE TABLE name (...) WITH (connector = '...', type = 'source')",
    "type": "types have no names: write STRUCT<name TYPE, ...> where it is used",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """A script, and how to show its texts without what they have of the environment."""

    script: Script
    conceal: Callable[[str], str]
    #: False where a parameter has no value: a mistake is recorded for it, and the rest cannot be planned.
    is_whole: bool = True


def read_script(text: str, *, file: str, references: References, mistakes: Mistakes) -> Reading:
    """All statements that can be read; what is wrong with the others is recorded."""
    parser = _Parser.of(text, file, references, mistakes)
    script = parser.script()
    return Reading(script, parser.substitution.conceal, not parser.substitution.is_missing)


def read_setting_statements(text: str, *, file: str, references: References, mistakes: Mistakes) -> tuple[Setting, ...]:
    """The settings alone, which may stand anywhere; what is wrong with other statements is left to `read_script`."""
    return _Parser.of(text, file, references, mistakes, only_settings=True).script().settings


@dataclass(slots=True)
class _Parser:
    source: SourceText
    tokens: list[Token]
    substitution: Substitution
    mistakes: Mistakes
    only_settings: bool

    @classmethod
    def of(
        cls, text: str, file: str, references: References, mistakes: Mistakes, *, only_settings: bool = False
    ) -> _Parser:
        source = SourceText(file, text)
        substitution = Substitution(source, references, mistakes)
        return cls(source, tokenize(source, mistakes), substitution, mistakes, only_settings)

    def script(self) -> Script:
        statements: list[Statement] = []
        for cursor in self._divided():
            if self.only_settings and not cursor.is_at("SET"):
                continue
            try:
                found = self._statement(cursor)
                if found is not None:
                    self._expect_end(cursor)
                    statements += found
            except StatementError as error:
                self.add(error)
        return Script(self.source.file, tuple(statements))

    def add(self, error: StatementError) -> None:
        self.mistakes.add(
            error.message, at=error.at, value=error.value, allowed=error.allowed, suggestion=error.suggestion
        )

    def _divided(self) -> list[Cursor]:
        """A cursor for each statement; empty ones are left out."""
        found, first = [], 0
        for index, token in enumerate(self.tokens):
            if token.is_sign(";"):
                found.append(Cursor(self.source, self.tokens[first:index], token.start))
                first = index + 1
        rest = self.tokens[first:]
        found.append(Cursor(self.source, rest, rest[-1].end if rest else 0))
        return [cursor for cursor in found if cursor.tokens]

    def _expect_end(self, cursor: Cursor) -> None:
        token = cursor.token
        if token is None:
            return
        if token.kind is Kind.WORD and token.text.upper() in (*_BEGINNINGS, *map(str.upper, _INSTEAD)):
            raise StatementError(f"a ';' is missing before {token.text}", at=cursor.at(), value=token.text)
        raise cursor.unexpected("the end of the statement")

    def _statement(self, cursor: Cursor) -> list[Statement] | None:
        """The statement; None where its mistakes are recorded."""
        first = cursor.token
        assert first is not None
        for word, read in self._readers().items():
            if cursor.accept(word):
                return read(cursor)
        if any(cursor.is_at(word) for word in (*QUERY, "(")):
            return [Insert(None, cursor.at(), self._query(cursor))]
        if first.kind is Kind.WORD and first.value in _INSTEAD:
            raise StatementError(_INSTEAD[first.value], at=cursor.at(), value=first.text)
        raise cursor.unexpected("a statement", allowed=_BEGINNINGS)

    def _readers(self) -> Mapping[str, Callable[[Cursor], list[Statement] | None]]:
        return {"CREATE": self._create, "INSERT": self._insert, "SET": self._set}

    def _create(self, cursor: Cursor) -> list[Statement] | None:
        cursor.accept("OR", "REPLACE")
        is_temporary = cursor.accept("TEMPORARY") or cursor.accept("TEMP")
        if cursor.accept("TABLE"):
            table = read_table(cursor, self.substitution, query=self._query, report=self.add, is_temporary=is_temporary)
            return None if table is None else [table]
        if cursor.accept("VIEW"):
            return [self._view(cursor)]
        if not is_temporary and (cursor.accept("FUNCTION") or cursor.accept("FUNCTIONS")):
            return [self._function(cursor)]
        token = cursor.token
        if token is not None and token.kind is Kind.WORD and token.value in _CREATE_INSTEAD:
            raise StatementError(_CREATE_INSTEAD[token.value], at=cursor.at(), value=token.text)
        raise cursor.unexpected("TABLE, VIEW or FUNCTION behind CREATE", allowed=_CREATED)

    def _view(self, cursor: Cursor) -> View:
        cursor.accept("IF", "NOT", "EXISTS")
        at = cursor.at()
        name = cursor.name("the name of the view").value
        columns = _column_names(cursor) if cursor.is_at("(") else ()
        cursor.expect("AS", where="and a query behind the name of a view")
        return View(name, at, self._query(cursor), columns)

    def _function(self, cursor: Cursor) -> Bundle:
        """`CREATE FUNCTION name FROM 'url'`, or `CREATE FUNCTIONS FROM 'url' [AS prefix]`."""
        cursor.accept("IF", "NOT", "EXISTS")
        at, name = cursor.at(), None
        if not cursor.is_at("FROM"):
            name = cursor.name("the name of the function, or FROM").value
        if cursor.is_at("AS") or cursor.is_at("RETURNS") or cursor.is_at("("):
            message = (
                "functions are written in Python, and come in bundles: "
                "CREATE FUNCTION name FROM 'bundle.whl', see `arroyo udf build`"
            )
            raise StatementError(message, at=cursor.at())
        cursor.expect("FROM", where="and the URL of a bundle")
        key_at = cursor.at()
        cursor_token = cursor.string("the URL of a bundle")
        resolved = self.substitution.resolve(cursor_token.value, cursor_token)
        url = Option("url", resolved.text, key_at, key_at, resolved.written, resolved.is_substituted)
        options: dict[str, Option] = {}
        if cursor.accept("AS"):
            alias_at = cursor.at()
            alias = cursor.name("the name before those of the functions").value
            options["as"] = Option("as", alias, alias_at, alias_at)
        if cursor.accept("WITH"):
            for key, option in read_options(cursor, self.substitution).items():
                if key != "sha256":
                    raise StatementError(
                        f"a bundle has no option {key!r}", at=option.key_at, value=key, allowed=("sha256",)
                    )
                options[key] = option
        return Bundle(name, at, url, options)

    def _insert(self, cursor: Cursor) -> list[Statement]:
        if cursor.is_at("OVERWRITE"):
            raise StatementError("a stream cannot overwrite: write INSERT INTO", at=cursor.at(), value="OVERWRITE")
        cursor.expect("INTO", where="behind INSERT")
        at = cursor.at()
        target = cursor.name("the name of a table").value
        if cursor.is_at("."):
            raise StatementError("a table has a name without a dot: there are no schemas", at=cursor.at())
        columns: tuple[str, ...] = ()
        if cursor.is_at("(") and not any(cursor.is_at("(", word) for word in (*QUERY, "(")):
            columns = _column_names(cursor)
        return [Insert(target, at, self._query(cursor), columns)]

    def _query(self, cursor: Cursor) -> Text:
        """All the rest of the statement."""
        if not any(cursor.is_at(word) for word in (*QUERY, "(")):
            raise cursor.unexpected("a query", allowed=QUERY)
        start, tokens = cursor.offset, cursor.tokens[cursor.index :]
        cursor.index = len(cursor.tokens)
        return self.substitution.piece(tokens, start, tokens[-1].end)

    def _set(self, cursor: Cursor) -> list[Statement]:
        name_at = cursor.at()
        name = _setting_name(cursor)
        if not cursor.accept("=") and not cursor.accept("TO"):
            raise cursor.unexpected("= behind the name of the setting")
        at = cursor.at()
        value = read_value(cursor, self.substitution)
        return [Setting(name, value.value, at, name_at, value.written, value.is_secret)]


def _setting_name(cursor: Cursor) -> str:
    token = cursor.token
    if token is not None and token.kind is Kind.STRING:
        cursor.index += 1
        return token.value.lower()
    parts = [cursor.name("the name of a setting")]
    while cursor.accept("."):
        parts.append(cursor.name("a name behind the dot"))
    # Names of parameters keep their case, as those of variables do.
    is_parameter = parts[0].value == "parameters"
    return ".".join(part.text if is_parameter and index == 1 else part.value for index, part in enumerate(parts))


def _column_names(cursor: Cursor) -> tuple[str, ...]:
    cursor.expect("(")
    names: dict[str, None] = {}
    while True:
        at = cursor.at()
        name = cursor.name("the name of a column").value
        if name in names:
            raise StatementError(f"the column {name!r} is named twice", at=at, value=name)
        names[name] = None
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return tuple(names)
