"""The metrics of several jobs as one answer to a scrape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prometheus_client.core import Metric
from prometheus_client.registry import Collector


class MergedMetrics(Collector):
    """What all collectors give, with each metric described once, as Prometheus demands; labels tell the jobs apart."""

    def __init__(self, collectors: Sequence[Collector]) -> None:
        self._collectors = collectors

    def collect(self) -> Iterable[Metric]:
        merged: dict[str, Metric] = {}
        for collector in self._collectors:
            for family in collector.collect():
                if family.name in merged:
                    merged[family.name].samples.extend(family.samples)
                else:
                    merged[family.name] = family
        return merged.values()
