"""How `arroyo plan --against` shows a pipeline beside a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from arroyo_core.cli.formats import format_size
from arroyo_core.cli.tables import align
from arroyo_core.runtime.plan_changes import OperatorChange
from arroyo_core.runtime.setting_changes import describe_changes
from arroyo_core.runtime.udf_changes import UdfChange, changed_udfs
from arroyo_core.state.fork import ForkOrigin

_COLUMNS = ("node", "operator", "verdict", "state", "reason")
_UDF_COLUMNS = ("user functions", "verdict", "before", "now")


def comparison_text(origin: ForkOrigin, changes: Sequence[OperatorChange], udfs: Sequence[UdfChange]) -> str:
    """A heading, a table with a line for each node, one for user functions, and what it comes to."""
    lines = _table([_COLUMNS, *(_row(change) for change in changes)])
    if udfs:
        rows = [(udf.name, udf.verdict.value, udf.before or "-", udf.after or "-") for udf in udfs]
        lines += ["", *_table([_UDF_COLUMNS, *rows])]
    return "\n".join([f"Against {origin}", "", *lines, "", _verdict(changes, udfs)]) + "\n"


def comparison_json(
    origin: ForkOrigin, changes: Sequence[OperatorChange], udfs: Sequence[UdfChange]
) -> dict[str, object]:
    return {
        "against": {"url": origin.url, "job": origin.job, "epoch": origin.epoch},
        "needs_allow_drop": any(change.needs_allow_drop for change in changes),
        "needs_allow_change": [change.operator_id for change in changes if change.needs_allow_change],
        "needs_accept_udf_change": [udf.name for udf in changed_udfs(udfs)],
        "udfs": [
            {"name": udf.name, "verdict": udf.verdict.value, "before": udf.before or None, "after": udf.after or None}
            for udf in udfs
        ],
        "nodes": [
            {
                "id": change.operator_id,
                "operator": change.operator or None,
                "verdict": change.kind.value,
                "reason": change.reason,
                "was": change.former_id,
                "notes": list(change.notes),
                "needs_allow_drop": change.needs_allow_drop,
                "needs_allow_change": change.needs_allow_change,
                "changed_settings": [asdict(setting) for setting in change.settings],
                "reads_from_its_beginning": change.is_source and change.starts_over,
                "backlog": change.backlog,
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


def needs_consent(changes: Sequence[OperatorChange]) -> bool:
    """Whether a start would be refused until a person allows something of this."""
    return any(change.needs_allow_drop or change.needs_allow_change for change in changes)


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"  {line}" for line in align(rows)]


def _row(change: OperatorChange) -> tuple[str, ...]:
    size = sum(table.size_bytes for table in change.tables)
    names = ", ".join(table.name for table in change.tables)
    state = f"{names} ({format_size(size)})" if names else "-"
    reasons = [change.reason] if change.reason else []
    if change.is_source and change.starts_over:
        reasons.append("reads from its beginning")
    elif change.backlog:
        reasons.append(f"{change.backlog:,} rows behind")
    return (change.operator_id, change.operator or "?", change.kind.value, state, "; ".join(reasons))


def _verdict(changes: Sequence[OperatorChange], udfs: Sequence[UdfChange]) -> str:
    verdicts = []
    lost = [change.operator_id for change in changes if change.needs_allow_drop]
    if lost:
        verdicts.append(f"State would be lost ({', '.join(lost)}): the pipeline starts from it only with --allow-drop.")
    misread = [change for change in changes if change.needs_allow_change]
    if misread:
        flags = " ".join(f"--allow-change {change.operator_id}" for change in misread)
        what = "; ".join(f"{change.operator_id} changed: {describe_changes(change.settings)}" for change in misread)
        verdicts.append(f"State would be misread ({what}): the pipeline starts from it only with {flags}.")
    changed = [udf.name for udf in changed_udfs(udfs)]
    if changed:
        flags = " ".join(f"--accept-udf-change {name}" for name in changed)
        verdicts.append(f"User functions changed: the pipeline starts from it only with {flags}.")
    return "\n".join(verdicts) or "The pipeline can start from it."
