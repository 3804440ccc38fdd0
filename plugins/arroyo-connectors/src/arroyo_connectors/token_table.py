"""Tokens in a table of a SQL database, in statements that any of them understands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from arroyo_connectors.target import Committed, TokenKey, Writer

#: Runs a statement with its parameters, and returns a cursor.
Execute = Callable[[str, Sequence[Any]], Any]


class TokenTable:
    """Over the `execute` of a connection, or of a cursor, by DB-API 2.0.

    `lock` locks the row by an update that changes nothing. Where there is no row, two drivers may both insert one, and
    the second fails at the primary key; where a transaction locks the whole database there is no such case.
    """

    def __init__(self, execute: Execute, *, table: str = "arroyo_commits", mark: str = "?") -> None:
        """`table` is a name as it is written in SQL; `mark` is the place of a parameter."""
        self._execute = execute
        self._table = table
        self._mark = mark

    def create(self) -> None:
        """Make the table, where there is none."""
        self._execute(
            f"create table if not exists {self._table} (incarnation varchar(64) not null, node varchar(255) not null, "
            "generation bigint not null, epoch bigint not null, primary key (incarnation, node))",
            (),
        )

    def lock(self, key: TokenKey) -> Committed | None:
        where = f"where incarnation = {self._mark} and node = {self._mark}"
        self._execute(f"update {self._table} set epoch = epoch {where}", (key.incarnation, key.node))
        row = self._execute(
            f"select generation, epoch from {self._table} {where}", (key.incarnation, key.node)
        ).fetchone()
        return Committed(*row) if row is not None else None

    def write(self, key: TokenKey, committed: Committed, *, is_new: bool) -> None:
        mark = self._mark
        values = (committed.generation, committed.epoch, key.incarnation, key.node)
        if is_new:
            columns = "generation, epoch, incarnation, node"
            self._execute(f"insert into {self._table} ({columns}) values ({mark}, {mark}, {mark}, {mark})", values)
        else:
            self._execute(
                f"update {self._table} set generation = {mark}, epoch = {mark} "
                f"where incarnation = {mark} and node = {mark}",
                values,
            )


class SqlWriter(Writer):
    """A writer whose token is in a `TokenTable` of the same transaction."""

    def __init__(self, tokens: TokenTable) -> None:
        self._tokens = tokens

    def lock_token(self, key: TokenKey) -> Committed | None:
        return self._tokens.lock(key)

    def write_token(self, key: TokenKey, committed: Committed, *, is_new: bool) -> None:
        self._tokens.write(key, committed, is_new=is_new)
