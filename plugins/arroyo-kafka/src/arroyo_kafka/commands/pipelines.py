"""The Kafka nodes of a pipeline, as commands see them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from arroyo_core.cli.options import planning
from arroyo_core.errors import ConfigError
from arroyo_core.pipeline import plan_file
from arroyo_core.pipeline.plan import Plan
from arroyo_core.plugin import PluginSet, installed_plugins
from arroyo_core.state import ParquetBackend, get_storage_provider
from arroyo_kafka.commands.rewriting import look_at_state
from arroyo_kafka.kafka_pb2 import SourceConfig
from arroyo_kafka.partitions import Partition
from arroyo_kafka.progress import PartitionState, Progress
from arroyo_kafka.source_settings import SourceSettings, check_source

SOURCE = "kafka.source"


@dataclass(frozen=True, slots=True)
class SourceNode:
    """A `kafka.source` of a pipeline."""

    id: str
    settings: SourceSettings
    job_id: str

    @property
    def group(self) -> str:
        return self.settings.group_of(self.job_id, self.id)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A planned pipeline, with what it reads from Kafka."""

    plan: Plan
    plugins: PluginSet
    sources: Sequence[SourceNode]

    def source(self, node: str) -> SourceNode:
        """Raises `ConfigError` that lists all for another name."""
        found = {source.id: source for source in self.sources}
        if node not in found:
            raise ConfigError(f"{self.plan.job_id} has no {SOURCE} {node!r} (it has: {', '.join(found) or 'none'})")
        return found[node]

    def backend(self) -> ParquetBackend:
        """Where the job keeps its checkpoints; raises `ConfigError` where it keeps none."""
        url = self.plan.checkpoint.url
        if url is None:
            raise ConfigError(f"{self.plan.job_id} has no checkpoint url: its positions are nowhere")
        return ParquetBackend(get_storage_provider(url), self.plan.job_id)

    def positions(self, node: str) -> tuple[int, dict[Partition, PartitionState]]:
        """The epoch of the newest checkpoint, and where the source is there in every partition."""
        found: dict[Partition, PartitionState] = {}
        epoch = look_at_state(
            self.plan,
            self.plugins,
            self.backend(),
            node,
            lambda tables, task: found.update(Progress(tables, task).partitions()),
        )
        return epoch, dict(sorted(found.items()))


def open_pipeline(args: argparse.Namespace) -> Pipeline:
    """Plan the pipeline of the argument `pipeline`; raises what planning raises."""
    plan = plan_file(args.pipeline, **planning(args)).plan
    nodes = [node for node in plan.nodes.values() if node.operator == SOURCE]
    sources = [SourceNode(node.id, check_source(SourceConfig.FromString(node.config)), plan.job_id) for node in nodes]
    return Pipeline(plan, installed_plugins(), sources)
