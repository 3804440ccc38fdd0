"""Jobs and rows as notebooks show them. All names and values are escaped: nobody vouches for them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from arroyo_core.pipeline.views.html import table, text

if TYPE_CHECKING:
    from arroyo_core.pipeline.plan import Plan
    from arroyo_core.runtime.handle import JobProgress, NodeRows

#: What a table on a page shows at most; longer values are cut.
MAX_ROWS = 100
MAX_COLUMNS = 50
MAX_VALUE = 200


def progress_html(progress: JobProgress) -> str:
    """What a job has come to, and what its nodes did."""
    heads = [
        "state",
        "epoch",
        "rows",
        "rows/s",
        "mean rows/s",
        "watermark",
        "lag",
        "restarts",
        "subtasks",
        "running for",
    ]
    row = [
        progress.state,
        progress.epoch,
        f"{progress.source_rows:,}",
        f"{progress.rows_per_s:,.0f}",
        f"{progress.mean_rows_per_s:,.0f}",
        progress.watermark.isoformat(sep=" ", timespec="milliseconds") if progress.watermark else "",
        "" if progress.lag_s is None else _duration(progress.lag_s),
        progress.restarts,
        progress.parallelism,
        _duration(progress.duration_s),
    ]
    nodes = [
        [name, f"{numbers['rows_in']:,}", f"{numbers['rows_out']:,}", f"{numbers['busy_s']:.2f} s"]
        for name, numbers in progress.operators.items()
    ]
    parts = [f"<div><b>{text(progress.job_id)}</b></div>", table(heads, [row])]
    if nodes:
        inner = table(["node", "rows in", "rows out", "busy"], nodes)
        parts.append(f"<details><summary>nodes</summary>{inner}</details>")
    # After the end the pages may be gone: a Spark that came with the job went with it.
    is_over = progress.state not in ("starting", "running")
    if not is_over and progress.spark_ui.startswith(("http://", "https://")):
        parts.append(f'<div><a href="{text(progress.spark_ui)}" rel="noopener noreferrer">Spark UI</a></div>')
    if progress.error:
        parts.append(f'<pre style="white-space: pre-wrap;">{text(progress.error)}</pre>')
    return f"<div>{''.join(parts)}</div>"


def node_notes(progress: JobProgress, plan: Plan) -> dict[str, list[str]]:
    """What each node did, for a picture of the plan."""
    notes = {}
    for name, numbers in progress.operators.items():
        words = []
        if plan.inputs_of(name):
            words.append(f"{numbers['rows_in']:,} rows in")
        if plan.outputs_of(name):
            words.append(f"{numbers['rows_out']:,} rows out")
        notes[name] = [", ".join(words)]
    return notes


def rows_html(found: NodeRows) -> str:
    """The rows as a table."""
    shown: pa.Table = found.table.slice(max(0, found.table.num_rows - MAX_ROWS))
    names = shown.column_names[:MAX_COLUMNS]
    columns = [_cells(shown.column(place)) for place in range(len(names))]
    title = f"the last {shown.num_rows:,} rows of {found.node}, up to epoch {found.epoch}"
    if not found.table.num_rows:
        title = f"no rows of {found.node} are committed yet"
    more = shown.num_columns - len(names)
    note = f"<div>{text(f'and {more} more columns')}</div>" if more else ""
    return f"<div><div>{text(title)}</div>{table(names, list(zip(*columns, strict=True)))}{note}</div>"


def _cells(column: pa.ChunkedArray) -> list[str]:
    try:
        values = column.to_pylist()
    except (ValueError, OverflowError):
        # Times that Python cannot tell; Arrow can, unless they are inside of something.
        try:
            values = column.cast(pa.string()).to_pylist()
        except pa.ArrowException:
            values = ["?"] * len(column)
    return [_short("" if value is None else str(value)) for value in values]


def _short(value: str) -> str:
    return value if len(value) <= MAX_VALUE else f"{value[: MAX_VALUE - 1]}…"


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else str(timedelta(seconds=round(seconds)))
