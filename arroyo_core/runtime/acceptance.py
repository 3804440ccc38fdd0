"""Whether an epoch counts: pure decisions over its reports.

Spark may run a task again after others have read its output, and a source need not give
the same rows twice. So an epoch is accepted only if every subtask reported exactly once and
receivers consumed exactly what the reporting senders sent. The time that takes is linear in the
channels, of which there are as many as the square of the parallelism.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from google.protobuf.message import DecodeError

from arroyo_core.api import SourceFinishType
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
from arroyo_core.pipeline.plan import Chain, Plan
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.runtime.channels import check_edge
from arroyo_core.state.failures import DamagedStateError
from arroyo_core.udf.failures import BundleError, DigestMismatchError, UnsafeBundleError, UntrustedBundleError

#: Errors that say all in their message, and keep their class on the way to the driver.
_PLAIN_ERRORS: dict[str, type[ArroyoError]] = {
    kind.__name__: kind
    for kind in (
        BundleError,
        DamagedStateError,
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


def decode_report(data: bytes) -> pb.ChainReport:
    """The report that a frame for the driver holds; raises `ExchangeError` where it holds none."""
    try:
        return pb.ChainReport.FromString(data)
    except DecodeError as error:
        raise ExchangeError(f"a frame of {len(data)} bytes for the driver holds no report: {error}") from error


def is_last(reports: Sequence[pb.ChainReport]) -> bool:
    """Whether the data of all sources has ended with these reports of an epoch."""
    finish_types = [item.finish_type for report in reports for item in report.operators if item.finish_type]
    return all(finish_type == SourceFinishType.FINAL for finish_type in finish_types)


def accept(plan: Plan, epoch: int, reports: Sequence[pb.ChainReport]) -> None:
    """Raises the first cause of a failed epoch, or `ExchangeError` where the epoch must be run again."""
    waves = {chain.id: chain.wave for chain in plan.chains}
    for report in reports:
        if report.chain not in waves:
            raise ExchangeError(f"a report of chain {report.chain}, which the plan has not")
    failed = [report for report in reports if report.HasField("error")]
    if failed:
        raise error_from(min(failed, key=lambda report: _blame(waves, report)))
    by_subtask: dict[tuple[int, int], pb.ChainReport] = {}
    for report in reports:
        if report.epoch != epoch:
            raise ExchangeError(f"a report of epoch {report.epoch} in epoch {epoch}")
        if by_subtask.setdefault((report.chain, report.subtask), report) is not report:
            raise ExchangeError(f"chain {report.chain}, subtask {report.subtask} reported twice")
    reported: dict[str, list[pb.ChainReport]] = {}
    chains: dict[str, Chain] = {}
    for chain in plan.chains:
        missing = next((number for number in range(chain.parallelism) if (chain.id, number) not in by_subtask), None)
        if missing is not None:
            raise ExchangeError(f"chain {chain.id}, subtask {missing} did not report")
        chains |= dict.fromkeys(chain.nodes, chain)
        reported[chain.head] = [by_subtask[chain.id, number] for number in range(chain.parallelism)]
    for edge in plan.edges:
        source, target = chains[edge.source], chains[edge.target]
        # Within a wave there is no exchange.
        if source.wave < target.wave:
            check_edge(edge, source, target, reported[source.head], reported[target.head])


def _blame(waves: Mapping[int, int], report: pb.ChainReport) -> tuple[bool, int, int]:
    """Causes before their effects: a missing barrier downstream is the effect of a failure upstream."""
    return (report.error.kind == ExchangeError.__name__, waves[report.chain], report.subtask)


def error_from(report: pb.ChainReport) -> ArroyoError:
    """The error that a subtask reported, as an exception."""
    error = report.error
    if error.operator_id:
        if error.domain not in set(Domain) or error.retry not in set(RetryHint):
            return ExchangeError(f"the report of a failure of {error.operator_id!r} does not say who can fix it")
        return OperatorError(
            error.message,
            operator_id=error.operator_id,
            subtask=report.subtask,
            epoch=report.epoch,
            traceback=error.traceback,
            cause_domain=Domain(error.domain),
            cause_retry=RetryHint(error.retry),
            cause_kind=error.kind,
        )
    kind = _PLAIN_ERRORS.get(error.kind)
    if kind is not None:
        return kind(error.message)
    if error.retry == RetryHint.WITH_BACKOFF:
        # Such as a `StorageError`: what can be fixed by a retry must still be known as that.
        return ExternalError(error.message)
    return ArroyoError(f"subtask {report.subtask} of chain {report.chain} failed: {error.traceback}")
