"""Checks every answer with DuckDB: the same rows, in whatever order, files and format they are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import duckdb
import pyarrow as pa
from arroyo_nexmark.tables import TABLES

from ..modules import ROOT
from .dataset import NAMES, Dataset
from .duckdb_tables import listed, open_parquet, quoted
from .queries import Query
from .tasks import MAX_LATENESS_MS, PARALLELISM, Timing

#: A signed sum and not an exclusive or: a row that comes twice must not cancel out, one that is taken back must.
_DIGEST = "SELECT coalesce(sum(sign), 0), coalesce(sum(sign * hash({columns})::HUGEINT), 0) FROM ({rows})"
#: By type of Arrow, for CSV files, which do not tell.
_CSV_TYPES = {pa.int64(): "BIGINT", pa.string(): "VARCHAR"}


class WrongAnswerError(Exception):
    """An engine's files do not hold what the query asks for."""


@dataclass(frozen=True, slots=True)
class Digest:
    """The same for the same rows, in whatever order and files they are."""

    rows: int
    hashes: int


class Answers:
    """Holds the right answers to all queries over one dataset; they are kept in a file beside it."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._file = dataset.folder.parent / f"{dataset.folder.name}-answers.json"
        self._known: dict[str, dict[str, int]] = json.loads(self._file.read_text()) if self._file.exists() else {}
        self._opened: duckdb.DuckDBPyConnection | None = None

    def right(self, query: Query, *, is_closed_only: bool = False) -> Digest:
        """The answer by DuckDB; with `is_closed_only` without the windows that the last watermark has not passed."""
        is_closed_only = is_closed_only and query.window_end is not None
        asked = sha256(f"{query.sql} {query.open_in_ms} {is_closed_only}".encode()).hexdigest()
        if asked not in self._known:
            rows = f"SELECT *, 1 AS sign FROM ({query.sql})"
            if is_closed_only:
                rows += f" WHERE epoch_us({query.window_end}) <= {self._watermark_us(query)}"
            self._known[asked] = asdict(digest(self._connection, rows, self._columns(query)))
            self._file.write_text(json.dumps(self._known))
        return Digest(**self._known[asked])

    def check(self, query: Query, answer: Path, timing: Timing) -> Digest:
        """The digest of the answer; raises `WrongAnswerError` unless it has just the right rows."""
        files = answer_files(answer)
        if not files:
            raise WrongAnswerError("no files")
        rows = _READERS[timing.answer](self._connection, files, self._types(query))
        if timing.is_upsert:
            if query.keys is None:
                raise WrongAnswerError(f"{query.name} has no keys whose rows replace each other")
            rows = (
                f"SELECT * FROM ({rows}) "
                f"QUALIFY row_number() OVER (PARTITION BY {query.keys} ORDER BY {query.latest} DESC) = 1"
            )
        if query.defined is not None:
            rows = f"WITH rows AS ({rows}) SELECT *, 1 AS sign FROM ({query.defined})"
        try:
            found = digest(self._connection, rows, self._columns(query))
        except duckdb.Error as error:
            raise WrongAnswerError(f"the answer cannot be read: {str(error).splitlines()[0]}") from error
        right = self.right(query, is_closed_only=timing.is_closed_only)
        if found.rows != right.rows:
            raise WrongAnswerError(f"{found.rows:,} rows, not the {right.rows:,} that are right")
        if found != right:
            raise WrongAnswerError(f"{found.rows:,} rows, as many as are right, but not the same")
        return found

    @property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        if self._opened is None:
            self._opened = open_dataset(self._dataset)
            # One query reads a file of the repository.
            self._opened.execute(f"SET file_search_path = {quoted(str(ROOT))}")
        return self._opened

    def _watermark_us(self, query: Query) -> int:
        """The last one: of several tables the least counts."""
        latest = (
            self._connection.execute(f"SELECT epoch_us(max(date_time)) FROM {table}").fetchall()[0][0]
            for table in query.tables
        )
        return int(min(latest)) - MAX_LATENESS_MS * 1000

    def _types(self, query: Query) -> dict[str, str]:
        """The columns of the answer in order, with DuckDB's types."""
        described = self._connection.execute(f"DESCRIBE SELECT * FROM ({query.sql})").fetchall()
        return {str(name): str(kind) for name, kind, *_ in described}

    def _columns(self, query: Query) -> str:
        """Expressions that tell rows apart, the same for all that engines make of a type."""
        is_open = query.open_in_ms if self._dataset.format != "parquet" else ()
        return ", ".join(_comparable(name, kind) for name, kind in self._types(query).items() if name not in is_open)


def digest(connection: duckdb.DuckDBPyConnection, rows: str, columns: str) -> Digest:
    """Of the rows of a query with a column `sign`, by expressions over its columns."""
    count, hashes = connection.execute(_DIGEST.format(rows=rows, columns=columns)).fetchall()[0]
    return Digest(int(count), int(hashes))


def open_dataset(dataset: Dataset) -> duckdb.DuckDBPyConnection:
    """The tables as views."""
    files = {name: [str(path) for path in sorted((dataset.folder / name).iterdir())] for name in NAMES}
    if dataset.format == "parquet":
        return open_parquet(files, threads=PARALLELISM)
    connection = duckdb.connect(config={"threads": str(PARALLELISM)})
    for name, paths in files.items():
        types = {field.name: _CSV_TYPES.get(field.type, "TIMESTAMP") for field in TABLES[name].schema}
        connection.sql(f"CREATE VIEW {name} AS {_csv(paths, types, has_header=dataset.format == 'csv_header')}")
    return connection


def answer_files(folder: Path) -> list[Path]:
    """The files that are there for readers: not those that are in preparation, nor an engine's own."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    return [path for path in files if not any(part[0] in "_." for part in path.relative_to(folder).parts)]


def _comparable(name: str, kind: str) -> str:
    if kind.startswith("TIMESTAMP"):
        return f'epoch_us("{name}")'
    if kind in ("DOUBLE", "FLOAT") or kind.startswith("DECIMAL"):
        # The last digits of a mean depend on the order in which numbers were added.
        return f'round("{name}"::DOUBLE, 4)'
    return f'"{name}"::VARCHAR' if kind == "VARCHAR" else f'"{name}"::BIGINT'


def _csv(files: Sequence[object], types: Mapping[str, str], *, has_header: bool) -> str:
    columns = ", ".join(f"{quoted(name)}: {quoted(kind)}" for name, kind in types.items())
    header = str(has_header).lower()
    return f"SELECT * FROM read_csv({listed(files)}, header = {header}, auto_detect = false, columns = {{{columns}}})"


def _parquet_rows(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], types: Mapping[str, str]) -> str:
    """Rows that were taken back are marked, where the stream changes."""
    rows = f"SELECT * FROM read_parquet({listed(files)}, hive_partitioning = true, hive_types_autocast = false)"
    names = {str(name) for name, *_ in connection.execute(f"DESCRIBE {rows}").fetchall()}
    sign = "CASE WHEN _updating_meta.is_retract THEN -1 ELSE 1 END" if "_updating_meta" in names else "1"
    return f"SELECT *, {sign} AS sign FROM ({rows})"


def _csv_rows(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], types: Mapping[str, str]) -> str:
    return f"SELECT *, 1 AS sign FROM ({_csv(files, types, has_header=False)})"


def _named_csv_rows(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], types: Mapping[str, str]) -> str:
    """Columns may come in another order."""
    columns = ", ".join(f"{quoted(name)}: {quoted(kind)}" for name, kind in types.items())
    return f"SELECT *, 1 AS sign FROM read_csv({listed(files)}, header = true, types = {{{columns}}})"


def _csv_changes(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], types: Mapping[str, str]) -> str:
    """As Pathway writes them: with names, the time of the change, and 1 or -1."""
    columns = {**types, "time": "BIGINT", "diff": "BIGINT"}
    return f"SELECT *, diff AS sign FROM ({_csv(files, columns, has_header=True)})"


def _json_rows(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], types: Mapping[str, str]) -> str:
    """An object in each line."""
    columns = ", ".join(f"{quoted(name)}: {quoted(kind)}" for name, kind in types.items())
    lines = f"read_json({listed(files)}, format = 'newline_delimited', columns = {{{columns}}})"
    return f"SELECT *, 1 AS sign FROM {lines}"


def _debezium_changes(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], types: Mapping[str, str]) -> str:
    row = "STRUCT(" + ", ".join(f'"{name}" {kind}' for name, kind in types.items()) + ")"
    lines = (
        f"read_json({listed(files)}, format = 'newline_delimited', "
        f"columns = {{before: {quoted(row)}, after: {quoted(row)}, op: 'VARCHAR'}})"
    )
    return (
        f"SELECT unnest(after), 1 AS sign FROM {lines} WHERE after IS NOT NULL "
        f"UNION ALL SELECT unnest(before), -1 AS sign FROM {lines} WHERE before IS NOT NULL"
    )


_READERS = {
    "parquet": _parquet_rows,
    "csv": _csv_rows,
    "csv_named": _named_csv_rows,
    "csv_changes": _csv_changes,
    "json": _json_rows,
    "debezium": _debezium_changes,
}
