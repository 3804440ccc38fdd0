"""Files of queries, one for each group: a name, the query, and what else is to be known about it.

    -- name: empty texts are not null
    SELECT customer FROM orders WHERE note = ''

    -- name: windows of ten seconds
    SELECT ...
    -- duckdb:
    SELECT ...

    -- name: the order of a stream
    -- refused: 1:27 ORDER BY
    SELECT id FROM orders ORDER BY id

`duckdb` stands before the query of the other dialect; `refused` before a place and a part of the message;
`fails` before a part of the message of the job's error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_HEADER = re.compile(r"-- (name|duckdb|refused|fails):\s*(.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query of a file. `duckdb` is the same as `sql` where both dialects agree."""

    group: str
    name: str
    sql: str
    duckdb: str
    refused: str | None = None
    fails: str | None = None


def read_queries(path: Path) -> list[Query]:
    """All queries of a file, in their order; raises `ValueError` for a file of another form."""
    found = [_query(path, block) for block in _blocks(path)]
    names = [query.name for query in found]
    if len(set(names)) < len(names):
        raise ValueError(f"{path}: two queries have one name")
    return found


def _blocks(path: Path) -> Iterator[list[str]]:
    block: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("-- name:") and block:
            yield block
            block = []
        if block or line.startswith("-- name:"):
            block.append(line)
    if block:
        yield block


def _query(path: Path, lines: list[str]) -> Query:
    known: dict[str, str] = {}
    texts: dict[str, list[str]] = {"sql": [], "duckdb": []}
    current = "sql"
    for line in lines:
        header = _HEADER.fullmatch(line)
        if header is None:
            texts[current].append(line)
            continue
        key, value = header.groups()
        if key in known:
            raise ValueError(f"{path}: {known['name']!r} has two of {key!r}")
        known[key] = value
        current = "duckdb" if key == "duckdb" else current
    sql = "\n".join(texts["sql"]).strip()
    if not sql:
        raise ValueError(f"{path}: {known['name']!r} has no query")
    return Query(
        group=path.stem,
        name=known["name"],
        sql=sql,
        duckdb="\n".join(texts["duckdb"]).strip() or sql,
        refused=known.get("refused"),
        fails=known.get("fails"),
    )
