"""Sources that say now and then that they are idle: rightly, so that no row of theirs is late."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from arroyo_core.api import (
    ConstructedOperator,
    OperatorConstructor,
    Registry,
    SourceCollector,
    SourceContext,
    SourceFinishType,
    SourceOperator,
    Watermark,
)
from arroyo_core.plugin import PluginSet

#: Up to which epoch a subtask that has read all its rows may be idle, before it says that it is at its end.
_LAST_EPOCH = 12


def with_dozing_sources(plugins: PluginSet, seed: int, *, are_beside: bool = False) -> PluginSet:
    """The same plugins, but for their sources.

    A subtask may be idle when an epoch begins, and come back with rows in the same epoch. When it has read all that
    falls to it, it may be idle for some epochs while others go on. Where subtasks are beside each other, others would
    run ahead of one that is idle before its rows: there it is only behind them.
    """
    registry = Registry()
    for name, constructor in plugins.registry.constructors.items():
        with registry.registering(plugins.registry.origin(name)):
            registry.add(name, _Dozing(constructor, seed, are_beside=are_beside))
    for name, udf in plugins.registry.udfs.items():
        with registry.registering(plugins.registry.udf_origin(name)):
            registry.add_udf(udf)
    return dataclasses.replace(plugins, registry=registry)


class _Dozing(OperatorConstructor[Any]):
    """Makes what another one makes; if that is a source, one that dozes."""

    def __init__(self, awake: OperatorConstructor[Any], seed: int, *, are_beside: bool) -> None:
        self.config_type = awake.config_type
        self._awake = awake
        self._seed = seed
        self._are_beside = are_beside

    def resolve(self, config: Any) -> Any:
        return self._awake.resolve(config)

    def with_config(self, config: Any, registry: Registry) -> ConstructedOperator:
        made = self._awake.with_config(config, registry)
        if made.source is not None:
            made.source.run = _dozing_run(made.source, self._seed, are_beside=self._are_beside)  # type: ignore[method-assign]
        return made


def _dozing_run(
    source: SourceOperator, seed: int, *, are_beside: bool
) -> Callable[[SourceContext, SourceCollector], SourceFinishType]:
    run = source.run

    def dozing_run(ctx: SourceContext, collector: SourceCollector) -> SourceFinishType:
        task = ctx.task_info
        subtask = f"{seed}, {task.operator_id}, {task.task_index}"
        is_idle_first = not are_beside and random.Random(f"{subtask}, {ctx.epoch}").random() < 0.5
        finish_type = run(ctx, _WakingCollector(collector) if is_idle_first else collector)
        if finish_type is SourceFinishType.FINAL and ctx.epoch < random.Random(subtask).randint(1, _LAST_EPOCH):
            collector.broadcast_watermark(Watermark.idle())
            return SourceFinishType.CHECKPOINTED
        return finish_type

    return dozing_run


class _WakingCollector(SourceCollector):
    """Says that the source is idle right before its first rows: without rows, others would run ahead of it."""

    def __init__(self, collector: SourceCollector) -> None:
        self._collector = collector
        self._is_awake = False

    def collect(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows and not self._is_awake:
            self._is_awake = True
            self._collector.broadcast_watermark(Watermark.idle())
        self._collector.collect(batch)

    def broadcast_watermark(self, watermark: Watermark) -> None:
        self._collector.broadcast_watermark(watermark)
