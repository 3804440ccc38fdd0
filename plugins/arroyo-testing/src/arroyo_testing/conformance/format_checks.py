"""The checks of formats: what was written is read, whatever the values, the cuts and the number of readers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa

from arroyo_core.api import ArroyoSchema, Registry
from arroyo_core.errors import ArroyoError
from arroyo_testing.conformance.cases import FormatCase, SinkCase, SourceCase, Stream, case_name
from arroyo_testing.conformance.faults import ConformanceError, failure_of
from arroyo_testing.conformance.rows import Outcome, difference, outcome_of
from arroyo_testing.conformance.script import with_nulls
from arroyo_testing.conformance.source_checks import read_all
from arroyo_testing.conformance.subject import OperatorSubject, SourceSubject, empty_folder
from arroyo_testing.parallel import ParallelHarness


def check_round_trip(case: FormatCase, registry: Registry) -> None:
    """Rows, names and types come back as they were written; in one file and in several."""
    rows = Stream(case.rows).batch
    for batches in (1, 3):
        _check(case, registry, rows, f"from {batches} batches", batches=batches)


def check_types(case: FormatCase, registry: Registry) -> None:
    """The schema that is read is the one that was written."""
    rows = Stream(case.rows).batch
    with empty_folder() as folder:
        _write(case, registry, rows, folder, batches=1)
        found = _source(case, registry, folder).source().output_schema([]).schema
    for field in rows.schema:
        if field.name in case.ignore:
            continue
        place = found.get_field_index(field.name)
        kind = found.field(place).type if place >= 0 else None
        if kind != field.type:
            read = "not at all" if kind is None else f"as {kind}"
            raise ConformanceError(
                f"{case_name(case)} writes the column {field.name!r} as {field.type}, and reads it {read}: "
                "keep the type, refuse it with a ConfigError, or declare a schema in the config of the source"
            )


def check_nulls(case: FormatCase, registry: Registry) -> None:
    """Null in every column that may be null is null again."""
    stream = Stream(case.rows)
    for field in stream.rows.schema:
        if field.nullable:
            for every in (1, 2):
                (changed,) = with_nulls([stream], 0, field.name, every=every)
                _check(case, registry, changed.batch, f"with null in the column {field.name!r}")


def check_no_rows(case: FormatCase, registry: Registry) -> None:
    """Empty batches among others are no rows."""
    rows = Stream(case.rows).batch
    with empty_folder() as folder:
        _write(case, registry, rows, folder, batches=2, is_padded=True)
        _compare(case, rows, _read(case, registry, folder), "with empty batches between them")


def check_any_readers(case: FormatCase, registry: Registry) -> None:
    """Several readers and epochs of a few rows share the files: every row once."""
    rows = Stream(case.rows).batch
    with empty_folder() as folder:
        _write(case, registry, rows, folder, batches=2)
        for parallelisms, budget in (((3,), None), ((1,), 2), ((2, 1, 3), 3)):
            how = f"by {', '.join(map(str, parallelisms))} readers" + (f" in epochs of {budget} rows" if budget else "")
            subject = _source(case, registry, folder)
            got = read_all(subject, rows=budget, parallelisms=parallelisms, doing=how)
            _compare(case, rows, got, how)


def _check(case: FormatCase, registry: Registry, rows: pa.RecordBatch, how: str, *, batches: int = 1) -> None:
    with empty_folder() as folder:
        _write(case, registry, rows, folder, batches=batches)
        _compare(case, rows, _read(case, registry, folder), how)


def _write(
    case: FormatCase, registry: Registry, rows: pa.RecordBatch, folder: Path, *, batches: int, is_padded: bool = False
) -> None:
    operator, config = case.sink
    subject = OperatorSubject(SinkCase(operator, config, inputs=[rows]), registry, folder)
    try:
        with ParallelHarness(subject.operator, inputs=[ArroyoSchema(rows.schema)]) as harness:
            size = max(1, -(-rows.num_rows // batches))
            for start in range(0, rows.num_rows, size):
                if is_padded:
                    harness.process(rows.slice(0, 0))
                harness.process(rows.slice(start, size))
            harness.end_of_data()
            harness.commit(harness.checkpoint())
    except ArroyoError as error:
        raise failure_of(case_name(case), "to write its rows", error) from error


def _source(case: FormatCase, registry: Registry, folder: Path) -> SourceSubject:
    operator, config = case.source
    return SourceSubject(SourceCase(operator, config, ignore=case.ignore), registry, folder)


def _read(case: FormatCase, registry: Registry, folder: Path) -> Outcome:
    return read_all(_source(case, registry, folder), doing="to read what was written")


def _compare(case: FormatCase, rows: pa.RecordBatch, got: Outcome, how: str) -> None:
    found = difference(outcome_of(rows, ignore=case.ignore), got)
    if found is not None:
        raise ConformanceError(
            f"{case_name(case)} reads other rows than it wrote, {how}: {found}. "
            "Write values so that they can be told apart again, or refuse the column's type with a ConfigError"
        )


FORMAT_CHECKS: Mapping[str, Callable[[FormatCase, Registry], None]] = {
    "round_trip": check_round_trip,
    "types": check_types,
    "nulls": check_nulls,
    "no_rows": check_no_rows,
    "any_readers": check_any_readers,
}
