"""Random files and predicates: no row is left out that a `std.filter` keeps, and none comes twice."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from arroyo_filesystem.plugin import SourceConstructor
from arroyo_formats.conditions import exactly, may_hold, parse_condition
from arroyo_testing import SourceHarness
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from arroyo_core.api import Registry

from .support.filters import kept
from .support.predicates import PREDICATES, SINGLE_TESTS, TYPES, VALUES

NAMES = {pa.int64(): "int64", pa.int8(): "int8", pa.float64(): "float64", pa.float32(): "float32", pa.bool_(): "bool"}
NAMES |= {pa.string(): "string", pa.date32(): "date", pa.timestamp("us"): "timestamp_us", TYPES["d"]: "decimal(12,2)"}
#: Some folders, with names that have to be encoded, and none.
FOLDERS = {"p=x": "x", "p=a%2Fb%20%27": "a/b '", "p=__HIVE_DEFAULT_PARTITION__": None, ".": None}


@dataclass(frozen=True)
class File:
    folder: str
    rows: list[dict[str, Any]]
    group_rows: int
    #: Columns that the file has not.
    missing: frozenset[str]
    has_statistics: bool


@st.composite
def file_contents(draw: st.DrawFn) -> File:
    # Values of a file lie close together, so that there is something to leave out.
    pools = {name: draw(st.lists(values, min_size=1, max_size=3)) for name, values in VALUES.items()}
    row = st.fixed_dictionaries({name: st.none() | st.sampled_from(pool) for name, pool in pools.items()})
    return File(
        draw(st.sampled_from(list(FOLDERS))),
        draw(st.lists(row, min_size=1, max_size=8)),
        draw(st.integers(1, 4)),
        draw(st.frozensets(st.sampled_from(list(VALUES)), max_size=2)),
        draw(st.integers(0, 9)) > 0,
    )


def write(root: Path, contents: list[File]) -> pa.Table:
    """Writes the files; all their rows, numbered."""
    rows: list[dict[str, Any]] = []
    for number, file in enumerate(contents):
        numbered = [{"n": len(rows) + index, **row} for index, row in enumerate(file.rows)]
        rows += [{**row, **dict.fromkeys(file.missing), "p": FOLDERS[file.folder]} for row in numbered]
        schema = pa.schema({"n": pa.int64(), **{name: TYPES[name] for name in VALUES if name not in file.missing}})
        table = pa.Table.from_pylist(numbered, schema=schema)
        folder = root / file.folder
        folder.mkdir(exist_ok=True)
        pq.write_table(
            table, folder / f"{number}.parquet", row_group_size=file.group_rows, write_statistics=file.has_statistics
        )
    return pa.Table.from_pylist(rows, schema=pa.schema({"n": pa.int64(), **TYPES}))


def matching(table: pa.Table, predicate: str) -> list[int]:
    try:
        return sorted(kept(table, predicate)["n"].to_pylist())
    except Exception as error:
        # Such as a value that has too many digits for the decimal of a constant: no filter goes over these rows.
        if not any(known in str(error) for known in ("too large to store", "Overflow", "Cannot cast")):
            raise
        reject()


class Source:
    """A source whose predicate changes from one epoch to the next."""

    def __init__(self, files: Any, root: Path, **config: Any) -> None:
        schema = {"n": "int64", **{name: NAMES[kind] for name, kind in TYPES.items()}}
        self.predicate = ""
        message = SourceConstructor().resolve(files.source_config(root, format="parquet", schema=schema, **config))

        def make() -> Any:
            message.predicate = self.predicate
            return SourceConstructor().with_config(message, Registry())

        self.harness = SourceHarness(make)

    def read(self, predicate: str, **budget: Any) -> Any:
        self.predicate = predicate
        return self.harness.run(**budget)


@settings(max_examples=400)
@given(
    row=st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()}),
    predicate=SINGLE_TESTS | PREDICATES,
)
def test_a_row_that_a_filter_keeps_may_hold(row: dict[str, Any], predicate: str) -> None:
    schema = pa.schema([pa.field("n", pa.int64()), *(pa.field(name, kind) for name, kind in TYPES.items())])
    table = pa.Table.from_pylist([{"n": 0, "p": row["t"], **row}], schema=schema)
    if matching(table, predicate):
        assert may_hold(parse_condition(predicate, field="predicate"), lambda name: exactly(table[name][0]))


@given(
    contents=st.lists(file_contents(), min_size=1, max_size=4), predicate=PREDICATES, split_size=st.integers(1, 4000)
)
def test_no_row_is_left_out_for_which_the_predicate_is_true(
    files: Any, contents: list[File], predicate: str, split_size: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = write(Path(folder), contents)
        wanted = matching(table, predicate)
        source = Source(files, Path(folder), split_size=split_size)
        run = source.read(predicate, parallelism=2)
        source.harness.close()
    found = run.table["n"].to_pylist()
    assert run.is_final
    assert len(set(found)) == len(found)
    assert set(wanted) <= set(found)


@given(
    contents=st.lists(file_contents(), min_size=1, max_size=4),
    predicates=st.lists(PREDICATES | st.just(""), min_size=2, max_size=4),
    epochs=st.lists(st.tuples(st.integers(1, 5), st.integers(1, 3)), min_size=2, max_size=4),
)
def test_a_predicate_that_changes_holds_for_what_is_read_from_then_on(
    files: Any, contents: list[File], predicates: list[str], epochs: list[tuple[int, int]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = write(Path(folder), contents)
        source = Source(files, Path(folder), split_size=200, batch_rows=2)
        found: list[int] = []
        for predicate, (rows, parallelism) in zip(predicates, epochs, strict=False):
            run = source.read(predicate, rows=rows, parallelism=parallelism)
            found += run.table["n"].to_pylist()
        run = source.read("")
        found += run.table["n"].to_pylist()
        source.harness.close()
    assert run.is_final
    assert len(set(found)) == len(found)
    used = [predicate for predicate, _ in zip(predicates, epochs, strict=False) if predicate]
    wanted_by_all = set(table["n"].to_pylist())
    for predicate in used:
        wanted_by_all &= set(matching(table, predicate))
    assert wanted_by_all <= set(found)
