"""A pipeline beside a checkpoint: which state it takes over, and which it has no place for; pure.

State belongs to the id of a node, or to the one that it says it had. What nobody takes over is dropped, and what would
be misread is taken over, only when a person says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from arroyo_core.api import Origin
from arroyo_core.api.units import format_bytes
from arroyo_core.pipeline.plan import Plan
from arroyo_core.proto.state_pb2 import (
    CheckpointMetadata,
    OperatorCheckpointMetadata,
    RecordedNode,
    RecordedNodes,
    TableCheckpointMetadata,
)
from arroyo_core.runtime.declarations import DeclaredOperator
from arroyo_core.runtime.former_ids import derive_former_ids, nodes_of
from arroyo_core.runtime.setting_changes import (
    SettingChange,
    compare_settings,
    describe_changes,
    record_settings,
)
from arroyo_core.state.merge import operators_by_id, staged_bytes, table_files
from arroyo_core.state.table_types import (
    derive_mismatch,
    derive_version_mismatch,
    uses_two_phase_commit,
)
from arroyo_core.state.table_types import describe_changes as describe_table_changes


class ChangeKind(StrEnum):
    """What becomes of a node."""

    REUSED = "reused"
    #: It has other settings than those its state was written with, and would misread it.
    CHANGED = "changed"
    NEW = "new"
    REMOVED = "removed"
    #: It cannot take over what the checkpoint holds under its id.
    INCOMPATIBLE = "incompatible"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTable:
    """What a checkpoint holds of one table."""

    name: str
    rows: int = 0
    size_bytes: int = 0
    #: It has output of the checkpoint's epoch that was staged and not yet committed.
    is_pending: bool = False

    @property
    def is_empty(self) -> bool:
        return not self.rows and not self.is_pending

    def __str__(self) -> str:
        return self.name + ("" if self.is_empty else f" ({format_bytes(self.size_bytes)})")


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorChange:
    """One node of the plan, of the checkpoint, or of both."""

    operator_id: str
    #: The registered name: the plan's, or for a removed node the recorded one, empty where none was recorded.
    operator: str
    kind: ChangeKind
    #: In words; empty where there is nothing to say.
    reason: str = ""
    tables: tuple[StoredTable, ...] = ()
    #: Names of tables that the pipeline has no place for, empty ones included.
    left_out: frozenset[str] = frozenset()
    is_source: bool = False
    #: The settings that changed since, of those that its state depends on.
    settings: tuple[SettingChange, ...] = ()
    #: Rows that a source knew of and had not read when the checkpoint was written.
    backlog: int = 0
    #: The id under which the checkpoint has it, if that is another one.
    former_id: str | None = None
    #: What becomes of state that is taken over and was written by a pipeline with other columns, as clauses.
    notes: tuple[str, ...] = ()

    @property
    def dropped(self) -> tuple[StoredTable, ...]:
        """What would be lost."""
        return tuple(table for table in self.tables if table.name in self.left_out and not table.is_empty)

    @property
    def needs_allow_drop(self) -> bool:
        return bool(self.dropped)

    @property
    def needs_allow_change(self) -> bool:
        """Whether it takes over state that its settings would misread."""
        return bool(self.settings) and any(
            not table.is_empty and table.name not in self.left_out for table in self.tables
        )

    @property
    def starts_over(self) -> bool:
        """A node of the plan that takes over no state, though it is new or had some."""
        is_emptied = bool(self.dropped) and self.left_out >= {table.name for table in self.tables}
        return self.kind is ChangeKind.NEW or (self.kind is ChangeKind.INCOMPATIBLE and is_emptied)


def record_nodes(plan: Plan) -> bytes:
    """What a checkpoint keeps of the plan, as its property `NODES`, for later comparisons."""
    recorded = RecordedNodes()
    for node in plan.written_nodes():
        inputs = plan.written_inputs(node.id)
        recorded.nodes.add(
            operator_id=node.id,
            operator=node.operator,
            distribution=node.origin.distribution,
            version=node.origin.version,
            is_source=not inputs,
            inputs=inputs,
            settings=record_settings(node.settings),
        )
    return recorded.SerializeToString()


def recorded_nodes(checkpoint: CheckpointMetadata) -> dict[str, RecordedNode]:
    """The nodes of the pipeline that wrote a checkpoint, by id; none if it was written before they were recorded."""
    return {node.operator_id: node for node in nodes_of(checkpoint).nodes}


def compare_plan(
    operators: Sequence[DeclaredOperator], checkpoint: CheckpointMetadata, *, is_committed: bool = True
) -> list[OperatorChange]:
    """What becomes of each node: those of the plan in their order, then the removed ones by id.

    `is_committed` is False for a checkpoint whose commit has yet to be replayed: what its sinks staged
    counts as state then.
    """
    stored = operators_by_id(checkpoint.operators)
    recorded = recorded_nodes(checkpoint)
    is_pending = checkpoint.needs_commit and not is_committed
    former = derive_former_ids(operators, {*stored, *recorded})
    changes = [
        _compare(
            operator,
            stored.get(former.get(operator.id, operator.id)),
            recorded.get(former.get(operator.id, operator.id)),
            former_id=former.get(operator.id),
            is_recorded=bool(recorded),
            is_pending=is_pending,
        )
        for operator in operators
    ]
    gone = sorted({*stored, *recorded} - {operator.id for operator in operators} - {*former.values()})
    changes += [_removed(name, stored.get(name), recorded.get(name), is_pending=is_pending) for name in gone]
    return _suggest_renames(changes)


def describe_drops(changes: Iterable[OperatorChange]) -> str:
    """What would be lost, a line for each operator."""
    lines = []
    for change in changes:
        names = ", ".join(map(str, change.dropped))
        who = f"{change.operator_id} ({change.operator})" if change.operator else change.operator_id
        line = f"  {who}, {change.kind}: {change.reason}; it has {names}"
        if change.is_source and change.starts_over:
            line += "; the source reads from its beginning"
        lines.append(line)
    return "\n".join(lines)


def describe_misread(changes: Iterable[OperatorChange]) -> str:
    """Which settings changed, a line for each operator."""
    return "\n".join(
        f"  {change.operator_id} ({change.operator}), changed: {describe_changes(change.settings)}"
        f"{_pending(change.tables)}"
        for change in changes
    )


def describe_taken_over(changes: Iterable[OperatorChange]) -> list[str]:
    """What becomes of state that a changed pipeline takes over, a text for each operator that there is something of."""
    return [
        f"{change.operator_id} ({change.operator}): {', '.join(change.notes)}" for change in changes if change.notes
    ]


def _compare(
    declared: DeclaredOperator,
    stored: OperatorCheckpointMetadata | None,
    recorded: RecordedNode | None,
    *,
    former_id: str | None,
    is_recorded: bool,
    is_pending: bool,
) -> OperatorChange:
    tables = _stored_tables(stored, is_pending=is_pending)
    change = OperatorChange(
        operator_id=declared.id,
        operator=declared.operator,
        kind=ChangeKind.REUSED,
        tables=tables,
        is_source=declared.is_source,
        backlog=stored.backlog if stored is not None else 0,
        former_id=former_id,
    )
    if recorded is not None:
        if recorded.operator != declared.operator:
            return _replaced(change, recorded)
        change = replace(change, settings=compare_settings(recorded.settings, declared.settings))
    if stored is None:
        # A checkpoint of an older version says nothing of nodes without tables: then they have no state either way.
        is_new = recorded is None and (is_recorded or bool(declared.tables))
        if is_new:
            return replace(change, kind=ChangeKind.NEW)
        return replace(change, reason=", ".join([*_renamed(former_id), _no_state(declared, recorded)]))
    changed = _changed_tables(declared, stored, tables)
    if former_id is not None:
        # Sinks stage under their id, and know the output again by it.
        changed |= {table.name: f"was staged as {former_id!r}" for table in tables if table.is_pending}
    lost = [table for table in tables if not table.is_empty and table.name in changed]
    if lost:
        return _incompatible(change, {table.name: changed[table.name] for table in lost})
    gone = [table for table in tables if table.name not in declared.tables]
    change = replace(change, left_out=frozenset({*changed, *(table.name for table in gone)}))
    lost = [table for table in gone if not table.is_empty]
    if lost:
        names = ", ".join(map(str, lost))
        reason = f"it no longer declares table{'s' if len(lost) > 1 else ''} {names}{_pending(lost)}"
        if change.needs_allow_change:
            reason += f"; changed: {describe_changes(change.settings)}"
        return replace(change, kind=ChangeKind.INCOMPATIBLE, reason=reason)
    change = replace(change, notes=(*_renamed(former_id), *_table_notes(declared, stored, tables)))
    reuse = ", ".join([*change.notes, *_reuse(declared, stored, recorded, tables)])
    if change.needs_allow_change:
        reasons = [describe_changes(change.settings) + _pending(tables), *([reuse] if reuse else [])]
        return replace(change, kind=ChangeKind.CHANGED, reason="; ".join(reasons))
    return replace(change, reason=reuse)


def _replaced(change: OperatorChange, recorded: RecordedNode) -> OperatorChange:
    names = frozenset(table.name for table in change.tables)
    lost = [table for table in change.tables if not table.is_empty]
    kind = ChangeKind.INCOMPATIBLE if lost else ChangeKind.NEW
    reason = f"it was {recorded.operator} in the checkpoint{'' if lost else ', without state'}{_pending(lost)}"
    return replace(change, kind=kind, reason=reason, left_out=names)


def _incompatible(change: OperatorChange, changed: Mapping[str, str]) -> OperatorChange:
    """All its tables go: nobody knows what one of them means without another."""
    names = frozenset(table.name for table in change.tables)
    lost = [table for table in change.tables if not table.is_empty]
    reason = "; ".join(f"table {name!r} {text}" for name, text in sorted(changed.items()))
    return replace(change, kind=ChangeKind.INCOMPATIBLE, reason=reason + _pending(lost), left_out=names)


def _changed_tables(
    declared: DeclaredOperator, stored: OperatorCheckpointMetadata, tables: Iterable[StoredTable]
) -> dict[str, str]:
    """Tables whose content is of no use to the operator as it is declared now, and why."""
    changed = {}
    for table in tables:
        config = declared.tables.get(table.name)
        if config is None:
            continue
        written, found = stored.table_configs[table.name], stored.table_checkpoint_metadata[table.name]
        reason = derive_mismatch(written, config) or derive_version_mismatch(table_files(found), config)
        if reason is None and table.is_pending and not (declared.is_committing and uses_two_phase_commit(config)):
            reason = "has staged output, and the operator commits no more"
        if reason is not None:
            changed[table.name] = reason
    return changed


def _removed(
    name: str, stored: OperatorCheckpointMetadata | None, recorded: RecordedNode | None, *, is_pending: bool
) -> OperatorChange:
    tables = _stored_tables(stored, is_pending=is_pending)
    lost = [table for table in tables if not table.is_empty]
    return OperatorChange(
        operator_id=name,
        operator=recorded.operator if recorded is not None else "",
        kind=ChangeKind.REMOVED,
        reason=f"the pipeline has no such node{_pending(lost)}" if lost else "no state",
        tables=tables,
        left_out=frozenset(table.name for table in tables),
        is_source=recorded is not None and recorded.is_source,
    )


def _stored_tables(stored: OperatorCheckpointMetadata | None, *, is_pending: bool) -> tuple[StoredTable, ...]:
    if stored is None:
        return ()
    return tuple(
        _stored_table(name, table, is_pending=is_pending)
        for name, table in sorted(stored.table_checkpoint_metadata.items())
    )


def _stored_table(name: str, table: TableCheckpointMetadata, *, is_pending: bool) -> StoredTable:
    # One file may be referred to twice, for two ranges of keys.
    files = {file.path: file for file in table_files(table)}
    return StoredTable(
        name=name,
        rows=sum(file.rows for file in files.values()),
        size_bytes=sum(file.size_bytes for file in files.values()),
        is_pending=is_pending and bool(staged_bytes(table)),
    )


def _pending(lost: Iterable[StoredTable]) -> str:
    if not any(table.is_pending for table in lost):
        return ""
    return "; it has staged output that is not committed yet: run the pipeline as it was once more to commit it"


def _no_state(declared: DeclaredOperator, recorded: RecordedNode | None) -> str:
    return ", ".join(["it had no state" if declared.tables else "no state", *_upgraded(declared, recorded)])


def _reuse(
    declared: DeclaredOperator,
    stored: OperatorCheckpointMetadata,
    recorded: RecordedNode | None,
    tables: Iterable[StoredTable],
) -> list[str]:
    notes = []
    for table in tables:
        config = declared.tables.get(table.name)
        written = stored.table_configs[table.name].state_version
        if config is not None and config.state_version > written and not table.is_empty:
            notes.append(f"table {table.name!r} migrates from version {written} to {config.state_version}")
    added = sorted(set(declared.tables) - set(stored.table_checkpoint_metadata))
    if added:
        notes.append(f"new table{'s' if len(added) > 1 else ''}: {', '.join(added)}")
    return [*notes, *_upgraded(declared, recorded)]


def _renamed(former_id: str | None) -> list[str]:
    return [f"it was {former_id!r}"] if former_id is not None else []


def _table_notes(
    declared: DeclaredOperator, stored: OperatorCheckpointMetadata, tables: Iterable[StoredTable]
) -> list[str]:
    """What becomes of rows, each clause once."""
    notes = [
        note
        for table in tables
        if not table.is_empty and table.name in declared.tables
        for note in describe_table_changes(stored.table_configs[table.name], declared.tables[table.name])
    ]
    return list(dict.fromkeys(notes))


def _upgraded(declared: DeclaredOperator, recorded: RecordedNode | None) -> list[str]:
    if recorded is None:
        return []
    before = Origin(recorded.distribution, recorded.version)
    return [f"written with {before}, now {declared.origin}"] if before != declared.origin else []


def _suggest_renames(changes: Sequence[OperatorChange]) -> list[OperatorChange]:
    """A node that went and one of the same kind that came may be one node with two names."""
    suggested = []
    for change in changes:
        new = [
            other.operator_id
            for other in changes
            if other.kind is ChangeKind.NEW and change.operator and other.operator == change.operator
        ]
        if change.kind is ChangeKind.REMOVED and change.needs_allow_drop and new:
            names = " or ".join(map(repr, new))
            hint = f"was it renamed to {names}? Then write 'was: {change.operator_id}' in that node"
            change = replace(change, reason=f"{change.reason}; {hint}")
        suggested.append(change)
    return suggested
