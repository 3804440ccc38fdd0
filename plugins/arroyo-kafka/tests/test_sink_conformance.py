"""The sink keeps the rules of `arroyo_testing.conformance`; visible is what a read_committed consumer sees."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from arroyo_testing.conformance import Check, Conformance, NotApplicable, SinkCase

from .support.cluster import Cluster

ROWS = pa.table({"id": list(range(12)), "name": ["a", "b", None, "d"] * 3, "price": [1.5, None, -4.25] * 4})
#: The cluster of the session, for cases that are made before there is one.
_CLUSTERS: list[Cluster] = []


def in_topic(*, has_progress: bool = False, **config: Any) -> Any:
    """A config with topics of its own for each folder: the kit's jobs all have one incarnation."""

    def make(folder: Path) -> Mapping[str, Any]:
        cluster = _CLUSTERS[0]
        if name(folder) not in cluster.admin.list_topics(timeout=30).topics:
            cluster.create(name(folder), partitions=2)
        progress = {"progress_topic": f"{name(folder)}-progress"} if has_progress else {}
        return {
            "bootstrap_servers": cluster.bootstrap_servers,
            "topic": name(folder),
            "format": "json",
            **progress,
            **config,
        }

    return make


def name(folder: Path) -> str:
    return f"conformance-{folder.name}"


def visible(folder: Path) -> pa.Table:
    if name(folder) not in _CLUSTERS[0].admin.list_topics(timeout=30).topics:
        return ROWS.slice(0, 0)
    values = [json.loads(record.value) for record in _CLUSTERS[0].read(name(folder)) if record.value]
    return pa.Table.from_pylist(values, schema=ROWS.schema)


def checks() -> list[Check]:
    cases = [
        SinkCase("kafka.sink", in_topic(), [ROWS], visible=visible),
        SinkCase(
            "kafka.sink",
            in_topic(has_progress=True, key_fields=["name"], partition_by=["id"]),
            [ROWS],
            visible=visible,
            id="kafka.sink with a progress topic",
        ),
        SinkCase(
            "kafka.sink", in_topic(delivery="at_least_once"), [ROWS], visible=visible, id="kafka.sink at least once"
        ),
    ]
    suite = Conformance("arroyo_kafka.plugin", cases)
    return [check for check in suite.checks() if check.case != "plugin"]


@pytest.mark.parametrize("check", checks(), ids=str)
def test_conformance(check: Check, cluster: Cluster) -> None:
    _CLUSTERS[:] = [cluster]
    if check.skip:
        pytest.skip(check.skip)
    try:
        check.run()
    except NotApplicable as reason:
        pytest.skip(str(reason))
