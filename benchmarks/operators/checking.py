"""Checks every answer with DuckDB: the same rows, whatever files they are in."""

from __future__ import annotations

from pathlib import Path

import duckdb

from ..nexmark.answers import Digest, WrongAnswerError, answer_files, digest
from ..nexmark.duckdb_tables import listed
from .cases import MAX_LATENESS_MS, Case
from .on_duckdb import open_tables

#: What the changes of a result come to, by engine: rows that were taken back do not count; the last of a key counts.
_LAST = {
    "arroyo": """
        SELECT auction, bids, top FROM ({rows})
        GROUP BY ALL HAVING sum(CASE WHEN _updating_meta.is_retract THEN -1 ELSE 1 END) <> 0""",
    "structured_streaming": """
        SELECT auction, max(bids) AS bids, arg_max(top, bids) AS top FROM ({rows}) GROUP BY auction""",
}


class Checker:
    """Holds the right answers to all questions over one dataset."""

    def __init__(self, data: Path, folder: Path) -> None:
        self._data = data
        #: Where right answers are kept, until the next dataset.
        self._folder = folder
        self._right: dict[tuple[str, bool], Digest] = {}

    def check(self, case: Case, engine: str, answer: Path) -> Digest:
        """The digest of the answer; raises `WrongAnswerError` unless it has just the right rows."""
        files = answer_files(answer)
        if not files:
            raise WrongAnswerError(f"{answer} has no files")
        rows = f"SELECT * FROM read_parquet({listed(files)})"
        if case.name == "updating" and engine in _LAST:
            rows = _LAST[engine].format(rows=rows)
        found = self._digest(rows, case)
        right = self.right(case, is_closed=engine == "structured_streaming" and case.is_windowed)
        if found != right:
            raise WrongAnswerError(f"{case.name} by {engine}: {found.rows} rows, not the {right.rows} that are right")
        return found

    def _digest(self, rows: str, case: Case) -> Digest:
        with duckdb.connect() as connection:
            return digest(connection, f"SELECT *, 1 AS sign FROM ({rows})", case.digest)

    def right(self, case: Case, *, is_closed: bool = False) -> Digest:
        """The answer by DuckDB; `is_closed` is for windows that the last watermark has passed."""
        key = case.name, is_closed
        if key not in self._right:
            file = self._folder / f"{case.name}.parquet"
            with open_tables(self._data) as connection:
                if not file.exists():
                    self._folder.mkdir(parents=True, exist_ok=True)
                    connection.execute(f"COPY ({case.sql}) TO '{file}' (FORMAT parquet)")
                ((last_ms,),) = connection.execute("SELECT epoch_ms(max(date_time)) FROM bid").fetchall()
            rows = f"SELECT * FROM '{file}'"
            if is_closed:
                rows += f" WHERE epoch_us(window_end) <= {(last_ms - MAX_LATENESS_MS) * 1000}"
            self._right[key] = self._digest(rows, case)
        return self._right[key]
