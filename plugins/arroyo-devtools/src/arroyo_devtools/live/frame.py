"""What the live view of a job looks like: pure, from numbers to what rich renders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from arroyo_core.cli.formats import format_duration, format_lag, format_size
from arroyo_core.pipeline.plan import Plan
from arroyo_core.runtime.results import EpochResult

_MAX_NODE = 32
_BAR = 10
_EIGHTHS = " ▏▎▍▌▋▊▉"
_TITLES = ("node", "operator", "rows in/s", "rows out/s", "lag", "state", "busy", "bar")
_LEFT = ("node", "operator", "bar")
#: What goes first where the terminal is too narrow for everything.
_EXPENDABLE = ("bar", "operator", "rows in/s", "state", "lag")
_GAP = 2
_ALERT = "yellow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A running job at one moment."""

    now_us: int
    running_s: float
    #: The last committed epoch, and how long ago that was.
    last: EpochResult | None = None
    since_last_s: float = 0.0
    #: The epoch that runs for long, as far as it has come.
    running: EpochResult | None = None
    resumed_from: int = 0
    source_rows: int = 0
    restarts: int = 0
    #: Spark's own pages.
    spark_ui: str = ""
    #: One more line, for what the job is about to do.
    notice: str = ""

    @property
    def shown(self) -> EpochResult | None:
        """What rates and shares are of: the epoch that runs for long, else the last one."""
        return self.running or self.last


@dataclass(frozen=True, slots=True)
class LiveFrame:
    """The job at one moment, in as much room as the options give: what is less needed is left out."""

    plan: Plan
    moment: Moment

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        head = _fold(_facts(self.plan, self.moment), options.max_width)
        tail = [text for text in (_slowest(self.plan, self.moment), self.moment.notice) if text]
        # An empty line and the heading come with the table.
        room = options.max_height - len(head) - len(tail) - 2
        yield from (_line(text, "bold") for text in head)
        if room > 0:
            yield ""
            yield from _table(self.plan, self.moment, room, options)
        yield from (_line(text, _ALERT) for text in tail)


def bar(share: float, *, is_ascii: bool) -> str:
    """At most ten letters."""
    if is_ascii:
        return "#" * round(share * _BAR)
    eighths = round(share * _BAR * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def _line(text: str, style: str) -> Text:
    return Text(text, style=style, no_wrap=True, overflow="crop")


def _facts(plan: Plan, moment: Moment) -> list[str]:
    facts = [plan.job_id, f"running {format_duration(moment.running_s)}"]
    last = moment.last
    if last is None:
        after = f" after epoch {moment.resumed_from}" if moment.resumed_from else ""
        return [*facts, f"the first epoch{after} is under way", *_running(moment), *_pages(moment)]
    rate = last.source_rows / last.duration_s if last.duration_s else 0.0
    facts += [
        *_running(moment),
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
    return [*facts, *_pages(moment)]


def _pages(moment: Moment) -> list[str]:
    return [f"Spark UI {moment.spark_ui}"] if moment.spark_ui else []


def _running(moment: Moment) -> list[str]:
    running = moment.running
    if running is None:
        return []
    return [f"epoch {running.epoch} runs for {running.duration_s:.0f} s: {running.source_rows:,} rows in"]


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
    name = moment.shown.slowest() if moment.shown is not None else None
    if moment.shown is None or name is None:
        return ""
    share = moment.shown.busy_shares()[name]
    return f"slowest: {name} ({plan.nodes[name].operator}), busy {share:.0%} of the epoch"


def _table(plan: Plan, moment: Moment, room: int, options: ConsoleOptions) -> Iterator[RenderableType]:
    names = list(plan.nodes)
    shares = moment.shown.busy_shares() if moment.shown is not None else {}
    slowest = moment.shown.slowest() if moment.shown is not None else None
    shown = names
    if len(names) > room:
        # The busiest, in the order of the pipeline.
        kept = set(sorted(names, key=lambda name: -shares.get(name, 0.0))[: room - 1])
        shown = [name for name in names if name in kept]
    rows = {name: _row(plan, moment, name, shares.get(name), is_ascii=options.ascii_only) for name in shown}
    titles = _fitting(list(rows.values()), options.max_width)
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")
    for title in titles:
        table.add_column("" if title == "bar" else title, justify="left" if title in _LEFT else "right", no_wrap=True)
    for name, row in rows.items():
        table.add_row(*(row[title] for title in titles), style=_ALERT if name == slowest else None)
    yield table
    if len(shown) < len(names):
        yield _line(f"and {len(names) - len(shown)} nodes that are less busy", "dim")


def _fitting(rows: Sequence[Mapping[str, str]], width: int) -> list[str]:
    """The columns that have room; where not even the last have, rich shortens them."""
    widths = {title: max([cell_len(title), *(cell_len(row[title]) for row in rows)]) for title in _TITLES}
    # Of one width, whatever it shows: else columns would come and go.
    widths["bar"] = _BAR
    titles = list(_TITLES)
    for title in _EXPENDABLE:
        if sum(widths[kept] + _GAP for kept in titles) - _GAP > width:
            titles.remove(title)
    return titles


def _row(plan: Plan, moment: Moment, name: str, share: float | None, *, is_ascii: bool) -> dict[str, str]:
    row = dict.fromkeys(_TITLES, "")
    row["node"] = name if len(name) <= _MAX_NODE else f"{name[: _MAX_NODE - 3]}..."
    row["operator"] = plan.nodes[name].operator
    epoch, last = moment.shown, moment.last
    if epoch is None or share is None:
        return row
    metrics = epoch.operators[name]
    seconds = epoch.duration_s or 1.0
    if plan.inputs_of(name):
        row["rows in/s"] = f"{metrics.rows_received / seconds:,.0f}"
    if plan.outputs_of(name):
        row["rows out/s"] = f"{metrics.rows_sent / seconds:,.0f}"
    if name in epoch.operator_watermarks_us:
        row["lag"] = format_lag(epoch.operator_watermarks_us[name], now_us=moment.now_us)
    if last is not None and name in last.operator_state_bytes:
        row["state"] = format_size(last.operator_state_bytes[name])
    row["busy"] = f"{share:.0%}"
    row["bar"] = bar(share, is_ascii=is_ascii)
    return row
