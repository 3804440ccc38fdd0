"""The line that is edited: history, completion, and Enter that waits for the end of a statement."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from arroyo_core.errors import SetupError
from arroyo_core.local_folders import LocalFolder
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_sql.lexer import Kind, SourceText, Token, tokenize
from arroyo_sql.prompt.session import Session

#: Of the history of inputs; `off` keeps none.
HISTORY = LocalFolder(what="history of arroyo sql", variable="ARROYO_SQL_HISTORY", name="arroyo-sql")
COMMANDS = ("\\d", "\\q", "\\timing", "\\?")
_KEYWORDS = """
    AND AS ASC BETWEEN BY CASE CAST CREATE CROSS DESC DISTINCT ELSE END EXISTS FALSE FILTER FOR FROM FULL FUNCTION
    GENERATED GROUP HAVING IN INNER INSERT INTERVAL INTO IS JOIN KEY LEFT LIKE LIMIT METADATA NOT NULL ON OR ORDER
    OUTER OVER PARTITION PRIMARY RIGHT SELECT SET TABLE TEMPORARY THEN TRUE UNION VALUES VIEW WATERMARK WHEN WHERE WITH
"""
KEYWORDS = tuple(_KEYWORDS.split())
_WORD = re.compile(r"\w+")
_BEFORE_TABLES = ("from", "join", "into")


class SqlCompleter(Completer):
    """Completes keywords, tables, columns and functions; behind FROM and JOIN tables only."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if text.lstrip().startswith("\\"):
            yield from self._of_command(text.lstrip())
            return
        word = document.get_word_before_cursor(pattern=_WORD)
        before = _tokens(text[: len(text) - len(word)])
        if before and before[-1].is_sign("."):
            table = before[-2].value if len(before) > 1 and before[-2].is_name else ""
            yield from _matching(word, self._columns(table, document.text), "column")
            return
        yield from _matching(word, self._session.names, "table")
        if before and before[-1].kind is Kind.WORD and before[-1].value in _BEFORE_TABLES:
            return
        if not word:
            return
        mentioned = {token.value for token in _tokens(document.text) if token.is_name}
        for name in self._session.names:
            if name in mentioned:
                yield from _matching(word, self._columns(name, document.text), "column")
        yield from _matching(word, KEYWORDS, "keyword")
        yield from _matching(word, [*self._session.plugins.registry.udfs, *function_names()], "function")

    def _of_command(self, text: str) -> Iterator[Completion]:
        name, space, argument = text.partition(" ")
        if not space:
            yield from (Completion(each, -len(name)) for each in COMMANDS if each.startswith(name))
        elif name == "\\d":
            yield from _matching(argument, self._session.names, "table")

    def _columns(self, name: str, text: str) -> list[str]:
        """Those of a table, or of what the query calls by this name."""
        session = self._session
        if name not in session.names:
            named = [table for table, alias in _aliases(_tokens(text)) if alias == name and table in session.names]
            if not named:
                return []
            name = named[0]
        schema = session.known_schema_of(name)
        if schema is not None:
            return list(schema.names)
        table = session.tables.get(name)
        return [column.name for column in table.columns] if table is not None else []


def _aliases(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    """Names that follow each other, with or without AS: the second may be what a query calls the first."""
    names = [token for token in tokens if not token.is_word("AS")]
    for first, second in pairwise(names):
        if first.is_name and second.is_name:
            yield first.value, second.value


def open_terminal(session: Session, **options: Any) -> PromptSession[str]:
    """The prompt of a session; `options` are for prompt_toolkit."""
    return PromptSession(
        history=_history(),
        completer=SqlCompleter(session),
        complete_while_typing=False,
        multiline=True,
        key_bindings=_bindings(),
        prompt_continuation=lambda width, line, is_soft: "...> ".rjust(width),
        **options,
    )


def _history() -> History:
    folder = HISTORY.path()
    if folder is None:
        return InMemoryHistory()
    try:
        HISTORY.make(folder)
    except (OSError, SetupError):
        return InMemoryHistory()
    return _PrivateHistory(folder / "history")


class _PrivateHistory(FileHistory):
    """Nobody else can read what was asked."""

    def __init__(self, path: Path) -> None:
        path.touch(mode=0o600)
        super().__init__(str(path))


def _bindings() -> KeyBindings:
    from arroyo_sql.prompt.loop import is_complete

    bindings = KeyBindings()

    @Condition
    def is_whole() -> bool:
        from prompt_toolkit.application import get_app

        document = get_app().current_buffer.document
        return document.is_cursor_at_the_end and is_complete(document.text)

    @bindings.add(Keys.Enter, filter=is_whole)
    def accept(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return bindings


def _matching(word: str, choices: Iterable[str], kind: str) -> Iterator[Completion]:
    folded = word.casefold()
    for choice in sorted(set(choices)):
        if choice.casefold().startswith(folded):
            text = choice.lower() if kind == "keyword" and word.islower() else choice
            yield Completion(text, -len(word), display_meta=kind)


def _tokens(text: str) -> list[Token]:
    return tokenize(SourceText("", text), Mistakes())


@cache
def function_names() -> tuple[str, ...]:
    """The functions that expressions may call."""
    from datafusion import SessionConfig, SessionContext

    context = SessionContext(SessionConfig().with_information_schema(True))
    found = context.sql("SELECT DISTINCT routine_name FROM information_schema.routines").to_pydict()
    return ("tumble", "hop", "session", *(str(name) for name in found["routine_name"]))
