"""The graph with what each node does now, what holds the job up, and curves of its epochs."""

from __future__ import annotations

from collections.abc import Sequence, Set

from nicegui import ui

from arroyo_console.errors import ConsoleError
from arroyo_console.pages.frame import TICK_S, html, refused, section
from arroyo_console.pages.part import Part
from arroyo_console.pages.words import (
    UNKNOWN,
    Safe,
    empty,
    joined,
    link,
    loading,
    rate,
    rows,
    seconds,
    share,
    size,
    table,
    tag,
    when,
)
from arroyo_console.pictures.charts import chart
from arroyo_console.pictures.graph import PicturedNode, render_graph
from arroyo_console.values import EpochPoint, Graph, GraphEdge, GraphNode, JobMetrics, OperatorMetrics

#: From this busy share of the slowest node on, what is before it waits for it.
HELD_UP_FROM = 0.5
#: A text that was planned is planned the same the next time.
_GRAPH_FRESH_S = 60.0
_HEADS = ("node", "operator", "in", "out", "busy", "state", "watermark lag", "rows behind", "says")


class OverviewPart(Part):
    TICK_S = TICK_S

    async def build(self) -> None:
        self._why = html("").classes("live").props("role=status")
        with (
            section("Graph"),
            ui.element("div")
            .classes("scroll graph live")
            .props('tabindex=0 role=group aria-label="graph of the pipeline"'),
        ):
            self._picture = html(loading())
        with section("Nodes", note="In the last committed epoch."):
            self._nodes = html("").classes("live")
        with section("Epochs"):
            self._charts = html("").classes("live")
        with section("Subtasks", note="How even the work of each node is."):
            self._subtasks = html("").classes("live")
        try:
            await self.refresh()
        except ConsoleError as error:
            self._picture.set_content(empty(refused(error)))

    async def refresh(self) -> None:
        live, console = self.site.live, self.site.console
        graph = await live.get(console.job_graph, self.job_id, fresh_s=_GRAPH_FRESH_S)
        metrics = await live.get(console.job_metrics, self.job_id)
        parts = (self._why, self._picture, self._nodes, self._charts, self._subtasks)
        for part, content in zip(parts, live.made(self.job_id, _rendered, graph, metrics), strict=True):
            part.set_content(content)


def _rendered(graph: Graph, metrics: JobMetrics) -> tuple[Safe, ...]:
    return (
        _bottleneck(metrics),
        _picture(graph, metrics),
        _node_table(graph, metrics),
        _epoch_charts(metrics.history),
        _subtask_table(metrics.operators),
    )


def _bottleneck(metrics: JobMetrics) -> Safe:
    found = metrics.bottleneck
    running = ""
    if metrics.running_epoch is not None and metrics.running_s is not None:
        so_far = f"{seconds(metrics.running_s)}, {rows(metrics.running_rows)} so far"
        running = f"Epoch {metrics.running_epoch} runs for {so_far}. "
    if found is None:
        return tag("div", running, class_="notice ok") if running else Safe("")
    said = [
        running,
        "Slowest is the ",
        found.kind,
        " ",
        link(f"#node-{found.node}", found.node),
        f": busy {share(found.busy_share)} of the epoch, for it since ",
        when(found.since_us),
        ". ",
        found.explanation,
    ]
    return tag("div", *said, class_="notice" if found.busy_share >= HELD_UP_FROM else "notice ok")


def _picture(graph: Graph, metrics: JobMetrics) -> Safe:
    if not graph.nodes:
        return empty("The text of this pipeline cannot be planned.", " ".join(each.message for each in graph.problems))
    return _drawn(graph.nodes, graph.edges, metrics.operators, slowest_of(metrics))


def slowest_of(metrics: JobMetrics) -> str | None:
    """The node that holds the job up, else the one that is busiest; None where nothing was done."""
    if metrics.bottleneck is not None:
        return metrics.bottleneck.node
    busiest = max(metrics.operators, key=lambda each: each.busy_share, default=None)
    return busiest.node if busiest is not None and busiest.busy_share > 0 else None


def _drawn(
    nodes: Sequence[GraphNode],
    edges: Sequence[GraphEdge],
    operators: Sequence[OperatorMetrics],
    slowest: str | None,
) -> Safe:
    numbers = {each.node: each for each in operators}
    is_full = slowest in numbers and numbers[slowest].busy_share >= HELD_UP_FROM
    held = held_up(edges, slowest) if slowest is not None and is_full else frozenset()
    pictured = [_pictured(node, edges, numbers.get(node.id), slowest, held) for node in nodes]
    return Safe(render_graph(pictured, label="graph of the pipeline", link=lambda node: f"#node-{node}"))


def _pictured(
    node: GraphNode,
    edges: Sequence[GraphEdge],
    numbers: OperatorMetrics | None,
    slowest: str | None,
    held: Set[str],
) -> PicturedNode:
    notes: list[str] = []
    if numbers is not None:
        notes.append(_moved(node, numbers))
        facts = [f"state {size(numbers.state_bytes)}"] if numbers.state_bytes else []
        facts.append(f"busy {share(numbers.busy_share)}")
        if numbers.watermark_lag_s is not None:
            facts.append(f"lag {seconds(numbers.watermark_lag_s)}")
        notes.append(", ".join(facts))
    return PicturedNode(
        id=node.id,
        operator=node.operator,
        inputs=tuple(edge.source for edge in edges if edge.target == node.id),
        parallelism=node.parallelism,
        is_sink=node.is_sink,
        notes=tuple(notes),
        busy_share=None if numbers is None else round(numbers.busy_share, 3),
        is_slowest=node.id == slowest,
        is_held_up=node.id in held,
    )


def _moved(node: GraphNode, numbers: OperatorMetrics) -> str:
    if node.is_source:
        return f"{rate(numbers.rows_out_per_s)} out"
    if node.is_sink:
        return f"{rate(numbers.rows_in_per_s)} in"
    return f"{rate(numbers.rows_in_per_s)} in, {rate(numbers.rows_out_per_s)} out"


def held_up(edges: Sequence[GraphEdge], node: str) -> frozenset[str]:
    """All that leads to a node: its rows wait for it."""
    before: dict[str, list[str]] = {}
    for edge in edges:
        before.setdefault(edge.target, []).append(edge.source)
    found: set[str] = set()
    todo = list(before.get(node, ()))
    while todo:
        name = todo.pop()
        if name not in found and name != node:
            found.add(name)
            todo += before.get(name, ())
    return frozenset(found)


def _node_table(graph: Graph, metrics: JobMetrics) -> Safe:
    if not metrics.operators:
        return empty("No epoch has been committed yet.", "The first numbers come with the first checkpoint.")
    operators = {node.id: node.operator for node in graph.nodes}
    parents = {node.id for node in graph.nodes}
    lines = [
        [
            each.node,
            operators.get(each.node, "in front of the exchange" if each.node.partition(":")[0] in parents else UNKNOWN),
            rate(each.rows_in_per_s),
            rate(each.rows_out_per_s),
            share(each.busy_share),
            size(each.state_bytes),
            seconds(each.watermark_lag_s),
            rows(each.backlog) if each.backlog else "",
            "; ".join([*each.warnings, *(f"{name} {count:,}" for name, count in each.counters.items() if count)]),
        ]
        for each in metrics.operators
    ]
    ids = [f"node-{each.node}" for each in metrics.operators]
    return table("nodes in the last epoch", _HEADS, lines, right=range(2, 8), ids=ids)


def _subtask_table(operators: Sequence[OperatorMetrics]) -> Safe:
    lines = [
        [
            each.node,
            str(subtask.subtask),
            rate(subtask.rows_in_per_s),
            rate(subtask.rows_out_per_s),
            share(subtask.busy_share),
        ]
        for each in operators
        for subtask in each.subtasks
    ]
    if not lines:
        return tag("p", "The job does not tell what each subtask did.", class_="muted")
    inner = table("subtasks in the last epoch", ("node", "subtask", "in", "out", "busy"), lines, right=range(1, 5))
    return tag("details", tag("summary", f"{len(lines):,} subtasks"), inner)


def _epoch_charts(history: Sequence[EpochPoint]) -> Safe:
    if not history:
        return empty("No epoch has been committed yet.", "Curves begin with the first checkpoint.")
    ends = (f"epoch {history[0].epoch}", f"epoch {history[-1].epoch}")

    def size_of(value: float) -> str:
        return size(int(value))

    charts = [
        chart([each.rows_per_s for each in history], title="rows read", show=rate, ends=ends),
        chart([each.watermark_lag_s for each in history], title="watermark lag", show=seconds, ends=ends),
        chart([each.backlog for each in history], title="rows behind", show=lambda value: rows(int(value)), ends=ends),
        chart([each.duration_s for each in history], title="epoch", show=seconds, ends=ends, is_bars=True),
        chart([each.checkpoint_s for each in history], title="writing state", show=seconds, ends=ends, is_bars=True),
        chart([each.state_bytes for each in history], title="state", show=size_of, ends=ends),
    ]
    return tag("div", joined(Safe(each) for each in charts), class_="charts")
