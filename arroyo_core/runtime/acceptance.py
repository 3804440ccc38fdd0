"""Whether an epoch counts: pure decisions over its reports.

Spark may run a task again after others have read its output, and a source need not give
the same rows twice. So an epoch is accepted only if every subtask reported exactly once and
receivers consumed exactly what the reporting senders sent.
"""

from __future__ import annotations

from collections.abc import Sequence

from arroyo_core.errors import (
    ArroyoError,
    DataError,
    Domain,
    ExchangeError,
    ExternalError,
    OperatorError,
    PluginError,
    RetryHint,
    StateError,
)
from arroyo_core.graph.plan import Plan
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.udf.failures import BundleError, DigestMismatchError, UnsafeBundleError, UntrustedBundleError

#: Errors that say all in their message, and keep their class on the way to the driver.
_PLAIN_ERRORS: dict[str, type[ArroyoError]] = {
    kind.__name__: kind
    for kind in (
        BundleError,
        DataError,
        DigestMismatchError,
        ExchangeError,
        ExternalError,
        PluginError,
        StateError,
        UnsafeBundleError,
        UntrustedBundleError,
    )
}


def accept(plan: Plan, epoch: int, reports: Sequence[pb.ChainReport]) -> None:
    """Raises the first cause of a failed epoch, or `ExchangeError` where the epoch must be run again."""
    failed = [report for report in reports if report.HasField("error")]
    if failed:
        raise error_from(min(failed, key=lambda report: _blame(plan, report)))
    by_subtask: dict[tuple[int, int], pb.ChainReport] = {}
    for report in reports:
        if report.epoch != epoch:
            raise ExchangeError(f"a report of epoch {report.epoch} in epoch {epoch}")
        if by_subtask.setdefault((report.chain, report.subtask), report) is not report:
            raise ExchangeError(f"chain {report.chain}, subtask {report.subtask} reported twice")
    for chain in plan.chains:
        for subtask in range(chain.parallelism):
            if (chain.id, subtask) not in by_subtask:
                raise ExchangeError(f"chain {chain.id}, subtask {subtask} did not report")
    for report in reports:
        _check_received(plan, report, by_subtask)


def _check_received(plan: Plan, report: pb.ChainReport, by_subtask: dict[tuple[int, int], pb.ChainReport]) -> None:
    head = next(chain.head for chain in plan.chains if chain.id == report.chain)
    edges = {edge.input: edge for edge in plan.inputs_of(head)}
    for received in report.received:
        sender = by_subtask[plan.chain_of(edges[received.input].source).id, received.sender]
        sent = next(
            (
                item.frames
                for item in sender.sent
                if (item.chain, item.input, item.target) == (report.chain, received.input, report.subtask)
            ),
            None,
        )
        if (sender.attempt, sent) != (received.attempt, received.frames):
            raise ExchangeError(
                f"chain {report.chain}, subtask {report.subtask} consumed {received.frames} frames of attempt "
                f"{received.attempt} of chain {sender.chain}, subtask {sender.subtask}, which reported {sent} "
                f"frames of attempt {sender.attempt}"
            )


def _blame(plan: Plan, report: pb.ChainReport) -> tuple[bool, int, int]:
    """Causes before their effects: a missing barrier downstream is the effect of a failure upstream."""
    wave = next(chain.wave for chain in plan.chains if chain.id == report.chain)
    return (report.error.kind == ExchangeError.__name__, wave, report.subtask)


def error_from(report: pb.ChainReport) -> ArroyoError:
    """The error that a subtask reported, as an exception."""
    error = report.error
    if error.operator_id:
        return OperatorError(
            error.message,
            operator_id=error.operator_id,
            subtask=report.subtask,
            epoch=report.epoch,
            traceback=error.traceback,
            cause_domain=Domain(error.domain),
            cause_retry=RetryHint(error.retry),
        )
    kind = _PLAIN_ERRORS.get(error.kind)
    if kind is not None:
        return kind(error.message)
    if error.retry == RetryHint.WITH_BACKOFF:
        # Such as a `StorageError`: what can be mended by a retry must still be known as that.
        return ExternalError(error.message)
    return ArroyoError(f"subtask {report.subtask} of chain {report.chain} failed: {error.traceback}")
