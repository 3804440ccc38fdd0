"""How `arroyo plan --against` shows a pipeline beside a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence

from arroyo_core.api.units import format_bytes
from arroyo_core.runtime.comparison import OperatorChange
from arroyo_core.state.fork import ForkOrigin

_COLUMNS = ("node", "operator", "verdict", "state", "reason")


def comparison_text(origin: ForkOrigin, changes: Sequence[OperatorChange]) -> str:
    """A heading, a table with a line for each node, and what it comes to."""
    rows = [_COLUMNS, *(_row(change) for change in changes)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_COLUMNS))]
    lines = [
        "  " + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return "\n".join([f"Against {origin}", "", *lines, "", _verdict(changes)]) + "\n"


def comparison_json(origin: ForkOrigin, changes: Sequence[OperatorChange]) -> dict[str, object]:
    return {
        "against": {"url": origin.url, "job": origin.job, "epoch": origin.epoch},
        "needs_allow_drop": needs_allow_drop(changes),
        "nodes": [
            {
                "id": change.operator_id,
                "operator": change.operator or None,
                "verdict": change.kind.value,
                "reason": change.reason,
                "needs_allow_drop": change.needs_allow_drop,
                "reads_from_its_beginning": change.is_source and change.begins_anew,
                "tables": [
                    {
                        "name": table.name,
                        "rows": table.rows,
                        "bytes": table.size_bytes,
                        "has_staged_output": table.is_pending,
                        "is_dropped": table in change.dropped,
                    }
                    for table in change.tables
                ],
            }
            for change in changes
        ],
    }


def needs_allow_drop(changes: Sequence[OperatorChange]) -> bool:
    return any(change.needs_allow_drop for change in changes)


def _row(change: OperatorChange) -> tuple[str, ...]:
    size = sum(table.size_bytes for table in change.tables)
    names = ", ".join(table.name for table in change.tables)
    state = f"{names} ({format_bytes(size)})" if names else "-"
    reasons = [change.reason] if change.reason else []
    if change.is_source and change.begins_anew:
        reasons.append("reads from its beginning")
    return (change.operator_id, change.operator or "?", change.kind.value, state, "; ".join(reasons))


def _verdict(changes: Sequence[OperatorChange]) -> str:
    if not needs_allow_drop(changes):
        return "The pipeline can start from it."
    lost = [change.operator_id for change in changes if change.needs_allow_drop]
    return f"State would be lost ({', '.join(lost)}): the pipeline starts from it only with --allow-drop."
