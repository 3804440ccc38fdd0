"""The check that needs a whole pipeline: how epochs are cut must not matter, whichever inputs are quiet or idle."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
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
#: How many runs are compared with that of one epoch.
SEEDS = 4


def check_any_cut_in_a_pipeline(subject: OperatorSubject, seeds: Sequence[int] = range(1, SEEDS + 1)) -> None:
    """The same rows in one epoch and in several, at any parallelism, with lanes that are quiet or idle in between."""
    if subject.operator().is_sink():
        return
    whole = [[_ROUNDS] * _LANES]
    expected = _outcome(subject, _streams(subject, None), whole, [Life(1)], "in one epoch")
    for seed in seeds:
        rng = random.Random(seed)
        is_even = seed % 2 == 0
        cuts = _even_cuts(rng) if is_even else _uneven_cuts(rng)
        lives = _lives(rng, len(cuts))
        ends = " | ".join(",".join(map(str, cut)) for cut in cuts)
        how = (
            f"with epochs that end after the rounds {ends} of its lanes, "
            f"at parallelism {', '.join(str(life.parallelism) for life in lives)} (seed {seed})"
        )
        # Idleness says that nobody need wait: only where all lanes are cut at the same round does nobody run ahead.
        outcome = _outcome(subject, _streams(subject, rng if is_even else None), cuts, lives, how)
        found = subject.compare(expected, outcome, is_ordered=False)
        if found is not None:
            raise ConformanceError(
                f"{subject.name} gives another result {how}: {found}. What it sends must depend on rows and watermarks "
                f"only, and on nothing that an epoch or a subtask leaves behind outside its tables: see {GUIDE}"
            )


def _outcome(
    subject: OperatorSubject, streams: Sequence[RoundStream], cuts: Cuts, lives: Sequence[Life], how: str
) -> Outcome:
    sides = sorted(subject.operator().side_outputs(subject.schemas))
    node = {
        "id": "subject",
        "operator": subject.case.operator,
        "inputs": [f"stream{index}" for index in range(len(streams))],
        "config": subject.config,
    }
    outputs = {"subject": None, **{f"subject.{name}": name for name in sides}}
    pipeline = RoundPipeline(nodes=[node], streams=streams, registry=subject.registry, outputs=list(outputs))
    outcome = Outcome()
    with TemporaryDirectory(prefix="arroyo-conformance-", ignore_cleanup_errors=True) as folder:
        try:
            found = pipeline.run(Path(folder), cuts, lives)
        except ArroyoError as error:
            raise failure_of(subject.name, how, error) from error
    for output, tables in found.items():
        outcome.rows.setdefault(outputs[output], Counter())
        for table in tables:
            outcome.add(outputs[output], table, ignore=subject.case.ignore)
    if subject.case.latest_by:
        outcome.keep_latest(subject.case.latest_by)
    return outcome


def _streams(subject: OperatorSubject, rng: random.Random | None) -> list[RoundStream]:
    keys = subject.operator().routing_keys(subject.schemas)
    return [_in_rounds(stream, wanted, rng) for stream, wanted in zip(subject.streams, keys, strict=True)]


def _in_rounds(stream: Stream, keys: tuple[str, ...] | None, rng: random.Random | None) -> RoundStream:
    """The rows in their order, a share in each round; equal keys in one lane, so that their order stays."""
    batch = stream.batch
    lanes = _lane_of_rows(batch, keys)
    places = [batch.num_rows * number // _ROUNDS for number in range(_ROUNDS + 1)]
    turns: list[list[Turn]] = [[] for _ in range(_LANES)]
    for number in range(_ROUNDS):
        start, end = places[number], places[number + 1]
        part = batch.slice(start, end - start)
        later_us = _least_time_us(batch.slice(end), stream.timestamp_column)
        for lane in range(_LANES):
            rows = part.filter(pa.array(lanes[start:end] == lane))
            turns[lane].append(_turn(rows, later_us, rng))
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


def _even_cuts(rng: random.Random) -> list[list[int]]:
    places = sorted(rng.sample(range(1, _ROUNDS), rng.randint(2, _ROUNDS - 1)))
    return [[place] * _LANES for place in (*places, _ROUNDS)]


def _uneven_cuts(rng: random.Random) -> list[list[int]]:
    count = rng.randint(3, _ROUNDS)
    lanes = [[*sorted(rng.randint(0, _ROUNDS) for _ in range(count - 1)), _ROUNDS] for _ in range(_LANES)]
    return [list(cut) for cut in zip(*lanes, strict=True)]


def _lives(rng: random.Random, epochs: int) -> list[Life]:
    lives = []
    while epochs > 1:
        count = rng.randint(1, epochs - 1)
        lives.append(Life(rng.randint(1, 3), count))
        epochs -= count
    return [*lives, Life(rng.randint(1, 3))]
