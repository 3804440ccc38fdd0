"""What DuckDB says of the same rows, and how what a pipeline wrote differs from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.json as pj

Tables = Mapping[str, pa.Table]
#: Rows, and whether they are there (1) or were taken back (-1).
SignedRows = Sequence[tuple[pa.Table, int]]


def answer(query: str, tables: Tables) -> pa.Table:
    """The rows of a query over the tables."""
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        found = without_zones(connection.sql(query).to_arrow_table())
    assert found.num_rows, "a query without any answer proves nothing"
    return found


def read_written(folder: Path, schema: pa.Schema) -> SignedRows:
    """What a pipeline wrote below the folder: rows in Parquet, or changes in JSON, which tells no types."""
    return read_changes(folder, schema) if committed(folder, "jsonl") else [(read_parquet(folder), 1)]


def committed(folder: Path, extension: str) -> list[str]:
    """The files that are there for readers."""
    paths = sorted(folder.rglob(f"part-*.{extension}"))
    return [str(path) for path in paths if not any(part.startswith("_") for part in path.relative_to(folder).parts)]


def read_parquet(folder: Path) -> pa.Table:
    """All rows, with the columns that became folders."""
    files = committed(folder, "parquet")
    assert files, f"no files in {folder}"
    folders = ds.HivePartitioning.discover()
    return without_zones(ds.dataset(files, partitioning=folders, partition_base_dir=str(folder)).to_table())


def read_changes(folder: Path, schema: pa.Schema) -> SignedRows:
    """The rows that changes added, and those that they took back."""
    zoned = [pa.field(f.name, pa.timestamp("us", "UTC")) if pa.types.is_timestamp(f.type) else f for f in schema]
    lines = pa.schema({"before": pa.struct(zoned), "after": pa.struct(zoned), "op": pa.string()})
    options = pj.ParseOptions(explicit_schema=lines, unexpected_field_behavior="error")
    changes = pa.concat_tables(
        pj.read_json(path, parse_options=options) for path in committed(folder, "jsonl")
    ).combine_chunks()
    sides = []
    for name, sign in (("after", 1), ("before", -1)):
        side = changes.column(name)
        rows = pa.Table.from_struct_array(side.filter(side.is_valid()))
        sides.append((without_zones(rows), sign))
    return sides


def without_zones(table: pa.Table) -> pa.Table:
    """Times lose their zone, which is always UTC: DuckDB would need an extension to compute with them."""
    fields = [pa.field(f.name, pa.timestamp("us")) if pa.types.is_timestamp(f.type) else f for f in table.schema]
    return table.cast(pa.schema(fields))


def differences(expected: pa.Table, found: SignedRows) -> list[tuple[object, ...]]:
    """Rows of which there are too many, or too few: each with the excess as its last column."""
    with duckdb.connect() as connection:
        parts = []
        for number, (rows, sign) in enumerate([(expected, -1), *found]):
            assert sorted(rows.schema.names) == sorted(expected.schema.names)
            connection.register(f"part_{number}", rows)
            parts.append(f"SELECT {columns(expected)}, {sign} AS excess FROM part_{number}")
        union = " UNION ALL ".join(parts)
        rows_left = f"SELECT * EXCLUDE excess, sum(excess) FROM ({union}) GROUP BY ALL HAVING sum(excess) <> 0"
        return list(connection.sql(rows_left).fetchall())


def columns(table: pa.Table) -> str:
    """The columns by name; the last digits of a mean depend on the order in which numbers were added."""
    return ", ".join(
        f'round("{field.name}", 4) AS "{field.name}"' if pa.types.is_floating(field.type) else f'"{field.name}"'
        for field in table.schema
    )
