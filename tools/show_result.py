"""Shows what a pipeline left in a folder of Parquet files: how much, and the first rows.

python tools/show_result.py out/nexmark_hot_bids [--rows 5]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

WIDEST_CELL = 32


def data_files(folder: Path) -> list[Path]:
    """The published files; names that start with `_` or `.` are not results."""
    return sorted(
        path
        for path in folder.rglob("*.parquet")
        if not any(part.startswith(("_", ".")) for part in path.relative_to(folder).parts)
    )


def first_rows(files: list[Path], count: int) -> pa.Table:
    """The first rows of the first file that has any."""
    for path in files:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=count):
                if batch.num_rows:
                    return pa.Table.from_batches([batch])
    return pa.table({})


def cell(value: object) -> str:
    text = "null" if value is None else str(value)
    return text if len(text) <= WIDEST_CELL else f"{text[: WIDEST_CELL - 3]}..."


def render(table: pa.Table) -> str:
    """The table as aligned text, numbers to the right."""
    columns = []
    for field, column in zip(table.schema, table.columns, strict=True):
        cells = [field.name, *(cell(value) for value in column.to_pylist())]
        width = max(map(len, cells))
        is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        columns.append([text.rjust(width) if is_number else text.ljust(width) for text in cells])
    return "\n".join("  " + "  ".join(line).rstrip() for line in zip(*columns, strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=5)
    arguments = parser.parse_args()
    files = data_files(arguments.folder)
    if not files:
        print(f"no Parquet files in {arguments.folder}", file=sys.stderr)
        return 1
    rows = sum(pq.read_metadata(path).num_rows for path in files)
    size = sum(path.stat().st_size for path in files)
    print(f"\n{arguments.folder}: {rows:,} rows in {len(files)} files, {size / 1e6:,.1f} MB; the first ones:\n")
    print(render(first_rows(files, arguments.rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
