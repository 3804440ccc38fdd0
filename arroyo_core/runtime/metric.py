"""How a metric is defined: once, at the field that holds it. Reports, Prometheus, JSON and the reference follow."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any

_METRIC = "metric"


class Kind(StrEnum):
    """As Prometheus has it: a counter only grows, a gauge is what it was last."""

    COUNTER = "counter"
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number, true or false, or a time."""

    help: str
    unit: str
    kind: Kind
    #: The name in Prometheus, which adds `_total` to counters; empty where it is not shown there.
    prometheus: str
    #: The key in JSON; empty where it is not shown there.
    key: str
    #: How many of what the field holds make one unit.
    per_unit: int
    #: Whether it is a time in microseconds: Prometheus is told how far it is behind the clock.
    is_time: bool
    #: The name in Prometheus of what it is so far in the running epoch, always a gauge; empty where it is not shown.
    running: str

    def json_value(self, value: Any) -> Any:
        if isinstance(value, float) or (self.per_unit > 1 and value is not None):
            return round(value / self.per_unit, 6)
        return value

    def prometheus_value(self, value: Any) -> float:
        return time.time() - float(value) / 1e6 if self.is_time else float(value) / self.per_unit


def measured(
    help: str,
    *,
    unit: str,
    kind: Kind = Kind.GAUGE,
    prometheus: str = "",
    key: str = "",
    per_unit: int = 1,
    is_time: bool = False,
    running: str = "",
    default: Any = 0,
) -> Any:
    """A field of a dataclass that is a metric; `dataclasses.MISSING` as `default` for none."""
    metric = Metric(
        help=help,
        unit=unit,
        kind=kind,
        prometheus=prometheus,
        key=key,
        per_unit=per_unit,
        is_time=is_time,
        running=running,
    )
    return dataclasses.field(default=default, metadata={_METRIC: metric})


def metrics_of(owner: type) -> Mapping[str, Metric]:
    """The metrics of a dataclass, by field, in their order."""
    return _metrics_of(owner)


@cache
def _metrics_of(owner: Any) -> Mapping[str, Metric]:
    fields = dataclasses.fields(owner)
    return MappingProxyType({each.name: each.metadata[_METRIC] for each in fields if _METRIC in each.metadata})


def json_values(owner: Any) -> dict[str, Any]:
    """What JSON shows of the metrics of an object."""
    metrics = metrics_of(type(owner))
    return {metric.key: metric.json_value(getattr(owner, name)) for name, metric in metrics.items() if metric.key}
