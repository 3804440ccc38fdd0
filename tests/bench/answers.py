"""Checks every answer with DuckDB: the same rows, and after a shuffle every auction in one part."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb
from cases import EUROS_PER_DOLLAR, MIN_PRICE

#: What tells rows apart.
_COLUMNS = "auction, bidder, euros, channel, epoch_us(date_time)"
#: A sum and not an exclusive or: a row that comes twice must not cancel out.
_DIGEST = "SELECT count(*), coalesce(sum(hash({columns})::HUGEINT), 0) FROM ({rows})"

_SCATTERED = """
    SELECT count(*) FROM (
        SELECT auction FROM read_parquet({files}, filename = true)
        GROUP BY auction HAVING count(DISTINCT regexp_extract(filename, {part}, 1)) > 1)
"""


class WrongAnswerError(Exception):
    """An engine's files do not hold what the query asks for."""


@dataclass(frozen=True, slots=True)
class Digest:
    """The same for the same rows, in whatever order and files they are."""

    rows: int
    hashes: int


def expected(data: Path) -> Digest:
    """The answer by DuckDB."""
    rows = f"""
        SELECT auction, bidder, price * {EUROS_PER_DOLLAR}::DOUBLE AS euros, channel, date_time
        FROM read_parquet({file_list(data)}) WHERE price >= {MIN_PRICE}
    """
    return digest(rows, _COLUMNS)


def check(answer: Path, right: Digest, *, part_pattern: str | None) -> None:
    """Raise `WrongAnswerError` unless the answer has just the right rows.

    `part_pattern` finds the number of the subtask in a file's name; given, every auction must
    be in the files of one subtask.
    """
    if not list(answer.rglob("*.parquet")):
        raise WrongAnswerError(f"{answer} has no Parquet files")
    found = digest(f"SELECT * FROM read_parquet({file_list(answer)})", _COLUMNS)
    if found != right:
        raise WrongAnswerError(f"{answer} has {found.rows} rows, not the {right.rows} that are right")
    if part_pattern is not None:
        scattered = _number(_SCATTERED.format(files=file_list(answer), part=_quoted(part_pattern)))
        parts = _number(
            f"SELECT count(DISTINCT regexp_extract(file, {_quoted(part_pattern)}, 1)) FROM glob({_pattern(answer)})"
        )
        if scattered or parts < 2:
            raise WrongAnswerError(f"{answer}: {scattered} auctions are in more than one of {parts} parts")


def digest(rows: str, columns: str) -> Digest:
    """Of the rows of a query, by expressions over its columns."""
    count, hashes = duckdb.sql(_DIGEST.format(rows=rows, columns=columns)).fetchall()[0]
    return Digest(int(count), int(hashes))


def _number(query: str) -> int:
    return int(duckdb.sql(query).fetchall()[0][0])


def file_list(folder: Path) -> str:
    """The Parquet files below a folder, as SQL."""
    return "[" + ", ".join(_quoted(str(path)) for path in sorted(folder.rglob("*.parquet"))) + "]"


def _pattern(folder: Path) -> str:
    return _quoted(f"{folder}/**/*.parquet")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
