"""The checks of sinks that have to do with who commits: drivers that lost the job, and jobs that began again.

What others see must not depend on a driver that wakes up late. The check does, in a folder of its own each time:

1. A driver of generation 1 ends epoch 1. It commits it, or is paused before that.
2. A driver of generation 2 takes over, commits epoch 1 if the first one has not, and then epoch 2.
3. The first driver wakes up, and commits epoch 1: `handle_commit` with the old token, and the old commit data.

What is visible after 3 must be what was visible before it, whether the sink raises or does nothing. A sink that only
adds rows, and whose commit is idempotent, passes without a look at the token. For one that replaces rows by key the
two epochs must have keys in common, and other values: beside the halves of the case's rows, the check commits all
rows, and then all rows with the values of one column moved on by a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

import pyarrow as pa

from arroyo_core.api import Registry
from arroyo_core.api.updating import is_updating
from arroyo_core.errors import ArroyoError, Domain, error_domain
from arroyo_testing.conformance.cases import SinkCase, Stream
from arroyo_testing.conformance.faults import SINK_GUIDE, ConformanceError
from arroyo_testing.conformance.rows import difference
from arroyo_testing.conformance.script import Feed, Step
from arroyo_testing.conformance.sink_checks import SinkLife, committing, split_steps

#: In so many columns, one after the other, values are moved.
MAX_COLUMNS = 8
_OTHER_INCARNATION = "00000000000000b2"


def check_refuses_an_older_token(case: SinkCase, registry: Registry) -> None:
    """A driver that lost the job and wakes up in its commit changes nothing that its successor has made visible."""
    for is_committed in (False, True):
        with committing(case, registry) as life:
            first, second, *_ = split_steps(life.steps, 2)
            _wake_up_late(life, first, second, is_committed=is_committed)
        for streams in _moved(case.streams):
            with committing(case, registry) as life:
                try:
                    _wake_up_late(life, _feeds(case.streams), _feeds(streams), is_committed=is_committed)
                except ArroyoError:
                    # Rows that the kit has made up may be none that this sink can take.
                    continue


def check_another_incarnation(case: SinkCase, registry: Registry) -> None:
    """A job whose state was removed counts epochs from 1 again: its rows are new ones all the same."""
    with committing(case, registry) as life:
        first, second, *_ = split_steps(life.steps, 2)
        life.feed(first)
        life.commit(life.harness.checkpoint())
        try:
            life.begin_again(_OTHER_INCARNATION)
            life.feed(second)
            life.commit(life.harness.checkpoint())
        except ArroyoError as error:
            if error_domain(error) is Domain.USER:
                # A sink may refuse to write where somebody has written: nothing is lost without a word.
                return
            raise
        life.expect(
            [*first, *second],
            "when the job's state was removed, and it counts epochs from 1 again",
            f"Know an epoch by ctx.token.incarnation and its number, not by its number alone: see {SINK_GUIDE}",
        )


def _wake_up_late(life: SinkLife, first: Sequence[Step], second: Sequence[Step], *, is_committed: bool) -> None:
    life.feed(first)
    staged = life.harness.checkpoint()
    token = life.harness.last_token
    if is_committed:
        life.commit(staged)
    life.harness.take_over()
    if not is_committed:
        life.commit(staged)
    life.feed(second)
    life.commit(life.harness.checkpoint())
    before = life.visible()
    # To raise is one way to refuse.
    with suppress(ArroyoError):
        life.commit(staged, token=token)
    found = difference(before, life.visible())
    if found is not None:
        raise ConformanceError(
            f"{life.name} shows other rows after a driver that lost the job has committed epoch {token.epoch} late, "
            f"over those of its successor: {found}. Refuse a token that is older than the last one you took "
            f"(ctx.token): see {SINK_GUIDE}"
        )


def _feeds(streams: Sequence[Stream]) -> list[Step]:
    return [Feed(index, stream.batch) for index, stream in enumerate(streams)]


def _moved(streams: Sequence[Stream]) -> Iterator[list[Stream]]:
    """The streams with the values of one column of the first moved on by a row, for column after column."""
    stream, *others = streams
    if is_updating(stream.schema) or len(stream.schema.names) < 2:
        # A row that is taken back must be one that came; and a row that is nothing but its key has no other value.
        return
    batch = stream.batch
    names = [name for name in batch.schema.names if name != stream.timestamp_column]
    for name in names[:MAX_COLUMNS]:
        place = batch.schema.get_field_index(name)
        column = batch.column(place)
        moved = pa.concat_arrays([column[-1:], column[:-1]])
        if not moved.equals(column):
            changed = batch.set_column(place, batch.schema.field(place), moved)
            yield [Stream(changed, stream.timestamp_column, stream.key_columns), *others]


TOKEN_CHECKS: Mapping[str, Callable[[SinkCase, Registry], None]] = {
    "refuses_an_older_token": check_refuses_an_older_token,
    "another_incarnation": check_another_incarnation,
}
