"""The checks of sources: every row once, wherever epochs end, and budgets that are kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa

from arroyo_core.api import ArroyoSchema, SourceContext, SourceFinishType, StopRequest
from arroyo_core.errors import ArroyoError
from arroyo_testing.conformance.faults import GUIDE, ConformanceError, failure_of
from arroyo_testing.conformance.observed import ObservedSource
from arroyo_testing.conformance.pruning import projected
from arroyo_testing.conformance.rows import Outcome, difference
from arroyo_testing.conformance.schemas import SchemaGuard
from arroyo_testing.conformance.subject import SourceSubject
from arroyo_testing.source_harness import SourceHarness, SourceRun

#: A source that is not final by then has no end, or makes no progress.
MAX_EPOCHS = 500
#: A source that is told to stop has so long to obey.
PATIENCE_S = 60.0
_POSITION = f"Save the position into a table before run returns, and read on from there: see {GUIDE}"

Look = Callable[[SourceContext, pa.RecordBatch], None]
Select = Callable[[ArroyoSchema], ArroyoSchema]


def read_all(
    subject: SourceSubject,
    *,
    rows: int | None = None,
    parallelisms: Sequence[int] = (1,),
    lost: int = 0,
    look: Look = lambda ctx, batch: None,
    select: Select = lambda schema: schema,
    lives_on: bool = False,
    doing: str = "while it reads",
) -> Outcome:
    """Epoch after epoch to the end, at each parallelism in turn; every epoch is lost `lost` times first."""
    outcome = Outcome()
    idles = subject.case.idles
    with _opened(subject, doing, look=look, select=select, lives_on=lives_on) as harness:
        for epoch in range(MAX_EPOCHS):
            parallelism = parallelisms[epoch % len(parallelisms)]
            for _ in range(lost):
                harness.run(rows=rows, parallelism=parallelism, ends_at_wait=idles, is_lost=True)
            done = harness.run(rows=rows, parallelism=parallelism, ends_at_wait=idles)
            outcome.add(None, done.table, ignore=subject.case.ignore)
            if done.is_final:
                return outcome
    raise ConformanceError(
        f"{subject.name} is not final after {MAX_EPOCHS} epochs {doing}: return FINAL at the end of the data; "
        "give the case a config whose data ends, with a few hundred rows at most"
    )


def check_produces_its_schema(subject: SourceSubject) -> None:
    """Every batch has the columns, types and nullability that were declared."""
    guard = SchemaGuard(subject.name, subject.source().output_schema([]))
    with guard:
        outcome = read_all(subject, look=lambda ctx, batch: guard.look(None, batch))
    if not outcome.row_count:
        raise ConformanceError(f"{subject.name} gives no row for the config of its case: give it one that has rows")


def check_any_cut_into_epochs(subject: SourceSubject) -> None:
    """Epochs of few rows and of many: no row is lost at the end of one, and none comes twice."""
    expected = read_all(subject)
    for rows in _budgets(expected.row_count):
        how = f"in epochs of {rows} rows"
        _same(subject, expected, read_all(subject, rows=rows, doing=how), how, _POSITION)


def check_lives_on(subject: SourceSubject) -> None:
    """An instance that goes on after each epoch reads every row once, as those do that are made again."""
    if not subject.source().lives_on():
        return
    expected = read_all(subject)
    fix = f"It says lives_on(): run must read on from the table, or from where it was itself: see {GUIDE}"
    for rows in _budgets(expected.row_count):
        for parallelisms in ((1,), (3,), (2, 2, 2, 1)):
            how = f"when it lives on in epochs of {rows} rows, at parallelism {', '.join(map(str, parallelisms))}"
            got = read_all(subject, rows=rows, parallelisms=parallelisms, lives_on=True, doing=how)
            _same(subject, expected, got, how, fix)


def check_crash_at_any_boundary(subject: SourceSubject) -> None:
    """An epoch that is lost and run again gives its rows again, and no others."""
    expected = read_all(subject)
    rows = max(1, expected.row_count // 7)
    how = f"when every epoch of {rows} rows is lost once and run again"
    fix = f"A source must read from its table alone, not from an attribute, a global or the outside: see {GUIDE}"
    _same(subject, expected, read_all(subject, rows=rows, lost=1, doing=how), how, fix)


def check_any_parallelism(subject: SourceSubject) -> None:
    """Two or three subtasks, and more or fewer at every epoch, share out the rows: each comes once."""
    expected = read_all(subject)
    few = max(1, expected.row_count // 8)
    fix = f"Key positions by what is read (a file, a split), not by the subtask, and share these out: see {GUIDE}"
    for parallelisms in ((2,), (3,), (1, 3, 2)):
        for rows in (None, few):
            how = f"at parallelism {', '.join(map(str, parallelisms))}" + (f" in epochs of {rows} rows" if rows else "")
            _same(subject, expected, read_all(subject, rows=rows, parallelisms=parallelisms, doing=how), how, fix)


def check_keeps_its_budget(subject: SourceSubject) -> None:
    """When the epoch's budget is spent nothing more is emitted, and the barrier is obeyed."""
    excess: list[int] = []

    def look(ctx: SourceContext, batch: pa.RecordBatch) -> None:
        if ctx.rows_left() == 0 and batch.num_rows:
            excess.append(batch.num_rows)

    for budget in (1, 3):
        with _opened(subject, "with a small budget", look=look) as harness:
            done = harness.run(rows=budget)
        if excess:
            raise ConformanceError(
                f"{subject.name} emits {sum(excess)} rows more after the epoch's budget of {budget} was spent: ask "
                "ctx.control() after every batch, and return its finish_type when it gives a message"
            )
        if not done.is_final and done.finish_types[0] is not SourceFinishType.CHECKPOINTED:
            raise ConformanceError(
                f"{subject.name} returns {done.finish_types[0].name} at a barrier: return message.finish_type"
            )


def check_stops_when_told(subject: SourceSubject) -> None:
    """A request to stop is obeyed at once: `run` returns what the message asks for."""
    for is_graceful in (True, False):
        request = StopRequest(is_graceful=is_graceful)
        began = time.monotonic()
        with _opened(subject, "when it is told to stop") as harness:
            done = harness.run(stop=request)
        if time.monotonic() - began > PATIENCE_S:
            raise ConformanceError(
                f"{subject.name} takes more than {PATIENCE_S:.0f} s to stop: wait by ctx.wait() only"
            )
        answer = done.finish_types[0]
        if answer not in (request.finish_type, SourceFinishType.FINAL):
            raise ConformanceError(
                f"{subject.name} is told to stop, and returns {answer.name}: return message.finish_type, "
                f"which is {request.finish_type.name}"
            )


def check_final_again(subject: SourceSubject) -> None:
    """A source that was final is run again, as others go on: it gives no row, and is final at once."""
    with _opened(subject, "when it is run again after its end") as harness:
        for _ in range(MAX_EPOCHS):
            if harness.run(ends_at_wait=subject.case.idles).is_final:
                break
        again = harness.run(ends_at_wait=subject.case.idles)
    if again.table.num_rows or not again.is_final:
        what = f"gives {again.table.num_rows} rows" if again.table.num_rows else "is not final"
        raise ConformanceError(f"{subject.name} {what} when it is run again after its end. {_POSITION}")


def check_selects_columns(subject: SourceSubject) -> None:
    """A selective source emits the columns of `ctx.output_schema`, with the values that they have among all."""
    source = subject.source()
    if not source.is_selective():
        return
    expected, whole = read_all(subject), source.output_schema([])
    for name in whole.names:

        def select(schema: ArroyoSchema, wanted: str = name) -> ArroyoSchema:
            kept = {wanted, schema.timestamp_column, *(schema.key_columns or ())}
            return ArroyoSchema(
                pa.schema([each for each in schema.schema if each.name in kept], schema.schema.metadata),
                schema.timestamp_column,
                schema.key_columns,
            )

        left = select(whole)
        how = f"when only {', '.join(left.names)} are wanted"
        got = read_all(subject, select=select, doing=how)
        wanted = projected(expected, frozenset(left.names))
        fix = "is_selective() promises the columns of ctx.output_schema: emit these, or return False"
        _same(subject, wanted, got, how, fix)


def check_says_when_idle(subject: SourceSubject) -> None:
    """A source that waits for rows says so, or windows behind it would wait with it; it ends its epoch in time."""
    if not subject.case.idles:
        return
    began = time.monotonic()
    with _opened(subject, "while it waits for rows") as harness:
        runs: list[SourceRun] = [harness.run(interval_ms=300) for _ in range(2)]
    if time.monotonic() - began > PATIENCE_S:
        raise ConformanceError(
            f"{subject.name} does not end its epoch in time while it waits for rows: "
            "wait by ctx.wait(), and return when it gives a message"
        )
    if not any(watermark.is_idle for run in runs for watermark in run.watermarks):
        raise ConformanceError(
            f"{subject.name} waits for rows and does not say so: "
            "call collector.broadcast_watermark(Watermark.idle()) before it waits"
        )


@contextmanager
def _opened(
    subject: SourceSubject,
    doing: str,
    *,
    look: Look = lambda ctx, batch: None,
    select: Select = lambda schema: schema,
    lives_on: bool = False,
) -> Iterator[SourceHarness]:
    """A harness; a failure of the source on the way names it."""
    harness = SourceHarness(lambda: ObservedSource(subject.source(), look, select), lives_on=lives_on)
    try:
        yield harness
    except ArroyoError as error:
        raise failure_of(subject.name, doing, error) from error
    finally:
        harness.close()


def _budgets(rows: int) -> list[int]:
    """A few sizes of epochs, of which there are some twenty at most where a source keeps its budget."""
    least = max(1, rows // 20)
    return sorted({least, max(least, rows // 7), max(least, rows - 1)})


def _same(subject: SourceSubject, expected: Outcome, got: Outcome, how: str, fix: str) -> None:
    found = difference(expected, got)
    if found is not None:
        raise ConformanceError(f"{subject.name} gives other rows {how}: {found}. {fix}")


SOURCE_CHECKS: Mapping[str, Callable[[SourceSubject], None]] = {
    "produces_its_schema": check_produces_its_schema,
    "any_cut_into_epochs": check_any_cut_into_epochs,
    "lives_on": check_lives_on,
    "crash_at_any_boundary": check_crash_at_any_boundary,
    "any_parallelism": check_any_parallelism,
    "keeps_its_budget": check_keeps_its_budget,
    "stops_when_told": check_stops_when_told,
    "final_again": check_final_again,
    "selects_columns": check_selects_columns,
    "says_when_idle": check_says_when_idle,
}
