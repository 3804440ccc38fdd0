"""Builds the operators of one partition of one wave from the plan."""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping

from arroyo_core.api import ArrowOperator, ConstructedOperator, SourceOperator, TaskInfo
from arroyo_core.errors import PluginError
from arroyo_core.pipeline.plan import Chain, Edge, Node, Plan, Routing
from arroyo_core.plugin import PluginSet
from arroyo_core.runtime.boundary import Boundary
from arroyo_core.runtime.carry import levels_of
from arroyo_core.runtime.chain import ChainedOperator, OperatorSlot, Output
from arroyo_core.runtime.context import RuntimeContext, RuntimeSourceContext
from arroyo_core.runtime.exchange import (
    EdgeSender,
    ForwardRouter,
    RebalanceRouter,
    Receiver,
    Router,
    ShuffleRouter,
)
from arroyo_core.runtime.frames import FrameWriter
from arroyo_core.runtime.latest import LatestRows
from arroyo_core.runtime.metrics import OperatorMetrics, Stopwatch
from arroyo_core.runtime.node import LocalEdge, OperatorNode, SenderSlot
from arroyo_core.runtime.pinned_udfs import plugins_for
from arroyo_core.runtime.request import EpochRequest, TaskEnvironment
from arroyo_core.runtime.residents import Resident
from arroyo_core.runtime.secrets import NodeSecrets
from arroyo_core.runtime.sources import SourceNode
from arroyo_core.runtime.stop import StopFile
from arroyo_core.runtime.tables import OperatorTables, TableOpener
from arroyo_core.runtime.watermarks import Channel, Level


def construct(node: Node, plugins: PluginSet) -> ConstructedOperator:
    """Make a node's operator; raises `PluginError` if the plugin here is not the one of the plan."""
    try:
        constructor = plugins.constructor(node.operator)
    except PluginError as error:
        raise PluginError(
            f"node {node.id!r} was planned with {node.origin}, and {sys.executable} on {socket.gethostname()} does not "
            f"have it ({error}): install the same version on the driver and on every executor"
        ) from error
    origin = plugins.origin(node.operator)
    if origin != node.origin:
        raise PluginError(
            f"node {node.id!r} ({node.operator}) was planned with {node.origin}, but this executor has {origin}: "
            "install the same version on the driver and on every executor"
        )
    constructed = constructor.with_config(constructor.config_type.FromString(node.config), plugins.registry)
    if node.partial_of is None:
        return constructed
    partial = constructed.operator.partial(node.input_schemas) if constructed.operator is not None else None
    if partial is None:
        raise PluginError(f"{node.operator} gave node {node.id!r} when it was planned, and does not now")
    return ConstructedOperator.from_operator(partial)


def task_info(plan: Plan, node: Node, subtask: int) -> TaskInfo:
    return TaskInfo(
        job_id=plan.job_id,
        operator_id=node.id,
        operator_name=node.operator,
        task_index=subtask,
        parallelism=node.parallelism,
    )


class WaveAssembly:
    """Makes the `OperatorNode`s of one partition, in topological order."""

    def __init__(
        self, plan: Plan, wave: int, request: EpochRequest, environment: TaskEnvironment, writer: FrameWriter
    ) -> None:
        self._plan = plan
        self._wave = wave
        self._request = request
        self._environment = environment
        self._plugins = plugins_for(plan, environment.plugins)
        self._writer = writer
        self.stopwatch = Stopwatch()
        #: What has been started in an earlier epoch, by node.
        self._kept: Mapping[str, Resident] = (
            {} if environment.residents is None else environment.residents.take(request)
        )
        #: Where the driver has not asked for the epoch yet, what the channels had come to here; they know no more.
        self._known_channels = (
            environment.residents.channels if environment.residents and environment.confirmation else None
        )
        #: What lives on, unless its input ends.
        self.residents: dict[str, Resident] = {}
        self._tables = TableOpener(
            request.storage_url,
            request.checkpoints,
            cache=environment.cache,
            pool=environment.pool,
            is_concurrent=environment.is_concurrent,
            incarnation=request.incarnation,
            clock=environment.clock,
            is_first=request.is_first,
            is_sealed=request.is_sealed,
        )

    def build(self) -> list[OperatorNode]:
        subtask = self._environment.partition
        built: dict[int, OperatorNode] = {}
        # Consumers first, so that a local edge finds its target.
        for chain in reversed(self._plan.wave_chains(self._wave)):
            if subtask < chain.parallelism:
                built[chain.id] = self._build_node(chain, subtask, built)
        return list(reversed(built.values()))

    def _build_node(self, chain: Chain, subtask: int, built: dict[int, OperatorNode]) -> OperatorNode:
        plan = self._plan
        edges = plan.inputs_of(chain.head)
        senders = {edge: _senders_of(plan, edge, subtask) for edge in edges}
        channels = [(edge.input, sender) for edge in edges for sender in senders[edge]]
        local_edges, sender_slots = self._outputs(chain, subtask, built)
        tables: list[OperatorTables] = []
        source: SourceNode | None = None
        slots: list[OperatorSlot] = []
        for node_id in chain.nodes:
            resident = self._resident(plan.nodes[node_id], subtask)
            tables.append(resident.tables)
            if resident.constructed.source is not None:
                source = self._source_node(resident.constructed.source, resident)
            elif resident.constructed.operator is not None:
                slots.append(self._slot(resident.constructed.operator, resident))
        outputs: list[tuple[str | None, Output]] = [
            *((edge.output, edge) for edge in local_edges),
            *((slot.output, slot.sender) for slot in sender_slots),
        ]
        return OperatorNode(
            chain,
            subtask,
            self._environment.attempt,
            source=source,
            chained=ChainedOperator(slots, outputs),
            tables=tables,
            channels=channels,
            receiver=Receiver(chain.id, subtask, self._exchanged(edges, senders)),
            input_schemas=[schema.schema for schema in plan.nodes[chain.head].input_schemas],
            local_edges=local_edges,
            senders=sender_slots,
            channel_levels=(
                channel_levels(plan, chain, subtask, self._request)
                if self._known_channels is None
                else self._known_channels[chain.id]
            ),
        )

    def _resident(self, node: Node, subtask: int) -> Resident:
        """The node's operator, ready for the epoch: the one that lives on, or a new one."""
        resident = self._kept.get(node.id)
        if resident is None:
            resident = self._make(node, subtask)
        else:
            if self._environment.confirmation is not None:
                resident.tables.begin_early()
                levels = resident.ctx.levels
            else:
                resident.tables.go_on(self._request.checkpoints.get(node.id))
                levels = levels_of(self._request.carried, node.id, subtask)
            resident.ctx.begin_epoch(
                self._request.token, clock=self._environment.clock, metrics=self._metrics(node), levels=levels
            )
        if self._lives_on(resident.constructed):
            self.residents[node.id] = resident
        return resident

    def _make(self, node: Node, subtask: int) -> Resident:
        constructed = construct(node, self._plugins)
        task = task_info(self._plan, node, subtask)
        tables = self._tables.open(constructed.inner, task, node.input_schemas, lives_on=self._lives_on(constructed))
        kind = RuntimeContext if constructed.source is None else RuntimeSourceContext
        ctx = kind(
            task_info=task,
            table_manager=tables.manager,
            clock=self._environment.clock,
            input_schemas=node.input_schemas,
            output_schema=node.output_schema,
            token=self._request.token,
            metrics=self._metrics(node),
            side_schemas=node.side_schemas,
            levels=levels_of(self._request.carried, node.id, subtask),
            redact=NodeSecrets(node, self._plugins).redact,
            show=self._environment.show,
        )
        tables.ctx = ctx
        return Resident(constructed, tables, ctx)

    def _metrics(self, node: Node) -> OperatorMetrics:
        limit = self._plan.latest.get(node.id)
        if not limit:
            return OperatorMetrics()
        return OperatorMetrics(latest=LatestRows(limit, is_sink=not self._plan.outputs_of(node.id)))

    def _lives_on(self, constructed: ConstructedOperator) -> bool:
        return self._environment.residents is not None and constructed.inner.lives_on()

    def _source_node(self, source: SourceOperator, resident: Resident) -> SourceNode:
        ctx, request = resident.ctx, self._request
        assert isinstance(ctx, RuntimeSourceContext)
        stop_file = StopFile.at(request.storage_url, self._plan.job_id, request.generation)
        ctx.limit(request.barrier, request.budget, stop_file=stop_file, stop=request.stop_request)
        node_id = ctx.task_info.operator_id
        ctx.given_rows = self._environment.given.get(node_id)
        return SourceNode(
            source,
            ctx,
            # Its own stopwatch: a source runs in a thread of its own.
            self._boundary(ctx, Stopwatch()),
            is_started=node_id in self._kept,
            lives_on=node_id in self.residents,
        )

    def _slot(self, operator: ArrowOperator, resident: Resident) -> OperatorSlot:
        ctx = resident.ctx
        node_id = ctx.task_info.operator_id
        return OperatorSlot(
            operator,
            ctx,
            self._boundary(ctx, self.stopwatch),
            is_started=node_id in self._kept,
            lives_on=node_id in self.residents,
        )

    def _boundary(self, ctx: RuntimeContext, stopwatch: Stopwatch) -> Boundary:
        return Boundary(ctx.task_info, self._request.epoch, ctx.metrics, stopwatch, ctx.redact)

    def _outputs(
        self, chain: Chain, subtask: int, built: dict[int, OperatorNode]
    ) -> tuple[list[LocalEdge], list[SenderSlot]]:
        local_edges, sender_slots = [], []
        for edge in self._plan.outputs_of(chain.tail):
            target = self._plan.chain_of(edge.target)
            if target.wave == self._wave:
                local_edges.append(LocalEdge(built[target.id], input=edge.input, sender=subtask, output=edge.output))
                continue
            sender = EdgeSender(
                self._writer,
                _router(edge, subtask, target.parallelism),
                chain=target.id,
                input=edge.input,
                sender=subtask,
                attempt=self._environment.attempt,
                targets=[subtask] if edge.routing is Routing.FORWARD else range(target.parallelism),
                edge=f"from {edge.source!r} to {edge.target!r}",
            )
            sender_slots.append(SenderSlot(sender=sender, chain=target.id, input=edge.input, output=edge.output))
        return local_edges, sender_slots

    def _exchanged(self, edges: tuple[Edge, ...], senders: dict[Edge, list[int]]) -> list[Channel]:
        return [
            (edge.input, sender)
            for edge in edges
            if self._plan.chain_of(edge.source).wave < self._wave
            for sender in senders[edge]
        ]


def channel_levels(plan: Plan, chain: Chain, subtask: int, request: EpochRequest) -> dict[Channel, Level]:
    """What the channels of a chain had come to at the end of the last epoch."""
    return {
        (edge.input, sender): levels_of(request.carried, edge.source, sender).output
        for edge in plan.inputs_of(chain.head)
        for sender in _senders_of(plan, edge, subtask)
    }


def _senders_of(plan: Plan, edge: Edge, subtask: int) -> list[int]:
    """The subtasks upstream that send to `subtask` along this edge."""
    if edge.routing is Routing.FORWARD:
        return [subtask]
    return list(range(plan.nodes[edge.source].parallelism))


def _router(edge: Edge, subtask: int, parallelism: int) -> Router:
    if edge.routing is Routing.FORWARD:
        return ForwardRouter(subtask)
    if edge.routing is Routing.SHUFFLE:
        return ShuffleRouter(edge.keys, parallelism)
    return RebalanceRouter(subtask, parallelism)
