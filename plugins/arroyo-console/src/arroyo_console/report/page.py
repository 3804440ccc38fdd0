"""The report as HTML: no script, no font and no picture from elsewhere; every text of the job is escaped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from importlib.resources import files
from typing import Any

from arroyo_console.pictures.charts import chart
from arroyo_console.pictures.graph import PicturedNode, render_graph
from arroyo_console.pictures.markup import text
from arroyo_console.report.facts import Epoch, ReportedNode, RunFacts
from arroyo_core.cli.formats import format_duration, format_lag, format_size, format_time

#: Rows of the tables of epochs and checkpoints, the newest first.
SHOWN_EPOCHS = 200
_CHART_EPOCHS = 200

Hide = Callable[[str], str]


def render_report(facts: RunFacts, *, now_us: int, hide: Hide) -> str:
    """A whole document; `hide` takes secrets out of a text before it is escaped."""
    state = facts.state
    css = (files("arroyo_console.report") / "report.css").read_text()
    pictures = (files("arroyo_console.pictures") / "pictures.css").read_text()
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        # A page that is passed on: it can load nothing and run nothing, whatever is in it.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>{text(hide(state.job))}: report</title><style>{css}{pictures}</style></head><body>",
        f"<header><h1>{text(hide(state.job))}</h1>",
        f"<p>{text(state.state)} as of {text(format_time(now_us))}</p></header><main>",
        _summary(facts, now_us, hide),
        _graph(facts, hide),
        _rates(facts),
        _operators(facts, now_us, hide),
        _epochs(facts),
        _checkpoints(facts, hide),
        _errors(facts, hide),
        "</main><footer><p>Written by <code>arroyo report</code>. Numbers are of committed epochs that the store "
        "still keeps.</p></footer></body></html>\n",
    ]
    return "".join(parts)


def _summary(facts: RunFacts, now_us: int, hide: Hide) -> str:
    state = facts.state
    rows = {
        "state": state.state,
        "checkpoints": hide(state.url),
        "last epoch": "none yet" if state.epoch is None else str(state.epoch),
        "last commit": ""
        if state.committed_us is None
        else f"{format_time(state.committed_us)}, {format_lag(min(state.committed_us, now_us), now_us=now_us)} before",
        "rows behind": "" if state.backlog is None else f"{state.backlog:,}",
        "parallelism": "" if state.parallelism is None else str(state.parallelism),
        "restarts": "" if state.restarts is None else str(state.restarts),
        "generation": "" if state.generation is None else str(state.generation),
        "driver": f"{state.host}, pid {state.pid}" if state.host else "",
        "started": "" if state.started_us is None else format_time(state.started_us),
    }
    items = "".join(
        f"<div><dt>{text(name)}</dt><dd>{text(hide(value))}</dd></div>" for name, value in rows.items() if value
    )
    return _whole("Summary", f"<dl>{items}</dl>")


def _graph(facts: RunFacts, hide: Hide) -> str:
    if not facts.nodes:
        body = "<p>No checkpoint has recorded the graph of this job.</p>"
    else:
        last = _last_with_rows(facts.epochs)
        nodes = _pictured(facts, last, hide)
        of = "" if last is None else f"<p>With what epoch {last.checkpoint.epoch} came to.</p>"
        picture = render_graph(nodes, label="the graph of the job")
        body = f'{of}<div class="scroll" tabindex="0" role="group" aria-label="graph">{picture}</div>'
    return _whole("Graph", body)


def _last_with_rows(epochs: Sequence[Epoch]) -> Epoch | None:
    """A job that was stopped ends with an epoch in which nothing was read."""
    known = [epoch for epoch in epochs if epoch.numbers is not None]
    return next(
        (each for each in reversed(known) if each.numbers and each.numbers["source_rows"]), known[-1] if known else None
    )


def _pictured(facts: RunFacts, epoch: Epoch | None, hide: Hide) -> list[PicturedNode]:
    operators = _operators_of(epoch)
    read = {name for node in facts.nodes for name in node.inputs}
    shares = {name: float(numbers.get("busy_share", 0.0)) for name, numbers in operators.items()}
    slowest = max(shares, key=shares.__getitem__) if any(shares.values()) else None
    nodes = []
    for node in facts.nodes:
        numbers = operators.get(node.id, {})
        notes = []
        if numbers:
            seconds = float((epoch.numbers or {}).get("duration_s") or 0) if epoch else 0.0
            notes += [f"{_rate(numbers.get(key, 0), seconds)} {way}" for key, way in _ways(node, read)]
            notes.append(f"state {format_size(numbers.get('state_bytes', 0))}, busy {shares[node.id]:.0%}")
        nodes.append(
            PicturedNode(
                id=hide(node.id),
                operator=hide(node.operator),
                inputs=[hide(name) for name in node.inputs],
                parallelism=facts.state.parallelism or 1,
                is_sink=bool(node.inputs) and node.id not in read,
                notes=notes,
                busy_share=shares.get(node.id),
                is_slowest=node.id == slowest,
            )
        )
    return nodes


def _ways(node: ReportedNode, read: Set[str]) -> list[tuple[str, str]]:
    """What moves: into all but sources, out of all but sinks."""
    return [*([("rows_in", "in")] if node.inputs else []), *([("rows_out", "out")] if node.id in read else [])]


def _rates(facts: RunFacts) -> str:
    known = [epoch for epoch in facts.epochs if epoch.numbers is not None][-_CHART_EPOCHS:]
    if not known:
        return _whole("Rates", "<p>No epoch has left its numbers yet.</p>")
    numbers = [epoch.numbers or {} for epoch in known]
    ends = (f"epoch {known[0].checkpoint.epoch}", f"epoch {known[-1].checkpoint.epoch}")
    finished_us = [epoch.checkpoint.finish_time_us for epoch in known]
    charts = [
        chart(
            [_per_second(each["source_rows"], each["duration_s"]) for each in numbers],
            title="rows read",
            show=lambda value: f"{value:,.0f} rows/s",
            ends=ends,
        ),
        chart([each["duration_s"] for each in numbers], title="epoch", show=format_duration, ends=ends, is_bars=True),
        chart(
            [each["checkpoint_bytes"] for each in numbers],
            title="written by the checkpoint",
            show=lambda value: format_size(int(value)),
            ends=ends,
            is_bars=True,
        ),
        chart(
            [each["state_bytes"] for each in numbers],
            title="state",
            show=lambda value: format_size(int(value)),
            ends=ends,
        ),
        chart(
            [each["backlog"] for each in numbers],
            title="rows behind",
            show=lambda value: f"{value:,.0f} rows",
            ends=ends,
        ),
        chart(
            [
                None if each["watermark_us"] is None else max(0.0, (now_us - each["watermark_us"]) / 1e6)
                for each, now_us in zip(numbers, finished_us, strict=True)
            ],
            title="watermark lag",
            show=format_duration,
            ends=ends,
        ),
    ]
    return _whole("Rates", f'<div class="charts">{"".join(charts)}</div>')


def _operators(facts: RunFacts, now_us: int, hide: Hide) -> str:
    operators = facts.state.operators
    rows = [
        [
            hide(name),
            f"{numbers.get('rows_in', 0):,}",
            f"{numbers.get('rows_out', 0):,}",
            f"{numbers.get('backlog', 0):,}",
            f"{numbers.get('busy_share', 0):.0%}",
            format_size(numbers.get("state_bytes", 0)),
            "-" if numbers.get("watermark_us") is None else format_time(numbers["watermark_us"]),
            hide("; ".join(numbers.get("warnings", ()))),
        ]
        for name, numbers in operators.items()
    ]
    heads = ["node", "rows in", "rows out", "rows behind", "busy", "state", "watermark", "warnings"]
    return _section("Nodes in the last epoch", heads, rows, empty="No epoch has been committed yet.", right=range(1, 6))


def _epochs(facts: RunFacts) -> str:
    rows = []
    for epoch in reversed(facts.epochs[-SHOWN_EPOCHS:]):
        numbers = epoch.numbers
        if numbers is None:
            rows.append([str(epoch.checkpoint.epoch), _time(epoch), *["-"] * 5])
            continue
        rows.append(
            [
                str(epoch.checkpoint.epoch),
                _time(epoch),
                f"{numbers['duration_s']:.2f} s",
                f"{numbers['source_rows']:,}",
                _rate(numbers["source_rows"], numbers["duration_s"]),
                f"{numbers['backlog']:,}",
                "last" if numbers["is_final"] else "",
            ]
        )
    heads = ["epoch", "finished", "took", "rows read", "rate", "rows behind", ""]
    return _section("Epochs", heads, rows, empty="No epoch has been committed yet.", right=(0, 2, 3, 4, 5))


def _checkpoints(facts: RunFacts, hide: Hide) -> str:
    rows = []
    for epoch in reversed(facts.epochs[-SHOWN_EPOCHS:]):
        found = epoch.checkpoint
        if found.error:
            rows.append([str(found.epoch), "damaged", hide(found.error), *[""] * 5])
            continue
        took = "-" if epoch.numbers is None else f"{epoch.numbers['checkpoint_s']:.2f} s"
        rows.append(
            [
                str(found.epoch),
                "committed" if found.is_committed or not found.needs_commit else "not committed",
                _time(epoch),
                took,
                format_size(found.bytes_written),
                format_size(epoch.reused_bytes),
                f"{found.files:,}",
                str(found.generation),
            ]
        )
    heads = ["epoch", "is", "finished", "took", "written", "taken over", "files", "generation"]
    return _section("Checkpoints", heads, rows, empty="There is no checkpoint yet.", right=(0, 3, 4, 5, 6, 7))


def _errors(facts: RunFacts, hide: Hide) -> str:
    state = facts.state
    found = [("The last error", state.error)] if state.error else []
    found += [(f"Before epoch {each.epoch}: {each.what}", each.reason) for each in reversed(facts.troubles)]
    parts = [f"<h3>{text(what)}</h3><pre>{text(hide(reason))}</pre>" for what, reason in found]
    body = "".join(parts) or "<p>Nothing went wrong in the epochs that are kept.</p>"
    return _whole("Errors", body)


def _section(
    title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], *, empty: str, right: Sequence[int]
) -> str:
    if not rows:
        body = f"<p>{text(empty)}</p>"
    else:
        top = "".join(f'<th scope="col"{_right(at, right)}>{text(head)}</th>' for at, head in enumerate(heads))
        lines = "".join(
            "<tr>" + "".join(f"<td{_right(at, right)}>{text(cell)}</td>" for at, cell in enumerate(row)) + "</tr>"
            for row in rows
        )
        body = (
            f'<div class="scroll" tabindex="0" role="group" aria-label="{text(title)}">'
            f"<table><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table></div>"
        )
    return _whole(title, body)


def _whole(title: str, body: str) -> str:
    anchor = title.split()[0].lower()
    return f'<section aria-labelledby="{anchor}"><h2 id="{anchor}">{text(title)}</h2>{body}</section>'


def _right(at: int, right: Sequence[int]) -> str:
    return ' class="right"' if at in right else ""


def _operators_of(epoch: Epoch | None) -> Mapping[str, Mapping[str, Any]]:
    return {} if epoch is None or epoch.numbers is None else epoch.numbers.get("operators", {})


def _time(epoch: Epoch) -> str:
    return format_time(epoch.checkpoint.finish_time_us) if epoch.checkpoint.finish_time_us else "-"


def _per_second(rows: float, seconds: float) -> float:
    return rows / seconds if seconds else 0.0


def _rate(rows: float, seconds: float) -> str:
    return f"{_per_second(rows, seconds):,.0f} rows/s"
