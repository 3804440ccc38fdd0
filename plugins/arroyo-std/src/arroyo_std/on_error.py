"""What becomes of rows that cannot be computed: they fail the job, give null, or go to a side output."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.metadata import version

import numpy as np
import pyarrow as pa

from arroyo_core.api import ArrowCollector, ArroyoSchema, OperatorContext, Origin
from arroyo_core.api.dead_letters import dead_letter_schema, make_dead_letters
from arroyo_core.errors import ConfigError, DataError, UdfError, UdfTimeoutError
from arroyo_std import std_pb2

#: The side output of rows that cannot be computed.
ERRORS = "errors"
FAILED_ROWS = "failed_rows"

#: What an expression raises because of a row.
ROW_ERRORS = (DataError, UdfError)


class OnError(StrEnum):
    """As in configs."""

    FAIL = "fail"
    NULL = "null"
    DEAD_LETTER = "dead_letter"


Collect = Callable[[pa.RecordBatch], tuple[pa.RecordBatch, Mapping[int, UdfError]]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Consecutive rows with their result; one row without if it failed."""

    rows: pa.RecordBatch
    result: pa.RecordBatch | None


class RowErrors:
    """Computes batches so that rows that fail are found, and dealt with as the config says."""

    def __init__(self, on_error: OnError) -> None:
        self._on_error = on_error

    @property
    def keeps_rows(self) -> bool:
        """Whether whole input rows go to the side output."""
        return self._on_error is OnError.DEAD_LETTER

    @property
    def is_fatal(self) -> bool:
        return self._on_error is OnError.FAIL

    def display(self) -> Sequence[tuple[str, str]]:
        return [] if self.is_fatal else [("on error", self._on_error.value)]

    def side_outputs(self, stream: ArroyoSchema) -> Mapping[str, ArroyoSchema]:
        """Raises `ConfigError` if the input has a column already that dead letters get."""
        return {ERRORS: dead_letter_schema(stream)} if self.keeps_rows else {}

    def compute(
        self,
        batch: pa.RecordBatch,
        evaluate: Callable[[pa.RecordBatch], pa.RecordBatch],
        ctx: OperatorContext,
        collector: ArrowCollector,
        *,
        collect: Collect | None = None,
        apart: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None,
    ) -> Iterator[Outcome]:
        """The results of `evaluate`, in the order of the rows; counts rows that fail, and sends dead letters.

        `collect` is `evaluate` that also gives the errors of rows that failed, by row, and raises where it cannot
        tell them. Such rows are left out, unless `apart` computes what can be computed of them.
        A batch that fails is halved until the rows that fail stand alone, so few failing rows cost few more
        calls. A timeout is not about one row, and always raised.
        """
        if self.is_fatal:
            yield Outcome(batch, evaluate(batch))
            return
        waiting = [batch]
        while waiting:
            part = waiting.pop()
            try:
                result, failed = collect(part) if collect else (evaluate(part), {})
                outcome = Outcome(part, result)
            except UdfTimeoutError:
                raise
            except ROW_ERRORS as error:
                if part.num_rows > 1:
                    middle = part.num_rows // 2
                    waiting += [part.slice(middle), part.slice(0, middle)]
                    continue
                self.reject(part, [error], ctx, collector)
                yield Outcome(part, None)
                continue
            yield self._without_failed(outcome, failed, apart, ctx, collector) if failed else outcome

    def _without_failed(
        self,
        outcome: Outcome,
        failed: Mapping[int, UdfError],
        apart: Callable[[pa.RecordBatch], pa.RecordBatch] | None,
        ctx: OperatorContext,
        collector: ArrowCollector,
    ) -> Outcome:
        part, result = outcome.rows, outcome.result
        assert result is not None
        places = np.array(sorted(failed))
        is_good = np.ones(part.num_rows, dtype=np.bool_)
        is_good[places] = False
        bad_rows = part.filter(pa.array(~is_good))
        self.reject(bad_rows, [failed[row] for row in places.tolist()], ctx, collector)
        if self.keeps_rows or apart is None:
            return Outcome(part.filter(pa.array(is_good)), result.filter(pa.array(is_good)))
        sources = np.arange(part.num_rows)
        sources[places] = part.num_rows + np.arange(len(places))
        return Outcome(part, pa.concat_batches([result, apart(bad_rows)]).take(pa.array(sources)))

    def reject(
        self, rows: pa.RecordBatch, errors: Sequence[BaseException], ctx: OperatorContext, collector: ArrowCollector
    ) -> None:
        """Count rows that failed, and send them away where they are kept."""
        ctx.count(FAILED_ROWS, rows.num_rows)
        if self.keeps_rows:
            collector.collect_side(ERRORS, make_dead_letters(rows, errors, ctx, plugin=_plugin()))


@cache
def _plugin() -> Origin:
    return Origin("arroyo-std", version("arroyo-std"))


def read_on_error(number: int) -> OnError:
    """From the number in a config; raises `ConfigError`."""
    choices: dict[int, OnError] = {
        std_pb2.fail: OnError.FAIL,
        std_pb2.null: OnError.NULL,
        std_pb2.dead_letter: OnError.DEAD_LETTER,
    }
    if number not in choices:
        raise ConfigError("no such choice", field="on_error", value=number, allowed=[*OnError])
    return choices[number]
