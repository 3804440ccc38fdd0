"""What happens to an operator in a run: rows, watermarks, restarts and crashes, in order, and ways to cut them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_testing.conformance.cases import Stream

#: More boundaries than this are thinned out.
MAX_BOUNDARIES = 5
#: Into how many batches a block of rows is cut at most.
MAX_PIECES = 24


@dataclass(frozen=True, slots=True)
class Feed:
    """Rows of one input."""

    index: int
    batch: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Advance:
    """A watermark of one input."""

    index: int
    event_time_us: int


@dataclass(frozen=True, slots=True)
class Tick:
    """The operator is ticked; the clock stands still."""


@dataclass(frozen=True, slots=True)
class Restart:
    """A checkpoint, after which all instances are thrown away and made again, as many as `parallelism`."""

    parallelism: int | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint, after which the same instances go on, as in a live worker."""


@dataclass(frozen=True, slots=True)
class Crash:
    """All since the last restart is lost; what follows in the script gives it again."""


Step = Feed | Advance | Tick | Restart | Checkpoint | Crash
Script = Sequence[Step]


def make_script(streams: Sequence[Stream]) -> list[Step]:
    """The rows of all inputs in turn, in blocks between which watermarks come. Every variant keeps their order."""
    blocks = [list(_blocks(index, stream, len(streams))) for index, stream in enumerate(streams)]
    return [step for turn in zip_longest(*blocks, fillvalue=()) for block in turn for step in block]


def whole_rows(script: Script) -> int:
    return sum(step.batch.num_rows for step in script if isinstance(step, Feed))


def cut(script: Script, pieces: int = MAX_PIECES) -> list[Step]:
    """Every block of rows in so many batches, or one per row where there are fewer."""
    return [part for step in script for part in _pieces(step, pieces)]


def cut_at_random(script: Script, seed: int) -> list[Step]:
    """Every block of rows in batches of any sizes, empty ones among them, and ticks in between."""
    rng = random.Random(seed)
    steps: list[Step] = []
    for step in script:
        if isinstance(step, Feed):
            places = sorted(rng.randint(0, step.batch.num_rows) for _ in range(rng.randint(1, 4)))
            for start, end in pairwise([0, *places, step.batch.num_rows]):
                steps.append(Feed(step.index, step.batch.slice(start, end - start)))
                if rng.random() < 0.3:
                    steps.append(Tick())
        else:
            steps.append(step)
    return steps


def with_empty_batches(script: Script, streams: Sequence[Stream]) -> list[Step]:
    """An empty batch on every input before every step, and at the end."""
    empty = [Feed(index, stream.batch.slice(0, 0)) for index, stream in enumerate(streams)]
    return [each for step in script for each in (*empty, step)] + list(empty)


def boundaries(script: Script) -> list[int]:
    """The places between steps, before the first and after the last; some of them where there are many."""
    places = list(range(len(script) + 1))
    if len(places) <= MAX_BOUNDARIES:
        return places
    return sorted({round(i * (len(script)) / (MAX_BOUNDARIES - 1)) for i in range(MAX_BOUNDARIES)})


def restart_at(script: Script, place: int, parallelism: int | None = None) -> list[Step]:
    return [*script[:place], Restart(parallelism), *script[place:]]


def restart_everywhere(script: Script, parallelisms: Sequence[int | None] = (None,)) -> list[Step]:
    """A restart after every step, at each of the parallelisms in turn."""
    return [
        each for place, step in enumerate(script) for each in (step, Restart(parallelisms[place % len(parallelisms)]))
    ]


def checkpoint_everywhere(script: Script, *, restart_every: int | None = None) -> list[Step]:
    """A checkpoint after every step, some of them with a restart."""
    return [
        each
        for place, step in enumerate(script, start=1)
        for each in (step, Restart() if restart_every and place % restart_every == 0 else Checkpoint())
    ]


def crash_at(script: Script, start: int, end: int) -> list[Step]:
    """A checkpoint at `start`, and a crash at `end`: the steps between are done, lost, and done again."""
    return [*script[:start], Restart(), *script[start:end], Crash(), *script[start:]]


def with_nulls(streams: Sequence[Stream], index: int, column: str, *, every: int) -> list[Stream]:
    """The streams with null in a column of one input: in every row, or in the first of so many."""
    batch = streams[index].batch
    place = batch.schema.get_field_index(column)
    field = batch.schema.field(place)
    # No mask of `if_else` takes nested types.
    values = [None if row % every == 0 else value for row, value in enumerate(batch.column(place).to_pylist())]
    changed = batch.set_column(place, field, pa.array(values, field.type))
    return [*streams[:index], replace(streams[index], rows=changed), *streams[index + 1 :]]


def _blocks(index: int, stream: Stream, inputs: int) -> Iterator[Sequence[Step]]:
    batch = stream.batch
    marks = stream.watermarks if stream.watermarks is not None else _watermarks(stream)
    thirds = {batch.num_rows // 3, 2 * batch.num_rows // 3} if inputs > 1 else set()
    places = sorted({place for place in {*marks, *thirds} if 0 < place < batch.num_rows} | {batch.num_rows})
    start = 0
    for end in places:
        steps: list[Step] = [Feed(index, batch.slice(start, end - start))]
        if end in marks:
            steps.append(Advance(index, marks[end]))
        yield steps
        start = end


def _watermarks(stream: Stream) -> dict[int, int]:
    """After each third of the rows the least event time of all that follow."""
    if stream.timestamp_column is None:
        return {}
    batch = stream.batch
    column = batch.column(stream.timestamp_column)
    times = pc.cast(column, pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
    found = {}
    for place in (batch.num_rows // 3, 2 * batch.num_rows // 3):
        least = pc.min(times[place:]).as_py() if 0 < place < batch.num_rows else None
        if least is not None:
            found[place] = least
    return found


def _pieces(step: Step, pieces: int) -> Iterator[Step]:
    if not isinstance(step, Feed) or step.batch.num_rows == 0:
        yield step
        return
    size = max(1, -(-step.batch.num_rows // pieces))
    for start in range(0, step.batch.num_rows, size):
        yield Feed(step.index, step.batch.slice(start, size))
