"""The check that needs a whole pipeline: how epochs are cut must not matter, whichever inputs are quiet or idle."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.api import ArroyoSchema, Watermark
from arroyo_core.api.hashing import hash_batch
from arroyo_core.errors import ArroyoError
from arroyo_testing.conformance.cases import Stream
from arroyo_testing.conformance.faults import GUIDE, ConformanceError, failure_of
from arroyo_testing.conformance.rows import Outcome
from arroyo_testing.conformance.subject import OperatorSubject
from arroyo_testing.rounds import Cuts, Life, RoundPipeline, RoundStream, Turn

_LANES = 3
_ROUNDS = 6
#: How many runs are compared with that of one epoch; more, and other ones, with
#: `EPOCH_CUT_SEED=1000 EPOCH_CUT_SEEDS=300 pytest -k any_cut_in_a_pipeline`.
SEEDS = 4


def check_any_cut_in_a_pipeline(subject: OperatorSubject) -> None:
    """The same rows in one epoch and in several, at any parallelism, with lanes that are quiet or idle in between.

    Compared is what is there at the end, and at a quiet point before, where all that is known is out.
    """
    if subject.operator().is_sink():
        return
    whole = [_even_cut(_ROUNDS)]
    expected, _ = _outcomes(subject, _streams(subject, None), whole, 1, [Life(1)], "in one epoch")
    first = int(os.environ.get("EPOCH_CUT_SEED") or 1)
    for seed in range(first, first + int(os.environ.get("EPOCH_CUT_SEEDS") or SEEDS)):
        _check_cut(subject, seed, expected)


def _check_cut(subject: OperatorSubject, seed: int, expected: Outcome) -> None:
    rng = random.Random(seed)
    is_even = seed % 2 == 0
    quiet = rng.randint(1, _ROUNDS - 1)
    # Idleness says that nobody need wait: only where all lanes are cut at the same round does nobody run ahead.
    streams = _streams(subject, rng if is_even else None)
    cut = _even_cuts if is_even else _uneven_cuts
    before = [*cut(rng, 0, quiet), _even_cut(quiet)]
    cuts = [*before, *cut(rng, quiet, _ROUNDS), _even_cut(_ROUNDS)]
    lives_on = seed % 4 in (2, 3)
    # Some through the sockets of live workers, where rows of several senders come in any order.
    is_live = seed % 4 == 3
    lives = [replace(life, lives_on=lives_on, is_live=is_live) for life in _lives(rng, len(cuts))]
    ends = " | ".join(",".join(map(str, cut)) for cut in cuts)
    how = (
        f"with epochs that end after the rounds {ends} of its lanes, "
        f"at parallelism {', '.join(str(life.parallelism) for life in lives)} (seed {seed})"
        f"{', in live workers' if is_live else ', with operators that live on' if lives_on else ''}"
    )
    halves = [_even_cut(quiet), _even_cut(_ROUNDS)]
    _, known = _outcomes(subject, streams, halves, 1, [Life(1)], f"in two epochs (seed {seed})")
    outcome, early = _outcomes(subject, streams, cuts, len(before), lives, how)
    for wanted, got, when in ((expected, outcome, ""), (known, early, f" after {quiet} rounds of {_ROUNDS}")):
        found = subject.compare(wanted, got, is_ordered=False)
        if found is not None:
            raise ConformanceError(
                f"{subject.name} gives another result{when} {how}: {found}. What it sends must depend on rows and "
                "watermarks only, and on nothing that an epoch or a subtask leaves behind outside its tables: "
                f"see {GUIDE}"
            )


def _outcomes(
    subject: OperatorSubject,
    streams: Sequence[RoundStream],
    cuts: Cuts,
    early: int,
    lives: Sequence[Life],
    how: str,
) -> tuple[Outcome, Outcome]:
    """What there is at the end, and what there is after `early` epochs."""
    sides = sorted(subject.operator().side_outputs(subject.schemas))
    node = {
        "id": "subject",
        "operator": subject.case.operator,
        "inputs": [f"stream{index}" for index in range(len(streams))],
        "config": subject.config,
    }
    outputs = {"subject": None, **{f"subject.{name}": name for name in sides}}
    pipeline = RoundPipeline(nodes=[node], streams=streams, registry=subject.registry, outputs=list(outputs))
    with TemporaryDirectory(prefix="arroyo-conformance-", ignore_cleanup_errors=True) as folder:
        try:
            found = pipeline.run(Path(folder), cuts, lives)
        except ArroyoError as error:
            raise failure_of(subject.name, how, error) from error
    by_output = {outputs[output]: tables for output, tables in found.items()}
    return _outcome(subject, by_output, len(cuts)), _outcome(subject, by_output, early)


def _outcome(
    subject: OperatorSubject, found: Mapping[str | None, Mapping[tuple[int, int], pa.Table]], epochs: int
) -> Outcome:
    outcome = Outcome()
    for output, tables in found.items():
        outcome.rows.setdefault(output, Counter())
        for (epoch, _), table in tables.items():
            if epoch <= epochs:
                outcome.add(output, table, ignore=subject.case.ignore)
    if subject.case.latest_by:
        outcome.keep_latest(subject.case.latest_by, subject.case.removed_by)
    return outcome


def _streams(subject: OperatorSubject, rng: random.Random | None) -> list[RoundStream]:
    keys = subject.operator().routing_keys(subject.schemas)
    times = [_later_times_us(stream) for stream in subject.streams]
    # Of all streams: where one is idle, the others must not run ahead of what it has yet to bring.
    later = [min((time for time in each if time is not None), default=None) for each in zip(*times, strict=True)]
    return [_in_rounds(stream, wanted, later, rng) for stream, wanted in zip(subject.streams, keys, strict=True)]


def _later_times_us(stream: Stream) -> list[int | None]:
    """The least time of the rows after each round."""
    return [_least_time_us(stream.batch.slice(end), stream.timestamp_column) for end in _places(stream)[1:]]


def _places(stream: Stream) -> list[int]:
    return [stream.batch.num_rows * number // _ROUNDS for number in range(_ROUNDS + 1)]


def _in_rounds(
    stream: Stream, keys: tuple[str, ...] | None, later: Sequence[int | None], rng: random.Random | None
) -> RoundStream:
    """The rows in their order, a share in each round; equal keys in one lane, so that their order stays."""
    batch = stream.batch
    lanes = _lane_of_rows(batch, keys)
    turns: list[list[Turn]] = [[] for _ in range(_LANES)]
    for (start, end), later_us in zip(pairwise(_places(stream)), later, strict=True):
        part = batch.slice(start, end - start)
        time_us = None if stream.timestamp_column is None else later_us
        for lane in range(_LANES):
            rows = part.filter(pa.array(lanes[start:end] == lane))
            turns[lane].append(_turn(rows, time_us, rng))
    schema = ArroyoSchema(batch.schema, stream.timestamp_column, stream.key_columns)
    return RoundStream(schema, turns)


def _turn(rows: pa.RecordBatch, later_us: int | None, rng: random.Random | None) -> Turn:
    mark = None if later_us is None else Watermark.event_time(later_us)
    if rows.num_rows or rng is None:
        return Turn(rows if rows.num_rows else None, mark)
    return Turn(None, rng.choice([None, mark, Watermark.idle()]) if mark is not None else None)


def _lane_of_rows(batch: pa.RecordBatch, keys: tuple[str, ...] | None) -> np.ndarray:
    if keys is None:
        return np.arange(batch.num_rows) % _LANES
    if not keys:
        return np.zeros(batch.num_rows, dtype=np.int64)
    return (hash_batch(batch, keys) % _LANES).astype(np.int64)


def _least_time_us(batch: pa.RecordBatch, column: str | None) -> int | None:
    if column is None or batch.num_rows == 0:
        return None
    times = batch.column(column)
    least = pc.min(pc.cast(times, pa.timestamp("us", times.type.tz), safe=False).cast(pa.int64())).as_py()
    return None if least is None else int(least)


def _even_cut(rounds: int) -> list[int]:
    return [rounds] * _LANES


def _even_cuts(rng: random.Random, start: int, end: int) -> list[list[int]]:
    """Some between two rounds, all lanes alike."""
    places = range(start + 1, end)
    return [_even_cut(place) for place in sorted(rng.sample(places, rng.randint(0, len(places))))]


def _uneven_cuts(rng: random.Random, start: int, end: int) -> list[list[int]]:
    """Some between two rounds, each lane for itself."""
    count = rng.randint(1, 2)
    lanes = [sorted(rng.randint(start, end) for _ in range(count)) for _ in range(_LANES)]
    return [list(cut) for cut in zip(*lanes, strict=True)]


def _lives(rng: random.Random, epochs: int) -> list[Life]:
    lives = []
    while epochs > 1:
        count = rng.randint(1, epochs - 1)
        lives.append(Life(rng.randint(1, 3), count))
        epochs -= count
    return [*lives, Life(rng.randint(1, 3))]
