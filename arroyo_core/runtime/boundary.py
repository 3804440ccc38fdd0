"""The one boundary behind which foreign code runs: it adds who, where and when to what is raised."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from types import TracebackType

from arroyo_core.errors import ExchangeError, OperatorError, error_domain, retry_hint
from arroyo_core.ids import TaskInfo
from arroyo_core.runtime.metrics import OperatorMetrics, Stopwatch


class Boundary:
    """A reusable context manager around every call into one operator; also keeps its busy time."""

    def __init__(
        self,
        task: TaskInfo,
        epoch: int,
        metrics: OperatorMetrics,
        stopwatch: Stopwatch,
        redact: Callable[[str], str] = str,
    ) -> None:
        """`redact` hides the values of the config's secret fields in what is raised."""
        self._task = task
        self._epoch = epoch
        self._redact = redact
        self._metrics = metrics
        self._stopwatch = stopwatch

    def __enter__(self) -> None:
        self._stopwatch.enter(self._metrics)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopwatch.leave()
        # An error of an operator further down the chain has been named there already.
        if not isinstance(error, Exception) or isinstance(error, OperatorError | ExchangeError):
            return
        trace_text = _trace_text(error)
        # The cause would be printed as it is.
        raise self.name(error) from (error if self._redact(trace_text) == trace_text else None)

    def name(self, error: Exception) -> OperatorError:
        """The error as that of this operator."""
        return OperatorError(
            self._redact(f"{type(error).__name__}: {error}"),
            operator_id=self._task.operator_id,
            subtask=self._task.task_index,
            epoch=self._epoch,
            traceback=self._redact(_trace_text(error)),
            cause_domain=error_domain(error),
            cause_retry=retry_hint(error),
            cause_kind=type(error).__name__,
        )


def _trace_text(error: Exception) -> str:
    trace = error.__traceback__
    own_frames = trace.tb_next if trace is not None and trace.tb_next is not None else trace
    return "".join(traceback.format_exception(type(error), error, own_frames))
