"""What the live view of a job looks like: pure, from numbers to lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from arroyo_core.cli.formats import format_duration, format_lag, format_size
from arroyo_core.pipeline.plan import Plan
from arroyo_core.runtime.results import EpochResult

_MAX_NODE = 32
_BAR = 10
_EIGHTHS = " ▏▎▍▌▋▊▉"
#: What goes first where the terminal is too narrow for everything.
_EXPENDABLE = ("bar", "operator", "rows in/s", "state", "lag")


@dataclass(frozen=True, slots=True)
class Style:
    """What the terminal can show."""

    has_colour: bool = False
    has_blocks: bool = False

    def bold(self, text: str) -> str:
        return self._with("1", text)

    def dim(self, text: str) -> str:
        return self._with("2", text)

    def alert(self, text: str) -> str:
        return self._with("33", text)

    def _with(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.has_colour and text else text

    def bar(self, share: float) -> str:
        """A bar of at most ten letters."""
        if not self.has_blocks:
            return "#" * round(share * _BAR)
        eighths = round(share * _BAR * 8)
        return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A running job at one moment."""

    now_us: int
    running_s: float
    #: The last committed epoch, and how long ago that was.
    last: EpochResult | None = None
    since_last_s: float = 0.0
    resumed_from: int = 0
    source_rows: int = 0
    restarts: int = 0
    #: One more line, for what the job is about to do.
    notice: str = ""


def frame_lines(plan: Plan, moment: Moment, *, columns: int, lines: int, style: Style) -> list[str]:
    """At most `lines - 1` lines of less than `columns` letters each, so that nothing wraps or scrolls."""
    width = max(1, columns - 1)
    head = _fold(_facts(plan, moment), width)
    tail = [style.alert(text[:width]) for text in (_slowest(plan, moment), moment.notice) if text]
    room = lines - 1 - len(head) - len(tail) - 2
    frame = [style.bold(line[:width]) for line in head]
    if room > 0:
        frame += ["", *_table(plan, moment, width, room, style)]
    return (frame + tail)[: max(0, lines - 1)]


def _facts(plan: Plan, moment: Moment) -> list[str]:
    facts = [plan.job_id, f"running {format_duration(moment.running_s)}"]
    last = moment.last
    if last is None:
        after = f" after epoch {moment.resumed_from}" if moment.resumed_from else ""
        return [*facts, f"the first epoch{after} is under way"]
    rate = last.source_rows / last.duration_s if last.duration_s else 0.0
    facts += [
        f"epoch {last.epoch} took {last.duration_s:.2f} s, committed {format_duration(moment.since_last_s)} ago",
        f"{rate:,.0f} rows/s",
        f"{moment.source_rows:,} rows in",
        f"checkpoint {format_size(last.checkpoint_bytes)} in {last.checkpoint_s:.2f} s",
        f"commit lag {last.commit_s:.2f} s",
        f"state {format_size(last.state_bytes)}",
    ]
    if last.backlog:
        facts.append(f"{last.backlog:,} rows behind")
    if last.watermark_us is not None:
        facts.append(f"watermark lag {format_lag(last.watermark_us, now_us=moment.now_us)}")
    if moment.restarts:
        facts.append(f"restarts {moment.restarts}")
    return facts


def _fold(facts: Sequence[str], width: int) -> list[str]:
    """As few lines as hold the facts, three blanks between two of them."""
    folded = [facts[0]]
    for fact in facts[1:]:
        if len(folded[-1]) + 3 + len(fact) <= width:
            folded[-1] += f"   {fact}"
        else:
            folded.append(fact)
    return folded


def _slowest(plan: Plan, moment: Moment) -> str:
    name = moment.last.slowest() if moment.last is not None else None
    if moment.last is None or name is None:
        return ""
    share = moment.last.busy_shares()[name]
    return f"slowest: {name} ({plan.nodes[name].operator}), busy {share:.0%} of the epoch"


def _table(plan: Plan, moment: Moment, width: int, room: int, style: Style) -> list[str]:
    names = list(plan.nodes)
    shares = moment.last.busy_shares() if moment.last is not None else {}
    shown = names
    if len(names) > room:
        # The busiest, in the order of the pipeline.
        kept = set(sorted(names, key=lambda name: -shares.get(name, 0.0))[: room - 1])
        shown = [name for name in names if name in kept]
    rows = [_row(plan, moment, name, shares.get(name), style) for name in shown]
    titles = list(_titles())
    widths = {title: max(len(title), *(len(row[title]) for row in rows)) if rows else len(title) for title in titles}
    widths["bar"] = _BAR
    for title in _EXPENDABLE:
        if sum(widths[kept] + 2 for kept in titles) - 2 > width:
            titles.remove(title)
    slowest = moment.last.slowest() if moment.last is not None else None
    heading = {title: "" if title == "bar" else title for title in titles}
    lines = [style.dim(_line(heading, titles, widths, width))]
    for name, row in zip(shown, rows, strict=True):
        line = _line(row, titles, widths, width)
        lines.append(style.alert(line) if name == slowest else line)
    if len(shown) < len(names):
        lines.append(style.dim(f"and {len(names) - len(shown)} nodes that are less busy"[:width]))
    return lines


def _titles() -> tuple[str, ...]:
    return ("node", "operator", "rows in/s", "rows out/s", "lag", "state", "busy", "bar")


def _row(plan: Plan, moment: Moment, name: str, share: float | None, style: Style) -> dict[str, str]:
    row = dict.fromkeys(_titles(), "")
    row["node"] = name if len(name) <= _MAX_NODE else f"{name[: _MAX_NODE - 3]}..."
    row["operator"] = plan.nodes[name].operator
    last = moment.last
    if last is None or share is None:
        return row
    metrics = last.operators[name]
    seconds = last.duration_s or 1.0
    if plan.inputs_of(name):
        row["rows in/s"] = f"{metrics.rows_received / seconds:,.0f}"
    if plan.outputs_of(name):
        row["rows out/s"] = f"{metrics.rows_sent / seconds:,.0f}"
    if name in last.operator_watermarks_us:
        row["lag"] = format_lag(last.operator_watermarks_us[name], now_us=moment.now_us)
    if name in last.operator_state_bytes:
        row["state"] = format_size(last.operator_state_bytes[name])
    row["busy"] = f"{share:.0%}"
    row["bar"] = style.bar(share)
    return row


def _line(row: dict[str, str], titles: Sequence[str], widths: dict[str, int], width: int) -> str:
    is_left = {"node", "operator", "bar"}
    cells = [
        row[title].ljust(widths[title]) if title in is_left else row[title].rjust(widths[title]) for title in titles
    ]
    return "  ".join(cells).rstrip()[:width]
