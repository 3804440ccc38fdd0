"""What an epoch came to, from its checkpoint, in words for a picture."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from arroyo_core.cli.formats import format_size
from arroyo_core.pipeline.plan import Plan
from arroyo_core.runtime.event_log import read_epoch
from arroyo_core.runtime.results import operator_state_bytes
from arroyo_core.state.failures import MissingFileError
from arroyo_core.state.fork import FoundCheckpoint
from arroyo_devtools.drawing.annotations import Annotations


def last_with_rows(found: FoundCheckpoint) -> FoundCheckpoint:
    """The newest epoch up to this one in which a row came, if its log is kept; else the same.

    A job that was stopped ends with an epoch in which nothing was read.
    """
    backend = found.backend
    for epoch in sorted(backend.list_epochs(), reverse=True):
        if epoch > found.checkpoint.epoch:
            continue
        try:
            checkpoint = backend.load_checkpoint_metadata(backend.job_id, epoch)
        except MissingFileError:
            # Deleted since the listing.
            break
        log = read_epoch(backend.storage, checkpoint)
        if log is None:
            break
        if log["source_rows"]:
            return replace(found, checkpoint=checkpoint)
    return found


def annotate_checkpoint(found: FoundCheckpoint, plan: Plan) -> Annotations:
    """State from the checkpoint itself, rows and busy shares from the log beside it, if that is still there."""
    state = operator_state_bytes(found.checkpoint)
    epoch = read_epoch(found.backend.storage, found.checkpoint) or {}
    operators: dict[str, Any] = epoch.get("operators") or {}
    shares = {name: float(operators[name]["busy_share"]) for name in plan.nodes if name in operators}
    lines = {}
    for name in plan.nodes:
        notes = []
        if name in operators:
            notes.append(_rows(operators[name], is_source=not plan.inputs_of(name), is_last=not plan.outputs_of(name)))
        notes += _sizes(state.get(name), shares.get(name))
        if notes:
            lines[name] = tuple(notes)
    return Annotations(
        heading=_heading(found, epoch),
        lines=lines,
        shares=shares,
        slowest=max(shares, key=shares.__getitem__) if any(shares.values()) else None,
    )


def unknown_nodes(found: FoundCheckpoint, plan: Plan) -> list[str]:
    """Nodes with state in the checkpoint that the plan does not have."""
    return sorted(set(operator_state_bytes(found.checkpoint)) - set(plan.nodes))


def _heading(found: FoundCheckpoint, epoch: dict[str, Any]) -> str:
    checkpoint = found.checkpoint
    state = sum(operator_state_bytes(checkpoint).values())
    facts = [f"epoch {checkpoint.epoch} of job {checkpoint.job_id}"]
    if epoch:
        facts.append(f"{epoch['source_rows']:,} rows in {epoch['duration_s']:.2f} s")
    else:
        facts.append("no log of its rows and times is left")
    return ", ".join([*facts, f"state {format_size(state)}"])


def _rows(numbers: dict[str, Any], *, is_source: bool, is_last: bool) -> str:
    if is_source:
        return f"{numbers['rows_out']:,} rows out"
    if is_last:
        return f"{numbers['rows_in']:,} rows in"
    return f"{numbers['rows_in']:,} rows in, {numbers['rows_out']:,} out"


def _sizes(state_bytes: int | None, share: float | None) -> list[str]:
    facts = []
    if state_bytes is not None:
        facts.append(f"state {format_size(state_bytes)}")
    if share is not None:
        facts.append(f"busy {share:.0%}")
    return [", ".join(facts)] if facts else []
