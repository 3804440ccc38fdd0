"""How a job starts: which checkpoint it restores, and which number its first epoch gets.

- By default from its latest checkpoint, whose commit is replayed if it was interrupted.
- From an older epoch: what sinks committed after it stays, and comes again.
- Fresh: without any state, though the job has checkpoints.
- As a fork of another job's checkpoint.

Published numbers are never used again: whichever checkpoint is restored, the first new epoch comes
after the greatest published one. A driver that dies before it publishes an epoch has changed nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from arroyo_core.errors import ArroyoError, Domain
from arroyo_core.pipeline.plan import Plan
from arroyo_core.plugin import PluginSet
from arroyo_core.proto.state_pb2 import CheckpointMetadata
from arroyo_core.runtime.adaptation import adapt_checkpoint
from arroyo_core.runtime.declarations import declare_operators
from arroyo_core.runtime.former_ids import NODES
from arroyo_core.runtime.plan_changes import (
    OperatorChange,
    compare_plan,
    describe_drops,
    describe_misread,
    describe_taken_over,
    record_nodes,
)
from arroyo_core.runtime.udf_changes import ACCEPTED, UdfChange, changed_udfs, compare_udfs, record_accepted
from arroyo_core.state import ParquetBackend, ResolutionKind
from arroyo_core.state.failures import DamagedStateError, ForkError, IncompatibleCheckpointError, MissingFileError
from arroyo_core.state.fork import (
    FORKED_FROM,
    ForkSource,
    FoundCheckpoint,
    copy_files,
    find_checkpoint,
    forked_from,
    rewrite_checkpoint,
)
from arroyo_core.state.protocol import JobFacts, referenced_paths

#: How often a newer checkpoint of another job is taken because it deleted the one being copied.
FORK_ATTEMPTS = 3


class StartError(ArroyoError):
    """The job cannot start as it was asked to; the message says what can be done."""

    domain = Domain.USER


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOptions:
    """How a person wants the job to start; at most one of `from_epoch`, `is_fresh` and `fork_from`."""

    from_epoch: int | None = None
    is_fresh: bool = False
    #: With `is_fresh`: also if the job has checkpoints.
    is_forced: bool = False
    fork_from: ForkSource | None = None
    #: State that the pipeline has no place for is left behind.
    allow_drop: bool = False
    #: Names of user functions that may be others than those the checkpoint was written with.
    accept_udf_changes: frozenset[str] = frozenset()
    #: Ids of nodes that take over their state as it is, though their settings are not those it was written with.
    allow_changes: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        chosen = [self.from_epoch is not None, self.is_fresh, self.fork_from is not None]
        if sum(chosen) > 1:
            raise StartError("a job starts from an epoch, fresh or as a fork: choose one of them")
        if self.is_forced and not self.is_fresh:
            raise StartError("only a fresh start can be forced")
        if self.from_epoch is not None and self.from_epoch < 1:
            raise StartError(f"epochs count from 1: there is no epoch {self.from_epoch}")

    def after_publication(self) -> StartOptions:
        """The options of a restart by the same driver, once it has published an epoch: just go on from that."""
        return StartOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What the job restores, the number of the epoch it runs first, and whether a commit is replayed before."""

    #: None to begin with empty state. May leave out operators and tables of the stored checkpoint.
    checkpoint: CheckpointMetadata | None
    next_epoch: int
    #: `handle_commit` of `checkpoint` runs before anything else, and the epoch is marked then.
    needs_commit: bool = False
    #: What a person must know before the job runs.
    warnings: tuple[str, ...] = ()
    #: Changes of user functions that a person accepted for this start.
    udf_changes: tuple[UdfChange, ...] = ()
    #: Nodes whose settings a person allowed to have changed for this start.
    setting_changes: tuple[OperatorChange, ...] = ()
    #: Belongs into the properties of every checkpoint that the job publishes.
    properties: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def parent_epoch(self) -> int:
        """The `parent_epoch` of the first epoch."""
        return self.checkpoint.epoch if self.checkpoint is not None else 0

    @property
    def is_finished(self) -> bool:
        """Whether every source was at its end, and all output is committed: there is nothing to run."""
        return self.checkpoint is not None and self.checkpoint.is_final and not self.needs_commit


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decision:
    start: Start
    #: The checkpoint that is to be copied for this start; `start.checkpoint` is what becomes of it.
    fork: FoundCheckpoint | None = None


def resolve_start(backend: ParquetBackend, plan: Plan, plugins: PluginSet, options: StartOptions) -> Start:
    """Decide how the job starts, and store a fork's checkpoint; called after `claim_generation`.

    Raises `StartError` for what was asked for and is not possible, `IncompatibleCheckpointError` for a pipeline that
    would lose state, and other `StateError`s for state that cannot be read.
    """
    for attempt in range(1, FORK_ATTEMPTS + 1):
        decision = _decide(backend, plan, plugins, options)
        if decision.fork is None:
            return decision.start
        try:
            return _store_fork(backend, decision.start, decision.fork)
        except MissingFileError as error:
            # The other job runs, and has deleted what it keeps no longer; it has a newer checkpoint then.
            if attempt == FORK_ATTEMPTS or (options.fork_from is not None and options.fork_from.epoch is not None):
                raise ForkError(f"the other job deleted its checkpoint while it was copied: {error}") from error
    raise AssertionError("unreachable")


def check_start(backend: ParquetBackend, plan: Plan, plugins: PluginSet, options: StartOptions) -> Start:
    """As `resolve_start`, but reads only, so that mistakes show before Spark starts; needs no claim."""
    return _decide(backend, plan, plugins, options).start


def _decide(backend: ParquetBackend, plan: Plan, plugins: PluginSet, options: StartOptions) -> _Decision:
    fork = None
    if options.from_epoch is not None:
        start = _start_from(backend, options.from_epoch)
    elif options.is_fresh:
        start = _start_fresh(backend, is_forced=options.is_forced)
    elif options.fork_from is None:
        start = _start_latest(backend)
    elif backend.read_facts().published:
        start = _start_forked(backend, options.fork_from)
    else:
        fork = find_checkpoint(options.fork_from, job_id=backend.job_id, is_committed_only=True)
        start = _start_fork(fork, backend.job_id)
    start = replace(start, properties={**_inherited(start.checkpoint), NODES: record_nodes(plan)})
    start = _accept_udfs(start, plan, options.accept_udf_changes)
    return _Decision(start=_fit(start, plan, plugins, options), fork=fork)


def _accept_udfs(start: Start, plan: Plan, accepted: frozenset[str]) -> Start:
    """Refuse user functions that changed since the checkpoint, unless a person accepts them."""
    known = sorted(pin.key for pin in plan.udfs)
    unknown = sorted(accepted.difference(known))
    if unknown:
        raise StartError(
            f"--accept-udf-change {unknown[0]}: the pipeline uses no user functions of that name "
            f"({'known: ' + ', '.join(known) if known else 'it uses none at all'})"
        )
    if start.checkpoint is None:
        return start
    changes = compare_udfs(plan, start.checkpoint)
    refused = changed_udfs(changes, accepted)
    if refused:
        lines = "\n".join(f"  {change}" for change in refused)
        flags = " ".join(f"--accept-udf-change {change.name}" for change in refused)
        raise IncompatibleCheckpointError(
            f"user functions are not those of job {start.checkpoint.job_id!r} at epoch {start.checkpoint.epoch}:\n"
            f"{lines}\nstate of the old code may mean something else to the new: go back to the old, or accept the "
            f"change with {flags}"
        )
    now = tuple(changed_udfs(changes))
    record = record_accepted(start.checkpoint, now, epoch=start.next_epoch)
    return replace(
        start,
        udf_changes=now,
        properties={**start.properties, **({ACCEPTED: record} if record is not None else {})},
        warnings=(*start.warnings, *(f"a change of user functions is accepted: {change}" for change in now)),
    )


def _fit(start: Start, plan: Plan, plugins: PluginSet, options: StartOptions) -> Start:
    """Compare the pipeline with the checkpoint, and leave out what it has no place for."""
    _check_nodes(plan, options.allow_changes)
    if start.checkpoint is None:
        return start
    operators = declare_operators(plan, plugins)
    changes = compare_plan(operators, start.checkpoint, is_committed=not start.needs_commit)
    dropped = [change for change in changes if change.needs_allow_drop]
    if dropped and not options.allow_drop:
        raise IncompatibleCheckpointError(
            f"the pipeline has no place for state of job {start.checkpoint.job_id!r} at epoch "
            f"{start.checkpoint.epoch}:\n{describe_drops(dropped)}\nmend the pipeline, or add --allow-drop to leave "
            "that state behind"
        )
    misread = [change for change in changes if change.needs_allow_change]
    refused = [change for change in misread if change.operator_id not in options.allow_changes]
    if refused:
        flags = " ".join(f"--allow-change {change.operator_id}" for change in refused)
        raise IncompatibleCheckpointError(
            f"settings are not those of job {start.checkpoint.job_id!r} at epoch {start.checkpoint.epoch}, and state "
            f"would be misread:\n{describe_misread(refused)}\ngo back to the old settings, or go on with the state as "
            f"it is with {flags}"
        )
    return replace(
        start,
        checkpoint=adapt_checkpoint(start.checkpoint, plan, changes),
        setting_changes=tuple(misread),
        warnings=(
            *start.warnings,
            *(f"state is taken over: {text}" for text in describe_taken_over(changes)),
            *(f"state is dropped: {describe_drops([change]).strip()}" for change in dropped),
            *(f"state is used as it is: {describe_misread([change]).strip()}" for change in misread),
        ),
    )


def _check_nodes(plan: Plan, named: frozenset[str]) -> None:
    known = [node.id for node in plan.written_nodes()]
    unknown = sorted(named.difference(known))
    if unknown:
        raise StartError(f"--allow-change {unknown[0]}: the pipeline has no such node (nodes: {', '.join(known)})")


def _start_latest(backend: ParquetBackend) -> Start:
    resolution = backend.resolve_latest()
    return Start(
        checkpoint=resolution.checkpoint,
        next_epoch=resolution.next_epoch,
        needs_commit=resolution.kind is ResolutionKind.REPLAY_COMMIT,
        warnings=_starting_over(backend) if resolution.kind is ResolutionKind.FRESH else (),
    )


def _starting_over(backend: ParquetBackend) -> tuple[str, ...]:
    """What to say where a job that has published checkpoints has none."""
    if not backend.read_facts().incarnations - {backend.incarnation}:
        return ()
    return (
        f"job {backend.job_id!r} had checkpoints, and they are gone: it starts over as another incarnation, and sinks "
        "get rows again that they have",
    )


def _start_from(backend: ParquetBackend, epoch: int) -> Start:
    facts = backend.read_facts()
    if epoch not in facts.published:
        raise StartError(f"job {backend.job_id!r} has no checkpoint {epoch} ({_kept(facts)})")
    checkpoint = backend.load_checkpoint_metadata(backend.job_id, epoch)
    backend.prepare_checkpoint_load(checkpoint)
    latest = max(facts.published)
    is_pending = checkpoint.needs_commit and epoch not in facts.committed
    if is_pending and epoch != latest:
        raise StartError(
            f"job {backend.job_id!r}: the output of epoch {epoch} was never committed, because the job went back to an "
            f"earlier epoch before it was; a start from there would lose it ({_kept(facts)})"
        )
    return Start(
        checkpoint=checkpoint,
        next_epoch=latest + 1,
        needs_commit=is_pending,
        warnings=_going_back(backend, facts, after=epoch),
    )


def _start_fresh(backend: ParquetBackend, *, is_forced: bool) -> Start:
    facts = backend.read_facts()
    if not facts.published:
        return Start(checkpoint=None, next_epoch=1)
    latest = max(facts.published)
    if not is_forced:
        count = len(facts.published)
        raise StartError(
            f"job {backend.job_id!r} has {count} checkpoint{'s' if count > 1 else ''}, the newest is epoch {latest}"
            f"{_finished(backend, latest)}: a fresh start leaves their state behind, and sinks get rows again that "
            "they have; add --force to begin again all the same, or give the pipeline another name"
        )
    return Start(checkpoint=None, next_epoch=latest + 1, warnings=_going_back(backend, facts, after=0))


def _start_forked(backend: ParquetBackend, source: ForkSource) -> Start:
    """The job has checkpoints: the fork was made by an earlier start of the same command, or is a mistake."""
    start = _start_latest(backend)
    origin = forked_from(start.checkpoint) if start.checkpoint is not None else None
    if origin is None or not origin.is_named_by(source, job_id=backend.job_id):
        came = f"was forked from {origin}" if origin is not None else "was not forked from there"
        raise StartError(
            f"job {backend.job_id!r} has checkpoints of its own, and {came}: only a job without checkpoints can be "
            "forked from another; leave --fork-from out to go on, or give the pipeline another name"
        )
    return replace(start, warnings=(f"forked already, from {origin}: the job goes on from epoch {start.parent_epoch}",))


def _start_fork(found: FoundCheckpoint, job_id: str) -> Start:
    checkpoint = rewrite_checkpoint(found.checkpoint, job_id=job_id, origin=found.origin)
    warnings = [f"forked from {found.origin}: the first epoch here is {checkpoint.epoch + 1}"]
    if checkpoint.is_final:
        warnings.append("the data of the other job had ended: there is nothing left to run unless a source is new")
    return Start(
        checkpoint=checkpoint,
        next_epoch=checkpoint.epoch + 1,
        warnings=tuple(warnings),
    )


def _store_fork(backend: ParquetBackend, start: Start, found: FoundCheckpoint) -> Start:
    """Copy the files that the start refers to, then publish: a crash before leaves a job without checkpoints."""
    assert start.checkpoint is not None
    kept = {path.rpartition("/")[2] for path in referenced_paths(start.checkpoint)}
    copy_files(found.checkpoint, found.backend.storage, backend.storage, job_id=backend.job_id, only=kept)
    return replace(start, checkpoint=backend.publish(start.checkpoint))


def _inherited(checkpoint: CheckpointMetadata | None) -> dict[str, bytes]:
    if checkpoint is None or FORKED_FROM not in checkpoint.properties:
        return {}
    return {FORKED_FROM: checkpoint.properties[FORKED_FROM]}


def _going_back(backend: ParquetBackend, facts: JobFacts, *, after: int) -> tuple[str, ...]:
    """What becomes of the output of the epochs that are left behind."""
    left = sorted(epoch for epoch in facts.published if epoch > after)
    if not left:
        return ()
    where = f"epoch {after}" if after else "the beginning"
    span = f"epoch {left[0]}" if len(left) == 1 else f"epochs {left[0]} to {left[-1]}"
    warnings = [f"going back to {where}: what sinks committed in {span} stays, and the same rows are written again"]
    if _is_pending(backend, facts, left[-1]):
        warnings.append(
            f"epoch {left[-1]} was published and not yet committed: what it staged is given up, "
            "except for parts that a commit which was interrupted has already made visible"
        )
    return tuple(warnings)


def _is_pending(backend: ParquetBackend, facts: JobFacts, epoch: int) -> bool:
    if epoch in facts.committed:
        return False
    try:
        return backend.load_checkpoint_metadata(backend.job_id, epoch).needs_commit
    except DamagedStateError:
        # Going back is how people get away from a damaged checkpoint; whether it was committed nobody knows then.
        return True


def _finished(backend: ParquetBackend, epoch: int) -> str:
    try:
        finish_time_us = backend.load_checkpoint_metadata(backend.job_id, epoch).finish_time_us
    except DamagedStateError:
        return " (damaged)"
    return f" of {datetime.fromtimestamp(finish_time_us / 1e6, UTC).isoformat(timespec='seconds')}"


def _kept(facts: JobFacts) -> str:
    if not facts.published:
        return "it has no checkpoints"
    return f"kept epochs: {', '.join(map(str, sorted(facts.published)))}"
