"""The checks of operators: results must not depend on how rows are cut, nor on restarts, crashes and parallelism."""

from __future__ import annotations

from collections.abc import Sequence, Set

import pyarrow as pa

from arroyo_core.api.updating import UPDATING_META, is_updating
from arroyo_testing.conformance.faults import GUIDE, ConformanceError
from arroyo_testing.conformance.memory import Remembered, changes, shared_memory
from arroyo_testing.conformance.pruning import projected, pruned
from arroyo_testing.conformance.rows import Outcome
from arroyo_testing.conformance.schemas import SchemaGuard
from arroyo_testing.conformance.script import (
    Feed,
    boundaries,
    checkpoint_everywhere,
    crash_at,
    cut,
    cut_at_random,
    restart_at,
    restart_everywhere,
    with_empty_batches,
    with_nulls,
)
from arroyo_testing.conformance.subject import OperatorSubject, Run

_SEEDS = (1, 2)


def check_produces_its_schema(subject: OperatorSubject) -> None:
    """Every batch of every output has the columns, types and nullability that were declared."""
    guard = SchemaGuard(subject.name, subject.output_schema(), subject.operator().side_outputs(subject.schemas))
    with guard:
        run = subject.run(cut(subject.script(), 3), look=guard.look)
    if not run.outcome.row_count and not subject.operator().is_sink():
        raise ConformanceError(
            f"{subject.name} emits no row for the inputs of its case, so that nothing is checked: "
            "give it rows that come out"
        )


def check_any_cut_into_batches(subject: OperatorSubject) -> None:
    """One batch, a batch per row, or batches of any sizes: the result is the same."""
    expected = subject.expected()
    for script, how in [
        (cut(subject.script()), "one row per batch"),
        *((cut_at_random(subject.script(), seed), f"batches of other sizes (seed {seed})") for seed in _SEEDS),
    ]:
        _same(subject, expected, subject.run(script, doing=f"with {how}"), f"with {how}", _CUT_ADVICE)


def check_any_cut_into_epochs(subject: OperatorSubject) -> None:
    """Checkpoint and restart at any one boundary: the result is the same."""
    script = cut(subject.script(), 4)
    for place in boundaries(script):
        how = f"with a restart after step {place} of {len(script)}"
        _restarted(subject, subject.run(restart_at(script, place), doing=how), how)


def check_no_state_outside_tables(subject: OperatorSubject) -> None:
    """What is not in a table is lost: an attribute, a class attribute, a module global must not change a result."""
    before = shared_memory(subject.operator())
    found = subject.compare(subject.expected(), subject.run(subject.script()).outcome, is_ordered=False)
    if found is not None:
        _blame_shared(subject, before, "a second run in the same process gives another result", found)
    how = "after a restart"
    _restarted(subject, subject.run(restart_everywhere(cut(subject.script())), doing=how), how)


def check_lives_on(subject: OperatorSubject) -> None:
    """An instance that goes on after its checkpoints gives the result of those that are made again."""
    if not subject.operator().lives_on():
        return
    advice = (
        "It says lives_on(): what it keeps outside of its tables must be, after a checkpoint, what on_start would make "
        f"of them, and nothing may be written twice: see {GUIDE}"
    )
    expected, script = subject.expected(), cut(subject.script())
    for every, parallelism in ((None, 1), (3, 1), (4, 3)):
        how = "when it lives on after each checkpoint" + (f", but for every {every}th" if every else "")
        how += f", at parallelism {parallelism}" if parallelism > 1 else ""
        run = subject.run(checkpoint_everywhere(script, restart_every=every), parallelism=parallelism, doing=how)
        _same(subject, expected, run, how, advice, is_ordered=None if parallelism == 1 else False)


def check_crash_at_any_boundary(subject: OperatorSubject) -> None:
    """An epoch that is lost and run again leaves no trace in the result."""
    expected = subject.expected()
    script = cut(subject.script(), 4)
    places = boundaries(script)[::2]
    before = shared_memory(subject.operator())
    for start, end in zip(places, [*places[1:], places[-1]], strict=True):
        how = f"after the steps {start + 1} to {end} were lost in a crash and run again"
        run = subject.run(crash_at(script, start, end), doing=how)
        found = subject.compare(expected, run.outcome, is_ordered=False)
        if found is not None:
            _blame_shared(subject, before, f"{how} the result differs", found)


def check_any_parallelism(subject: OperatorSubject) -> None:
    """Three subtasks, and more or fewer at every restart, give the result of one."""
    expected, script = subject.expected(), cut(subject.script(), 4)
    advice = (
        "Rows that must meet need routing_keys(), and state must be keyed by something global, "
        f"not by the subtask: see {GUIDE}"
    )
    how = "at parallelism 3"
    _same(subject, expected, subject.run(script, parallelism=3, doing=how), how, advice, is_ordered=False)
    how = "when the parallelism changes at every restart (3, 2, 1, ...)"
    run = subject.run(restart_everywhere(cut(subject.script(), 2), (3, 2, 1)), doing=how)
    _same(subject, expected, run, how, advice, is_ordered=False)


def check_empty_batches(subject: OperatorSubject) -> None:
    """Batches without rows change nothing, and an input that never has any is not an error."""
    expected = subject.expected()
    how = "with empty batches"
    run = subject.run(with_empty_batches(subject.script(), subject.streams), doing=how)
    _same(subject, expected, run, how, "An empty batch must do nothing: return early where num_rows is 0")
    subject.run([], doing="when no row ever comes")
    nothing = [Feed(index, stream.batch.slice(0, 0)) for index, stream in enumerate(subject.streams)]
    subject.run(restart_everywhere(nothing), doing="when only empty batches come")


def check_nulls(subject: OperatorSubject) -> None:
    """Null in any column that may be null: no failure, the declared schema, and the same result for any cut."""
    for index, stream in enumerate(subject.streams):
        for field in stream.rows.schema:
            # Event times and the marks of changes are never null: their streams are made by operators that see to it.
            if not field.nullable or field.name in (stream.timestamp_column, UPDATING_META):
                continue
            _check_null(subject, index, field, every=1)
            # Of a stream of changes a part must not be altered: rows would be taken back that never came.
            if not is_updating(stream.schema):
                _check_null(subject, index, field, every=2)


def check_needed_columns(subject: OperatorSubject) -> None:
    """Columns that the operator says it does not need can be left out, and what is needed stays the same."""
    operator, schemas = subject.operator(), subject.schemas
    outputs = subject.output_schema().names
    for needed in [frozenset(outputs), *(frozenset([name]) for name in outputs)]:
        answer = list(operator.needed_columns(schemas, needed))
        if len(answer) != len(schemas):
            raise ConformanceError(
                f"{subject.name}.needed_columns() has {len(answer)} answers for {len(schemas)} inputs: "
                "give one for each"
            )
        if any(columns is not None for columns in answer):
            _check_pruned(subject, needed, answer)


def _check_null(subject: OperatorSubject, index: int, field: pa.Field, *, every: int) -> None:
    streams = with_nulls(subject.streams, index, field.name, every=every)
    where = "every row" if every == 1 else "some rows"
    how = f"with null in {where} of the column {field.name!r} of input {index}"
    guard = SchemaGuard(subject.name, subject.output_schema(), subject.operator().side_outputs(subject.schemas), how)
    # The watermarks of the case, not those of the rows that are left.
    script = subject.script(streams)
    with guard:
        expected = subject.run(script, look=guard.look, doing=how)
    if every == 1 and not is_updating(streams[index].schema):
        return
    with guard:
        run = subject.run(restart_at(script, len(script) // 2), look=guard.look, doing=how)
    _same(subject, expected.outcome, run, f"{how}, with a restart in the middle,", _CUT_ADVICE, is_ordered=False)


def _check_pruned(subject: OperatorSubject, needed: frozenset[str], answer: Sequence[Set[str] | None]) -> None:
    streams = [
        stream if columns is None else pruned(stream, columns)
        for stream, columns in zip(subject.streams, answer, strict=True)
    ]
    left_out = sorted(
        {n for old, new in zip(subject.streams, streams, strict=True) for n in old.rows.schema.names}
        - {n for s in streams for n in s.rows.schema.names}
    )
    if not left_out:
        return
    how = f"without the columns {', '.join(left_out)}"
    advice = f"{subject.name}.needed_columns() says that they are not needed for {', '.join(sorted(needed))}: name them"
    try:
        run = subject.run(subject.script(streams), streams=streams, doing=how)
    except ConformanceError as error:
        raise ConformanceError(f"{error}. {advice}", details=error.details) from error
    found = subject.compare(projected(subject.expected(), needed), projected(run.outcome, needed), is_ordered=False)
    if found is not None:
        raise ConformanceError(f"{subject.name} gives another result {how}: {found}. {advice}")


_CUT_ADVICE = (
    "A batch is an accident: rows that belong together may come in several. "
    f"Keep what is needed of earlier rows in a table: see {GUIDE}"
)


def _same(
    subject: OperatorSubject, expected: Outcome, run: Run, how: str, advice: str, *, is_ordered: bool | None = None
) -> None:
    found = subject.compare(expected, run.outcome, is_ordered=is_ordered)
    if found is not None:
        raise ConformanceError(f"{subject.name} gives another result {how}: {found}. {advice}")


def _restarted(subject: OperatorSubject, run: Run, how: str) -> None:
    """Compare, and name the attributes that were forgotten."""
    found = subject.compare(subject.expected(), run.outcome)
    if found is None:
        return
    if not run.forgotten:
        raise ConformanceError(
            f"{subject.name} gives another result {how}: {found}. Write all that later rows depend on into a table "
            f"before the checkpoint, and read it in on_start: see {GUIDE}"
        )
    names = ", ".join(f"{name!r} (it was {old}, and is {new} afterwards)" for name, (old, new) in _first(run.forgotten))
    raise ConformanceError(
        f"{subject.name} keeps {names} between batches outside a state table: {how} the result differs: {found}. "
        f"Put it into a table: see {GUIDE}"
    )


def _blame_shared(subject: OperatorSubject, before: Remembered, what: str, found: str) -> None:
    suspects = changes(before, shared_memory(subject.operator()))
    if suspects:
        names = ", ".join(f"{name!r} (it was {old}, and is {new} now)" for name, (old, new) in _first(suspects))
        raise ConformanceError(
            f"{subject.name} keeps {names} in its class or in a module, where it outlives the operator: "
            f"{what}: {found}. Put it into a table: see {GUIDE}"
        )
    raise ConformanceError(
        f"{subject.name} is not a function of its tables and its input: {what}: {found}. "
        f"Do not use the clock, random numbers or anything outside; keep state in tables: see {GUIDE}"
    )


def _first(found: dict[str, tuple[str, str]]) -> list[tuple[str, tuple[str, str]]]:
    return list(found.items())[:3]
